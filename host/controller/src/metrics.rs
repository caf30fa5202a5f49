//! The metrics of the host. Counters and histograms that the host updates are here; [`scrape`] has the series
//! that are computed at each scrape.
//!
//! Series about a plugin have the label `plugin`, those about an informer the label `resource`; they are
//! removed with the plugin or the informer. Names follow the rules of Prometheus (base units, one unit per
//! family, `_total`), which `metrics/tests/lint.rs` checks on the real page.

mod exposition;
mod guests;
mod process;
mod scrape;
mod writes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use oarlock_informer::toolkit::workqueue::WorkQueueMetrics;
use oarlock_plugin::guest::{GuestMetrics, HostBytes};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::informers::Informers;
use crate::report::Reporter;
use crate::status::StatusRegistry;

pub(crate) use self::exposition::Exposition;
pub(crate) use self::writes::Writes;

/// The host's metrics. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Metrics {
    shared: Arc<MetricsShared>,
}

struct MetricsShared {
    registry: Registry,
    plugins: Plugins,
    guests: Guests,
    writes: AllWrites,
    leads: Family<LeaseLabels, Gauge>,
}

/// The series that are updated by calls of plugins.
struct Plugins {
    calls: Family<CallLabels, Counter>,
    call_duration: Family<FunctionLabels, Histogram, fn() -> Histogram>,
    queue_duration: Family<QueueLabels, Histogram, fn() -> Histogram>,
    compile_duration: Family<PluginLabels, Histogram, fn() -> Histogram>,
    lost: Family<LostLabels, Counter>,
    panics: Family<PluginLabels, Counter>,
    restarts: Family<PluginLabels, Counter>,
    described: Family<PluginLabels, Counter<f64, AtomicU64>>,
}

/// The series that guests define themselves, by plugin. They outlive a generation.
type Guests = Arc<Mutex<BTreeMap<Arc<str>, Arc<GuestMetrics>>>>;

/// The counters of writes, by plugin.
type AllWrites = Arc<Mutex<BTreeMap<Arc<str>, Writes>>>;

