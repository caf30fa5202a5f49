//! Everything that Prometheus is shown. What is counted is counted here, what is asked for is in [`scrape`].
//!
//! Series of a plugin carry `plugin`, those of a watch `resource`; both kinds go when the plugin or the watch goes.

mod scrape;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::{GuestMetrics, HostBytes};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::informers::Informers;
use crate::report::Reporter;
use crate::status::Board;

/// The host's metrics. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Registry,
    calls: Calls,
    guests: Guests,
    leads: Family<LeaseLabels, Gauge>,
}

/// What is counted with every call.
struct Calls {
    ended: Family<CallLabels, Counter>,
    seconds: Family<FunctionLabels, Histogram, fn() -> Histogram>,
    lost: Family<LostLabels, Counter>,
    panics: Family<PluginLabels, Counter>,
}

/// The series of the guests' own, by plugin; they outlive a generation.
type Guests = Arc<Mutex<BTreeMap<Arc<str>, Arc<GuestMetrics>>>>;

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
struct LostLabels {
    plugin: Arc<str>,
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PluginLabels {
    plugin: Arc<str>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LeaseLabels {
    name: String,
}

const FUNCTIONS: [&str; 5] = ["on-add", "on-update", "on-delete", "on-synced", "reconcile"];
const OUTCOMES: [&str; 4] = ["done", "retry", "parked", "lost"];

// === impl Metrics ===

impl Metrics {
    /// Makes the registry, which asks the given parts when it is scraped.
    #[must_use]
    pub(crate) fn new(board: Board, informers: Informers, reporter: Reporter) -> Self {
        let mut registry = Registry::with_prefix("oarlock");
        let calls = Calls::new();
        registry.register("plugin_calls", "Calls of plugins, by how they ended", calls.ended.clone());
        registry.register("plugin_call_seconds", "How long calls of plugins took", calls.seconds.clone());
        registry.register(
            "plugin_instances_lost",
            "Instances lost to traps, deadlines and limits",
            calls.lost.clone(),
        );
        registry.register(
            "plugin_host_panics",
            "Panics of the host in tasks that serve one plugin",
            calls.panics.clone(),
        );
        let leads = Family::default();
        // As in client-go.
        let what = "Whether this host leads by the Lease: 1 or 0";
        registry.register("leader_election_master_status", what, leads.clone());
        let guests = Guests::default();
        registry.register_collector(Box::new(scrape::Scrape {
            board,
            informers,
            reporter,
            guests: guests.clone(),
        }));
        Self { shared: Arc::new(Shared { registry, calls, guests, leads }) }
    }

    /// Counts one call that came back with an answer.
    pub(crate) fn called(
        &self,
        plugin: &Arc<str>,
        function: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        let calls = &self.shared.calls;
        calls.ended.get_or_create(&CallLabels { plugin: plugin.clone(), function, outcome }).inc();
        let labels = FunctionLabels { plugin: plugin.clone(), function };
        calls.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts one instance that was lost.
    pub(crate) fn lost(&self, plugin: &Arc<str>, reason: &'static str) {
        self.shared.calls.lost.get_or_create(&LostLabels { plugin: plugin.clone(), reason }).inc();
    }

    /// Counts one panic of the host in a task that serves one plugin.
    pub(crate) fn panicked(&self, plugin: &Arc<str>) {
        self.shared.calls.panics.get_or_create(&PluginLabels { plugin: plugin.clone() }).inc();
    }

    /// Shows whether the host leads by the Lease of this name.
    pub(crate) fn leads(&self, lease: &str, does_lead: bool) {
        self.shared.leads.get_or_create(&LeaseLabels { name: lease.to_owned() }).set(i64::from(does_lead));
    }

    /// Returns where the guests of a plugin keep their series.
    pub(crate) fn guest(&self, plugin: &Arc<str>, account: &HostBytes) -> Arc<GuestMetrics> {
        let fresh = || Arc::new(GuestMetrics::charged_to(account.clone()));
        self.shared.guests.lock().entry(plugin.clone()).or_insert_with(fresh).clone()
    }

    /// Drops every series of a plugin that is gone.
    pub(crate) fn forget(&self, plugin: &Arc<str>) {
        self.shared.guests.lock().remove(plugin);
        let calls = &self.shared.calls;
        for function in FUNCTIONS {
            calls.seconds.remove(&FunctionLabels { plugin: plugin.clone(), function });
            for outcome in OUTCOMES {
                calls.ended.remove(&CallLabels { plugin: plugin.clone(), function, outcome });
            }
        }
        for reason in crate::dispatch::LOSS_REASONS {
            calls.lost.remove(&LostLabels { plugin: plugin.clone(), reason });
        }
    }

    /// Writes the page, in OpenMetrics' text.
    pub(crate) fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.shared.registry)?;
        Ok(page)
    }
}

// === impl Calls ===

impl Calls {
    fn new() -> Self {
        // From 50 µs, a call that does next to nothing, to 27 min, beyond any deadline.
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_05, 4.0, 13));
        Self {
            ended: Family::default(),
            seconds: Family::new_with_constructor(buckets),
            lost: Family::default(),
            panics: Family::default(),
        }
    }
}
