//! The series of the calls of plugins, of what they used, and of their writes.

use std::fmt;
use std::sync::Arc;

use oarlock_plugin::guest::UsageView;
use prometheus_client::encoding::DescriptorEncoder;

use super::families::{counters, gauges, histograms, labels};
use crate::metrics::PluginMetrics;
use crate::metrics::writes::WriteCount;

pub(super) fn calls(
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

pub(super) fn usage(
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

pub(super) fn writes(
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
