//! The series of the state of plugins.

use std::fmt;

use oarlock_plugin::guest::host_bytes::HostBytesView;
use prometheus_client::encoding::DescriptorEncoder;

use super::families::{counters, gauges, labels};
use crate::generations::GenerationState;
use crate::status::{Phase, PluginStatus};

pub(super) fn plugins(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[PluginStatus],
) -> Result<(), fmt::Error> {
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
