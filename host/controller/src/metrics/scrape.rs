//! The series that are not counted but asked for when someone scrapes.

use std::collections::BTreeMap;
use std::fmt;

use oarlock_plugin::guest_metrics::Kind;
use oarlock_plugin::host_bytes::HostBytesView;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::Guests;
use crate::informers::{BudgetView, InformerView, Informers};
use crate::report::Reporter;
use crate::status::{Board, Phase, PluginStatus};

/// Asks the parts of the host.
pub(super) struct Scrape {
    pub(super) board: Board,
    pub(super) informers: Informers,
    pub(super) reporter: Reporter,
    pub(super) guests: Guests,
}

type Labels = Vec<(String, String)>;

// === impl Scrape ===

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        informers(&mut encoder, &self.informers.views())?;
        budget(&mut encoder, &self.informers.budget())?;
        plugins(&mut encoder, &self.board.snapshot())?;
        guests(&mut encoder, &self.guests)?;
        let dropped = ConstCounter::new(self.reporter.dropped());
        let help = "Lines lost because the output is too slow";
        dropped.encode(encoder.encode_descriptor("reports_dropped", help, None, MetricType::Counter)?)
    }
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

fn informers(encoder: &mut DescriptorEncoder<'_>, views: &[InformerView]) -> Result<(), fmt::Error> {
    let by_resource = |value: fn(&InformerView) -> Option<f64>| {
        views.iter().filter_map(move |view| Some((labels("resource", &view.resource), value(view)?)))
    };
    gauges(encoder, "cache_objects", "Objects in the cache", by_resource(|it| Some(it.objects as f64)))?;
    gauges(
        encoder,
        "cache_bytes",
        "What the cache takes: texts plain and compressed, what finds them, dictionaries",
        views.iter().flat_map(|view| {
            let parts = [
                ("plain", view.plain_bytes),
                ("compressed", view.compressed_bytes),
                ("index", view.index_bytes),
                ("dictionary", view.dictionary_bytes),
            ];
            parts.map(|(part, bytes)| {
                let mut labels = labels("resource", &view.resource);
                labels.push(("part".to_owned(), part.to_owned()));
                (labels, bytes as f64)
            })
        }),
    )?;
    gauges(
        encoder,
        "cache_text_bytes",
        "The length of the cached objects' JSON, in whatever form it is kept",
        by_resource(|it| Some(it.bytes as f64)),
    )?;
    gauges(
        encoder,
        "cache_content",
        "1 with how much of each object the cache holds",
        views.iter().map(|view| {
            let mut labels = labels("resource", &view.resource);
            labels.push(("content".to_owned(), view.content.to_owned()));
            (labels, 1.0)
        }),
    )?;
    gauges(
        encoder,
        "cache_index_left_out",
        "Objects beyond the limits of an index, whose readers are answered limit-exceeded",
        views.iter().flat_map(|view| {
            view.incomplete_indices.iter().map(|index| {
                let mut labels = labels("resource", &view.resource);
                labels.push(("index".to_owned(), index.index.clone()));
                (labels, index.objects as f64)
            })
        }),
    )?;
    gauges(
        encoder,
        "cache_leases",
        "Subscriptions and declared reads that hold the cache",
        by_resource(|it| Some(it.leases as f64)),
    )?;
    gauges(
        encoder,
        "cache_over_budget",
        "1 while the budget has no room for what is wanted of it",
        by_resource(|it| Some(f64::from(u8::from(it.over_budget.is_some())))),
    )?;
    gauges(
        encoder,
        "watch_up",
        "1 while the watch gets through, else 0",
        by_resource(|it| Some(f64::from(u8::from(it.trouble_for.is_none() && it.synced)))),
    )?;
    gauges(
        encoder,
        "watch_trouble_seconds",
        "For how long the watch has been in trouble",
        by_resource(|it| Some(it.trouble_for.map_or(0.0, |it| it.as_secs_f64()))),
    )?;
    gauges(
        encoder,
        "watch_last_sign_of_life_seconds",
        "Age of the last event, bookmark or list",
        by_resource(|it| it.last_sign_of_life.map(|it| it.as_secs_f64())),
    )?;
    counters(encoder, "watch_relists", "Lists beyond the first", by_resource(|it| Some(it.relists as f64)))?;
    counters(encoder, "watch_starts", "Watches begun", by_resource(|it| Some(it.watches as f64)))?;
    gauges(
        encoder,
        "cache_undecodable_objects",
        "Objects that the API server has and that cannot be decoded: the cache keeps their last known state",
        by_resource(|it| Some(it.undecodable as f64)),
    )?;
    counters(
        encoder,
        "watch_undecodable_events",
        "Events with an object that could not be decoded",
        by_resource(|it| Some(it.undecodable_events as f64)),
    )
}

fn budget(encoder: &mut DescriptorEncoder<'_>, budget: &BudgetView) -> Result<(), fmt::Error> {
    let BudgetView { informers, max_informers, objects, max_objects, bytes, max_bytes, over: _, refusals } =
        *budget;
    let of = |values: [(&str, usize); 3]| values.map(|(of, value)| (labels("of", of), value as f64));
    let used = of([("informers", informers), ("objects", objects), ("bytes", bytes)]);
    let limits = of([("informers", max_informers), ("objects", max_objects), ("bytes", max_bytes)]);
    gauges(encoder, "budget_used", "What all caches take up together", used)?;
    gauges(encoder, "budget_limit", "What they may take up", limits)?;
    let help = "Subscriptions and lists for which there was no room";
    let refusals = ConstCounter::new(refusals as u64);
    refusals.encode(encoder.encode_descriptor("budget_refusals", help, None, MetricType::Counter)?)
}