/// The metrics of one plugin's work queue.
struct Keys {
    plugin: Arc<str>,
    metrics: Metrics,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PluginLabels {
    plugin: Arc<str>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct CallLabels {
    plugin: Arc<str>,
    function: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct FunctionLabels {
    plugin: Arc<str>,
    function: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct QueueLabels {
    plugin: Arc<str>,
    queue: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LostLabels {
    plugin: Arc<str>,
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LeaseLabels {
    name: String,
}

const FUNCTIONS: [&str; 5] = ["on-add", "on-update", "on-delete", "on-synced", "reconcile"];
const OUTCOMES: [&str; 4] = ["done", "retry", "parked", "lost"];

/// The values of the label `queue`.
const NOTIFICATIONS: &str = "notifications";
const KEYS: &str = "keys";

// === impl Metrics ===

impl Metrics {
    /// Makes the registry. A scrape reads the status registry, the informers and the reporter.
    #[must_use]
    pub(crate) fn new(statuses: StatusRegistry, informers: Informers, reporter: Reporter) -> Self {
        let mut registry = Registry::default();
        let plugins = Plugins::new();
        plugins.register(&mut registry);
        let leads = Family::default();
        // The name is that of client-go, behind the prefix.
        let help = "1 while this host holds the Lease, otherwise 0";
        registry.register("oarlock_leader_election_master_status", help, leads.clone());
        let (guests, writes) = (Guests::default(), AllWrites::default());
        registry.register_collector(Box::new(scrape::Scrape {
            statuses,
            informers,
            reporter,
            guests: guests.clone(),
            writes: writes.clone(),
        }));
        Self { shared: Arc::new(MetricsShared { registry, plugins, guests, writes, leads }) }
    }

    /// Counts one call that returned, with its outcome and duration.
    pub(crate) fn called(
        &self,
        plugin: &Arc<str>,
        function: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        let plugins = &self.shared.plugins;
        plugins.calls.get_or_create(&CallLabels { plugin: plugin.clone(), function, outcome }).inc();
        let labels = FunctionLabels { plugin: plugin.clone(), function };
        plugins.call_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Observes how long a notification waited for its first call.
    pub(crate) fn waited(&self, plugin: &Arc<str>, waited: Duration) {
        self.left_queue(plugin, NOTIFICATIONS, waited);
    }

    /// Counts one lost instance.
    pub(crate) fn lost(&self, plugin: &Arc<str>, reason: &'static str) {
        self.shared.plugins.lost.get_or_create(&LostLabels { plugin: plugin.clone(), reason }).inc();
    }

    /// Counts one fresh instance that replaced a lost one.
    pub(crate) fn restarted(&self, plugin: &Arc<str>) {
        self.shared.plugins.restarts.get_or_create(&PluginLabels { plugin: plugin.clone() }).inc();
    }

    /// Observes the time to compile a component, or to find its compiled code.
    pub(crate) fn compiled(&self, plugin: &Arc<str>, took: Duration) {
        let labels = PluginLabels { plugin: plugin.clone() };
        self.shared.plugins.compile_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Adds the CPU time of a guest's `describe`.
    pub(crate) fn described(&self, plugin: &Arc<str>, computed: Duration) {
        let labels = PluginLabels { plugin: plugin.clone() };
        self.shared.plugins.described.get_or_create(&labels).inc_by(computed.as_secs_f64());
    }

    /// Counts one panic of the host in a task that serves one plugin.
    pub(crate) fn panicked(&self, plugin: &Arc<str>) {
        self.shared.plugins.panics.get_or_create(&PluginLabels { plugin: plugin.clone() }).inc();
    }

    /// Sets whether this host holds the Lease of this name.
    pub(crate) fn leads(&self, lease: &str, does_lead: bool) {
        self.shared.leads.get_or_create(&LeaseLabels { name: lease.to_owned() }).set(i64::from(does_lead));
    }

    /// Returns the series that the guests of a plugin define.
    pub(crate) fn guest(&self, plugin: &Arc<str>, account: &HostBytes) -> Arc<GuestMetrics> {
        let fresh = || Arc::new(GuestMetrics::charged_to(account.clone()));
        self.shared.guests.lock().entry(plugin.clone()).or_insert_with(fresh).clone()
    }

    /// Returns the counters of a plugin's writes.
    pub(crate) fn writes(&self, plugin: &Arc<str>) -> Writes {
        self.shared.writes.lock().entry(plugin.clone()).or_default().clone()
    }

    /// Returns the metrics of a plugin's work queue.
    pub(crate) fn work_queue(&self, plugin: &Arc<str>) -> Arc<dyn WorkQueueMetrics> {
        Arc::new(Keys { plugin: plugin.clone(), metrics: self.clone() })
    }

    /// Removes every series of a plugin.
    pub(crate) fn forget(&self, plugin: &Arc<str>) {
        self.shared.guests.lock().remove(plugin);
        self.shared.writes.lock().remove(plugin);
        let plugins = &self.shared.plugins;
        for function in FUNCTIONS {
            plugins.call_duration.remove(&FunctionLabels { plugin: plugin.clone(), function });
            for outcome in OUTCOMES {
                plugins.calls.remove(&CallLabels { plugin: plugin.clone(), function, outcome });
            }
        }
        for reason in crate::dispatch::LOSS_REASONS {
            plugins.lost.remove(&LostLabels { plugin: plugin.clone(), reason });
        }
        for queue in [NOTIFICATIONS, KEYS] {
            plugins.queue_duration.remove(&QueueLabels { plugin: plugin.clone(), queue });
        }
        let labels = PluginLabels { plugin: plugin.clone() };
        plugins.compile_duration.remove(&labels);
        plugins.panics.remove(&labels);
        plugins.restarts.remove(&labels);
        plugins.described.remove(&labels);
    }

    /// Returns the page in one of the formats.
    pub(crate) fn page(&self, exposition: Exposition) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.shared.registry)?;
        Ok(exposition.of(page))
    }

    fn left_queue(&self, plugin: &Arc<str>, queue: &'static str, waited: Duration) {
        let labels = QueueLabels { plugin: plugin.clone(), queue };
        self.shared.plugins.queue_duration.get_or_create(&labels).observe(waited.as_secs_f64());
    }
}

// === impl Plugins ===

impl Plugins {
    fn new() -> Self {
        // From 50 µs, a call that does almost nothing, to 14 min, beyond any deadline.
        let quick: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_05, 4.0, 13));
        // From 1 ms, a component whose compiled code is found, to 4.5 min.
        let slow: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 4.0, 10));
        Self {
            calls: Family::default(),
            call_duration: Family::new_with_constructor(quick),
            queue_duration: Family::new_with_constructor(quick),
            compile_duration: Family::new_with_constructor(slow),
            lost: Family::default(),
            panics: Family::default(),
            restarts: Family::default(),
            described: Family::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        let Self {
            calls,
            call_duration,
            queue_duration,
            compile_duration,
            lost,
            panics,
            restarts,
            described,
        } = self;
        let help = "Calls of the plugin, by function and outcome";
        registry.register("oarlock_plugin_calls", help, calls.clone());
        let help = "Duration of the plugin's calls, by function";
        registry.register("oarlock_plugin_call_duration_seconds", help, call_duration.clone());
        let help = "Time that notifications and keys waited for their first call";
        registry.register("oarlock_plugin_queue_duration_seconds", help, queue_duration.clone());
        let help = "Time to compile the plugin's component, or to find its compiled code";
        registry.register("oarlock_plugin_compile_duration_seconds", help, compile_duration.clone());
        let help = "Instances of the plugin that were lost, by reason: trap, deadline, a limit";
        registry.register("oarlock_plugin_instances_lost", help, lost.clone());
        let help = "Panics of the host in tasks that serve the plugin. Each is a bug of the host";
        registry.register("oarlock_plugin_host_panics", help, panics.clone());
        let help = "Fresh instances of the plugin that replaced lost ones";
        registry.register("oarlock_plugin_restarts", help, restarts.clone());
        let help = "CPU time of the plugin's function describe";
        registry.register("oarlock_plugin_describe_seconds", help, described.clone());
    }
}

// === impl Keys ===

impl WorkQueueMetrics for Keys {
    fn waited(&self, duration: Duration) {
        self.metrics.left_queue(&self.plugin, KEYS, duration);
    }
}

#[cfg(test)]
mod tests;
