//! The series that are computed at each scrape, from the state of their owners.

use std::fmt;
use std::sync::Arc;

use oarlock_plugin::guest::UsageView;
use oarlock_plugin::guest::host_bytes::HostBytesView;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::writes::WriteCount;
use super::{Calls, Guests, HistogramView, PluginMetrics, guests, process};
use crate::generations::GenerationState;
use crate::informers::{BudgetView, InformerView, Informers};
use crate::report::Reporter;
use crate::status::{Phase, PluginStatus, StatusRegistry};

/// Collects the series from the parts of the host.
pub(super) struct Scrape {
    pub(super) statuses: StatusRegistry,
    pub(super) informers: Informers,
    pub(super) reporter: Reporter,
    pub(super) calls: Calls,
    pub(super) guests: Guests,
}

pub(super) type Labels = Vec<(String, String)>;

// === impl Scrape ===

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        process::encode(&mut encoder)?;
        informers(&mut encoder, &self.informers.views())?;
        budget(&mut encoder, &self.informers.budget())?;
        plugins(&mut encoder, &self.statuses.snapshot())?;
        let of_plugins: Vec<_> =
            self.calls.lock().iter().map(|(name, it)| (name.clone(), it.clone())).collect();
        calls(&mut encoder, &of_plugins)?;
        usage(&mut encoder, &of_plugins)?;
        writes(&mut encoder, &of_plugins)?;
        let guests = self.guests.lock().clone();
        let series = guests.iter().map(|(plugin, metrics)| (&**plugin, metrics.snapshot()));
        guests::encode(&mut encoder, series)?;
        let help = "Lines of output that were dropped because standard output was read too slowly or closed.";
        counter(&mut encoder, "oarlock_reports_dropped", help, self.reporter.dropped() as f64)?;
        let help = "Bytes of the lines that wait to be printed.";
        gauge(&mut encoder, "oarlock_reports_waiting_bytes", help, self.reporter.waiting_bytes() as f64)
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
    gauges(
        encoder,
        "oarlock_cache_objects",
        "Objects in the cache of the resource.",
        by_resource(|it| Some(it.objects as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_cache_bytes",
        "Memory of the cache, by part: plain texts, compressed texts, indices, dictionaries.",
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
        "oarlock_cache_text_bytes",
        "Length of the cached objects as JSON, before compression.",
        by_resource(|it| Some(it.bytes as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_cache_content",
        "Always 1; the label says whether the cache holds full objects or metadata.",
        views.iter().map(|view| {
            let mut labels = labels("resource", &view.resource);
            labels.push(("content".to_owned(), view.content.to_owned()));
            (labels, 1.0)
        }),
    )?;
    gauges(
        encoder,
        "oarlock_cache_index_left_out",
        "Objects that an index left out because of its limits. Reads of their namespaces fail with limit-exceeded.",
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
        "oarlock_cache_handles",
        "Subscriptions and declared reads that use the cache.",
        by_resource(|it| Some(it.handles as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_cache_over_budget",
        "1 while the budget has no room for the objects that plugins want, otherwise 0.",
        by_resource(|it| Some(f64::from(u8::from(it.over_budget.is_some())))),
    )?;
    gauges(
        encoder,
        "oarlock_watch_up",
        "1 while the informer is synced and its watch works, otherwise 0.",
        by_resource(|it| Some(f64::from(u8::from(it.trouble_for.is_none() && it.synced)))),
    )?;
    gauges(
        encoder,
        "oarlock_watch_trouble_seconds",
        "Time since the watch began to fail, 0 while it works.",
        by_resource(|it| Some(it.trouble_for.map_or(0.0, |it| it.as_secs_f64()))),
    )?;
    gauges(
        encoder,
        "oarlock_watch_last_sign_of_life_seconds",
        "Time since the last event, bookmark or list.",
        by_resource(|it| it.last_sign_of_life.map(|it| it.as_secs_f64())),
    )?;
    counters(
        encoder,
        "oarlock_watch_relists",
        "Lists after the first one.",
        by_resource(|it| Some(it.relists as f64)),
    )?;
    counters(
        encoder,
        "oarlock_watch_starts",
        "Watches that were started.",
        by_resource(|it| Some(it.watches as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_cache_undecodable_objects",
        "Objects that cannot be decoded. The cache keeps the last state of each that could be.",
        by_resource(|it| Some(it.undecodable as f64)),
    )?;
    counters(
        encoder,
        "oarlock_watch_undecodable_events",
        "Watch events whose object could not be decoded.",
        by_resource(|it| Some(it.undecodable_events as f64)),
    )
}

fn budget(encoder: &mut DescriptorEncoder<'_>, budget: &BudgetView) -> Result<(), fmt::Error> {
    let BudgetView { informers, max_informers, objects, max_objects, bytes, max_bytes, over: _, refusals } =
        *budget;
    for (name, help, value) in [
        ("oarlock_budget_used_informers", "Informers in use.", informers),
        ("oarlock_budget_limit_informers", "Informers that the budget allows.", max_informers),
        ("oarlock_budget_used_objects", "Objects in all caches.", objects),
        ("oarlock_budget_limit_objects", "Objects that the budget allows in all caches.", max_objects),
        ("oarlock_budget_used_bytes", "Memory of all caches.", bytes),
        ("oarlock_budget_limit_bytes", "Memory that the budget allows for all caches.", max_bytes),
    ] {
        gauge(encoder, name, help, value as f64)?;
    }
    let help = "Subscriptions and lists that were refused because the budget had no room.";
    counter(encoder, "oarlock_budget_refusals", help, refusals as f64)
}

fn plugins(encoder: &mut DescriptorEncoder<'_>, plugins: &[PluginStatus]) -> Result<(), fmt::Error> {
    let by_plugin = |value: fn(&PluginStatus) -> f64| {
        plugins.iter().map(move |plugin| (labels("plugin", &plugin.name), value(plugin)))
    };
    let serves = |it: &PluginStatus| f64::from(u8::from(it.phase == Phase::Serving));
    gauges(
        encoder,
        "oarlock_plugin_generation",
        "Number of the plugin's generation that serves, 0 while none does.",
        by_plugin(|it| it.generation as f64),
    )?;
    gauges(encoder, "oarlock_plugin_up", "1 while the plugin serves, otherwise 0.", by_plugin(serves))?;
    gauges(
        encoder,
        "oarlock_plugin_refused",
        "1 while the host refuses the newest version of the plugin's files, otherwise 0.",
        by_plugin(|it| f64::from(u8::from(it.refused.is_some()))),
    )?;
    let with_state = |plugin: &PluginStatus, state: GenerationState| {
        let mut labels = labels("plugin", &plugin.name);
        labels.push(("state".to_owned(), state.name().to_owned()));
        labels
    };
    gauges(
        encoder,
        "oarlock_plugin_generation_state",
        "1 for the state of the plugin's newest generation, 0 for the other states.",
        plugins.iter().flat_map(|plugin| {
            let newest = plugin.generations.last().map(|it| it.state);
            let value = move |state| f64::from(u8::from(newest == Some(state)));
            GenerationState::ALL.map(|state| (with_state(plugin, state), value(state)))
        }),
    )?;
    counters(
        encoder,
        "oarlock_plugin_generation_transitions",
        "Transitions of the plugin's generations into a state.",
        plugins.iter().flat_map(|plugin| {
            let entered = GenerationState::ALL.into_iter().zip(plugin.transitions);
            entered.map(move |(state, count)| (with_state(plugin, state), count as f64))
        }),
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
        "oarlock_plugin_backlog",
        "Notifications that wait in the backlog of a subscription.",
        subscriptions().map(|(plugin, it)| (labelled(plugin, &it.name), it.backlog.pending as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_backlog_oldest_seconds",
        "Age of the oldest notification in the backlog of a subscription.",
        subscriptions()
            .map(|(plugin, it)| (labelled(plugin, &it.name), it.backlog.oldest_ms as f64 / 1000.0)),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_parked",
        "Objects of a subscription that are parked.",
        subscriptions().map(|(plugin, it)| (labelled(plugin, &it.name), it.backlog.parked as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_subscription_forbidden",
        "1 while the plugin's account may not watch the resource of a subscription, otherwise 0.",
        subscriptions()
            .map(|(plugin, it)| (labelled(plugin, &it.name), f64::from(u8::from(it.forbidden.is_some())))),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_host_bytes",
        "Bytes that the host keeps for the plugin, by use.",
        plugins.iter().flat_map(|plugin| {
            let HostBytesView {
                limit: _,
                used: _,
                work_queue,
                events,
                requests,
                metrics,
                read_sets,
                own_writes,
                refused: _,
            } = plugin.host_bytes;
            let uses = [
                ("work-queue", work_queue),
                ("events", events),
                ("requests", requests),
                ("metrics", metrics),
                ("read-sets", read_sets),
                ("own-writes", own_writes),
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
        "oarlock_plugin_host_bytes_limit",
        "Limit of the bytes that the host keeps for the plugin.",
        by_plugin(|it| it.host_bytes.limit as f64),
    )?;
    counters(
        encoder,
        "oarlock_plugin_host_bytes_refused",
        "Requests of the plugin that failed with limit-exceeded because of that limit.",
        by_plugin(|it| it.host_bytes.refused as f64),
    )?;
    counters(
        encoder,
        "oarlock_plugin_shadow_writes",
        "Writes that were compared with those of the plugin's shadow.",
        plugins.iter().filter_map(|plugin| Some((plugin, plugin.shadow.as_ref()?))).flat_map(
            |(plugin, it)| {
                let results = [
                    ("equal", it.equal),
                    ("different", it.different),
                    ("only-serving", it.only_serving),
                    ("only-shadow", it.only_shadow),
                ];
                results.map(|(result, n)| {
                    let mut labels = labels("plugin", &plugin.name);
                    labels.push(("result".to_owned(), result.to_owned()));
                    (labels, n as f64)
                })
            },
        ),
    )?;
    let queues = || plugins.iter().filter_map(|plugin| Some((plugin, plugin.work_queue.as_ref()?)));
    gauges(
        encoder,
        "oarlock_plugin_work_queue_depth",
        "Keys that wait in the plugin's work queue.",
        queues().map(|(plugin, queue)| (labels("plugin", &plugin.name), queue.pending as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_work_queue_parked",
        "Keys of the plugin's work queue that are parked.",
        queues().map(|(plugin, queue)| (labels("plugin", &plugin.name), queue.parked as f64)),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_wakes_by_any_change",
        "Keys that read too much through a lister that wakes, so that each of its changes queues them.",
        queues().map(|(plugin, queue)| (labels("plugin", &plugin.name), queue.wakes_by_any_change as f64)),
    )
}

fn calls(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let labelled = |plugin: &str, own: &[(&str, &str)]| {
        let mut labels = labels("plugin", plugin);
        labels.extend(own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        labels
    };
    counters(
        encoder,
        "oarlock_plugin_calls",
        "Calls of the plugin, by function and outcome.",
        plugins.iter().flat_map(|(plugin, it)| {
            it.calls().map(move |(function, outcome, n)| {
                (labelled(plugin, &[("function", function), ("outcome", outcome)]), n as f64)
            })
        }),
    )?;
    histograms(
        encoder,
        "oarlock_plugin_call_duration_seconds",
        "Duration of the plugin's calls, by function.",
        plugins.iter().flat_map(|(plugin, it)| {
            it.durations().map(move |(function, view)| (labelled(plugin, &[("function", function)]), view))
        }),
    )?;
    histograms(
        encoder,
        "oarlock_plugin_queue_duration_seconds",
        "Time that notifications and keys waited for their first call.",
        plugins.iter().flat_map(|(plugin, it)| {
            it.waits().map(move |(queue, view)| (labelled(plugin, &[("queue", queue)]), view))
        }),
    )?;
    counters(
        encoder,
        "oarlock_plugin_instances_lost",
        "Instances of the plugin that were lost, by reason: trap, deadline, a limit.",
        plugins.iter().flat_map(|(plugin, it)| {
            it.losses().map(move |(reason, n)| (labelled(plugin, &[("reason", reason)]), n as f64))
        }),
    )?;
    counters(
        encoder,
        "oarlock_plugin_restarts",
        "Fresh instances of the plugin that replaced lost ones.",
        plugins.iter().map(|(plugin, it)| (labels("plugin", plugin), it.restarts() as f64)),
    )
}

fn usage(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let views: Vec<_> = plugins.iter().map(|(plugin, it)| (plugin, it.usage().view())).collect();
    let by_plugin = |value: fn(&UsageView) -> f64| {
        views.iter().map(move |(plugin, it)| (labels("plugin", plugin), value(it)))
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    let labelled = |plugin: &str, name: &str, value: &str| {
        let mut labels = labels("plugin", plugin);
        labels.push((name.to_owned(), value.to_owned()));
        labels
    };
    counters(
        encoder,
        "oarlock_plugin_cpu_seconds",
        "CPU time for the plugin's calls: in the guest, and in the host's imports for it.",
        views.iter().flat_map(|(plugin, it)| {
            let parts = [("guest", it.guest_cpu_ns), ("host", it.host_cpu_ns)];
            parts.map(|(of, ns)| (labelled(plugin, "in", of), seconds(ns)))
        }),
    )?;
    counters(
        encoder,
        "oarlock_plugin_call_wall_seconds",
        "Time from the begin of the plugin's calls to their end.",
        by_plugin(|it| it.call_wall_ns as f64 / 1e9),
    )?;
    counters(
        encoder,
        "oarlock_plugin_import_wait_seconds",
        "Time in which the plugin's calls waited for an import, such as a write.",
        by_plugin(|it| it.import_wait_ns as f64 / 1e9),
    )?;
    counters(
        encoder,
        "oarlock_plugin_copied_bytes",
        "Bytes copied between the host and the plugin's memory, by direction.",
        views.iter().flat_map(|(plugin, it)| {
            let ways = [("to-guest", it.bytes_to_guest), ("from-guest", it.bytes_from_guest)];
            ways.map(|(way, bytes)| (labelled(plugin, "direction", way), bytes as f64))
        }),
    )?;
    counters(
        encoder,
        "oarlock_plugin_cache_reads",
        "Reads of the cache by the plugin.",
        by_plugin(|it| it.cache_reads as f64),
    )?;
    counters(
        encoder,
        "oarlock_plugin_requests",
        "Requests of the plugin to the API server, reads and writes.",
        by_plugin(|it| it.requests as f64),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_instances",
        "Instances of the plugin that exist.",
        by_plugin(|it| it.instances as f64),
    )?;
    counters(
        encoder,
        "oarlock_plugin_instances_made",
        "Instances of the plugin that were made.",
        by_plugin(|it| it.instances_made as f64),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_linear_memory_bytes",
        "Linear memory of the plugin's instances.",
        by_plugin(|it| it.linear_memory_bytes as f64),
    )?;
    gauges(
        encoder,
        "oarlock_plugin_linear_memory_peak_bytes",
        "Largest linear memory of the plugin's instances together so far.",
        by_plugin(|it| it.linear_memory_peak_bytes as f64),
    )
}

fn writes(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let series = plugins.iter().flat_map(|(plugin, it)| {
        it.writes().view().into_iter().map(move |WriteCount { verb, code, count }| {
            let mut labels = labels("plugin", plugin);
            labels.extend([("verb".to_owned(), verb.to_owned()), ("code".to_owned(), code)]);
            (labels, count as f64)
        })
    });
    let help = "Writes of the plugin, Events included, by verb and status code.";
    counters(encoder, "oarlock_plugin_writes", help, series)
}

pub(super) fn gauges(
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

fn histograms(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, HistogramView)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, view) in series {
        metric.encode_family(&labels)?.encode_histogram::<Labels>(
            view.sum_seconds(),
            view.count(),
            &view.page_buckets(),
            None,
        )?;
    }
    Ok(())
}

/// Writes a counter that has one series.
pub(super) fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> Result<(), fmt::Error> {
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(value).encode(metric)
}

/// Writes a gauge that has one series.
pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> Result<(), fmt::Error> {
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(metric)
}

pub(super) fn labels(name: &str, value: &str) -> Labels {
    vec![(name.to_owned(), value.to_owned())]
}