fn plugins(encoder: &mut DescriptorEncoder<'_>, plugins: &[PluginStatus]) -> Result<(), fmt::Error> {
    let by_plugin = |value: fn(&PluginStatus) -> f64| {
        plugins.iter().map(move |plugin| (labels("plugin", &plugin.name), value(plugin)))
    };
    let serves = |it: &PluginStatus| f64::from(u8::from(it.phase == Phase::Serving));
    gauges(encoder, "plugin_generation", "Loaded versions so far", by_plugin(|it| it.generation as f64))?;
    gauges(encoder, "plugin_up", "1 while it is called, else 0", by_plugin(serves))?;
    gauges(
        encoder,
        "plugin_refused",
        "1 while the newest version of its files is not used",
        by_plugin(|it| f64::from(u8::from(it.refused.is_some()))),
    )?;
    let subscriptions =
        || plugins.iter().flat_map(|plugin| plugin.subscriptions.iter().map(move |it| (plugin, it)));
    let labelled = |plugin: &PluginStatus, subscription: &str| {
        let mut labels = labels("plugin", &plugin.name);
        labels.push(("subscription".to_owned(), subscription.to_owned()));
        labels
    };
    gauges(
        encoder,
        "plugin_backlog",
        "Notifications that wait for the plugin",
        subscriptions().map(|(plugin, it)| (labelled(plugin, &it.name), it.backlog.pending as f64)),
    )?;
    gauges(
        encoder,
        "plugin_backlog_oldest_seconds",
        "How long the oldest of them has waited",
        subscriptions()
            .map(|(plugin, it)| (labelled(plugin, &it.name), it.backlog.oldest_ms as f64 / 1000.0)),
    )?;
    gauges(
        encoder,
        "plugin_parked",
        "Objects that are dead letters",
        subscriptions().map(|(plugin, it)| (labelled(plugin, &it.name), it.backlog.parked as f64)),
    )?;
    gauges(
        encoder,
        "plugin_subscription_forbidden",
        "1 while the plugin's account may not watch this",
        subscriptions()
            .map(|(plugin, it)| (labelled(plugin, &it.name), f64::from(u8::from(it.forbidden.is_some())))),
    )?;
    gauges(
        encoder,
        "plugin_host_bytes",
        "What the host keeps for the plugin",
        plugins.iter().flat_map(|plugin| {
            let HostBytesView { work_queue, events, requests, metrics, .. } = plugin.host_bytes;
            let uses = [
                ("work-queue", work_queue),
                ("events", events),
                ("requests", requests),
                ("metrics", metrics),
            ];
            uses.map(|(of, bytes)| {
                let mut labels = labels("plugin", &plugin.name);
                labels.push(("for".to_owned(), of.to_owned()));
                (labels, bytes as f64)
            })
        }),
    )?;
    gauges(
        encoder,
        "plugin_host_bytes_limit",
        "What the host keeps for the plugin at most",
        by_plugin(|it| it.host_bytes.limit as f64),
    )?;
    counters(
        encoder,
        "plugin_host_bytes_refused",
        "How often that limit was reached and the plugin was answered limit-exceeded",
        by_plugin(|it| it.host_bytes.refused as f64),
    )?;
    let queues = || plugins.iter().filter_map(|plugin| Some((plugin, plugin.work_queue.as_ref()?)));
    gauges(
        encoder,
        "plugin_work_queue_depth",
        "Keys that wait to be reconciled",
        queues().map(|(plugin, queue)| (labels("plugin", &plugin.name), queue.pending as f64)),
    )?;
    gauges(
        encoder,
        "plugin_work_queue_parked",
        "Keys that are dead letters",
        queues().map(|(plugin, queue)| (labels("plugin", &plugin.name), queue.parked as f64)),
    )
}

/// Writes the guests' own series. A name that one plugin counts and another sets is two: the gauge gets a suffix.
fn guests(encoder: &mut DescriptorEncoder<'_>, guests: &Guests) -> Result<(), fmt::Error> {
    let mut counted: BTreeMap<String, Vec<(Labels, f64)>> = BTreeMap::new();
    let mut set: BTreeMap<String, Vec<(Labels, f64)>> = BTreeMap::new();
    for (plugin, metrics) in guests.lock().iter() {
        for (name, family) in metrics.snapshot() {
            let series = family.series.into_iter().map(|(own, value)| {
                let mut labels = labels("plugin", plugin);
                labels.extend(own);
                (labels, value)
            });
            match family.kind {
                // The encoder appends `_total` to every counter.
                Kind::Counter => {
                    let name = name.strip_suffix("_total").unwrap_or(&name);
                    counted.entry(format!("guest_{name}")).or_default().extend(series);
                }
                Kind::Gauge => set.entry(format!("guest_{name}")).or_default().extend(series),
            }
        }
    }
    for (name, series) in &set {
        let name = if counted.contains_key(name) { format!("{name}_gauge") } else { name.clone() };
        gauges(encoder, &name, "Set by a plugin", series.iter().cloned())?;
    }
    for (name, series) in counted {
        counters(encoder, &name, "Counted by a plugin", series)?;
    }
    Ok(())
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, f64)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in series {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, f64)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in series {
        ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn labels(name: &str, value: &str) -> Labels {
    vec![(name.to_owned(), value.to_owned())]
}
