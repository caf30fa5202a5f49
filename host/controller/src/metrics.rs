//! The metrics of the host. Counters and histograms that the host updates are here; [`scrape`] has the series
//! that are computed at each scrape.
//!
//! Series about a plugin have the label `plugin` (those with a name of controller-runtime: `controller`),
//! those about an informer the label `resource`; they are removed with the plugin or the informer. Names
//! follow the rules of Prometheus (base units, one unit per family, `_total`), which `metrics/tests/lint.rs`
//! checks on the real page. [`catalog`] has the names, types, labels and meanings.

mod catalog;
mod client;
mod description;
mod exposition;
mod guests;
mod histogram;
mod page;
mod plugin;
mod process;
mod reconciles;
mod scrape;
mod writes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

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
use crate::traces::Traces;

pub use self::catalog::ALL;
pub use self::client::ClientMetrics;
pub use self::description::{Description, Kind};
pub(crate) use self::exposition::Exposition;
pub(crate) use self::histogram::HistogramView;
pub(crate) use self::page::Page;
pub(crate) use self::plugin::{PluginMetrics, PluginUsage};
pub(crate) use self::writes::{Writes, write_verb};

/// The host's metrics. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Metrics {
    shared: Arc<MetricsShared>,
}

struct MetricsShared {
    registry: Registry,
    plugins: Plugins,
    calls: Calls,
    guests: Guests,
    objects: Objects,
    leads: Family<LeaseLabels, Gauge>,
    slow_paths: Family<LeaseLabels, Counter>,
}

/// The series about plugins that change rarely.
struct Plugins {
    compile_duration: Family<PluginLabels, Histogram, fn() -> Histogram>,
    panics: Family<PluginLabels, Counter>,
    described: Family<PluginLabels, Counter<f64, AtomicU64>>,
}

/// The counters of calls, by plugin. They outlive a generation.
type Calls = Arc<Mutex<BTreeMap<Arc<str>, Arc<PluginMetrics>>>>;

/// The series that guests define themselves, by plugin. They outlive a generation.
type Guests = Arc<Mutex<BTreeMap<Arc<str>, Arc<GuestMetrics>>>>;

/// The Plugin and ClusterPlugin objects, by the names of their plugins: the reason for which the newest spec
/// is not used, if it is not.
type Objects = Arc<Mutex<BTreeMap<Arc<str>, Option<&'static str>>>>;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PluginLabels {
    plugin: Arc<str>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LeaseLabels {
    name: String,
}

// === impl Metrics ===

impl Metrics {
    /// Makes the registry. A scrape reads the status registry, the informers and the reporter.
    #[must_use]
    pub(crate) fn new(
        statuses: StatusRegistry,
        informers: Informers,
        reporter: Reporter,
        requests: ClientMetrics,
        traces: Traces,
    ) -> Self {
        let mut registry = Registry::default();
        let plugins = Plugins::new();
        plugins.register(&mut registry);
        let (leads, slow_paths) = (Family::default(), Family::default());
        catalog::LEADER.register(&mut registry, Family::clone(&leads));
        catalog::SLOW_PATH.register(&mut registry, Family::clone(&slow_paths));
        let (calls, guests, objects) = (Calls::default(), Guests::default(), Objects::default());
        registry.register_collector(Box::new(scrape::Scrape {
            statuses,
            informers,
            reporter,
            requests,
            traces,
            calls: calls.clone(),
            guests: guests.clone(),
            objects: objects.clone(),
        }));
        let shared = MetricsShared { registry, plugins, calls, guests, objects, leads, slow_paths };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the counters of a plugin's calls.
    pub(crate) fn plugin(&self, plugin: &Arc<str>) -> Arc<PluginMetrics> {
        self.shared.calls.lock().entry(plugin.clone()).or_default().clone()
    }

    /// Returns what a plugin has used; none if it is not known.
    pub(crate) fn usage(&self, plugin: &str) -> Option<PluginUsage> {
        let metrics = self.shared.calls.lock().get(plugin).cloned();
        metrics.map(|it| it.view())
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
        // The first panic is an increase only if there was a 0 before. Every version describes itself, and
        // not every one is compiled.
        let _ = self.shared.plugins.panics.get_or_create(&labels);
    }

    /// Counts one panic of the host in a task that serves one plugin.
    pub(crate) fn panicked(&self, plugin: &Arc<str>) {
        self.shared.plugins.panics.get_or_create(&PluginLabels { plugin: plugin.clone() }).inc();
    }

    /// Sets whether this host holds the Lease of this name.
    pub(crate) fn leads(&self, lease: &str, does_lead: bool) {
        self.shared.leads.get_or_create(&LeaseLabels { name: lease.to_owned() }).set(i64::from(does_lead));
    }

    /// Counts one renewal of the Lease of this name that had to read it first.
    pub(crate) fn slow_path(&self, lease: &str) {
        self.shared.slow_paths.get_or_create(&LeaseLabels { name: lease.to_owned() }).inc();
    }

    /// Sets the reason for which the newest spec of an object is not used; none if it is used.
    pub(crate) fn object(&self, plugin: &str, why_unresolved: Option<&'static str>) {
        self.shared.objects.lock().insert(plugin.into(), why_unresolved);
    }

    /// Removes the series of an object.
    pub(crate) fn forget_object(&self, plugin: &str) {
        self.shared.objects.lock().remove(plugin);
    }

    /// Returns the series that the guests of a plugin define.
    pub(crate) fn guest(&self, plugin: &Arc<str>, account: &HostBytes) -> Arc<GuestMetrics> {
        let fresh = || Arc::new(GuestMetrics::charged_to(account.clone()));
        self.shared.guests.lock().entry(plugin.clone()).or_insert_with(fresh).clone()
    }

    /// Returns the counters of a plugin's writes.
    pub(crate) fn writes(&self, plugin: &Arc<str>) -> Writes {
        self.plugin(plugin).writes().clone()
    }

    /// Removes every series of a plugin.
    pub(crate) fn forget(&self, plugin: &Arc<str>) {
        self.shared.guests.lock().remove(plugin);
        self.shared.calls.lock().remove(plugin);
        let plugins = &self.shared.plugins;
        let labels = PluginLabels { plugin: plugin.clone() };
        plugins.compile_duration.remove(&labels);
        plugins.panics.remove(&labels);
        plugins.described.remove(&labels);
    }

    /// Returns the page in one of the formats. That takes a second for a hundred megabytes.
    pub(crate) fn page(&self, exposition: Exposition) -> Result<Page, fmt::Error> {
        exposition.page(|mut page| text::encode(&mut page, &self.shared.registry))
    }
}

// === impl Plugins ===

impl Plugins {
    fn new() -> Self {
        // From 1 ms, a component whose compiled code is found, to 4.5 min.
        let slow: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 4.0, 10));
        Self {
            compile_duration: Family::new_with_constructor(slow),
            panics: Family::default(),
            described: Family::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        let Self { compile_duration, panics, described } = self;
        catalog::PLUGIN_COMPILE.register(registry, compile_duration.clone());
        catalog::PLUGIN_PANICS.register(registry, panics.clone());
        catalog::PLUGIN_DESCRIBE.register(registry, described.clone());
    }
}

#[cfg(test)]
mod tests;
