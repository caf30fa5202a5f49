//! The series of the calls of plugins, of what they used, and of their writes.

use std::fmt;
use std::sync::Arc;

use oarlock_plugin::guest::UsageView;
use prometheus_client::encoding::DescriptorEncoder;

use super::Reads;
use crate::metrics::{PluginMetrics, catalog, writes::WriteCount};

pub(super) fn calls(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    catalog::CALLS.encode(
        encoder,
        plugins.iter().flat_map(|(plugin, it)| {
            it.calls().map(move |(function, outcome, n)| {
                ([plugin.to_string(), function.to_owned(), outcome.to_owned()], n as f64)
            })
        }),
    )?;
    catalog::CALL_DURATION.encode_histograms(
        encoder,
        plugins.iter().flat_map(|(plugin, it)| {
            it.durations().map(move |(function, view)| ([plugin.to_string(), function.to_owned()], view))
        }),
    )?;
    let waited =
        plugins.iter().filter_map(|(plugin, it)| Some(([plugin.to_string()], it.notifications_waited()?)));
    catalog::NOTIFICATION_WAIT.encode_histograms(encoder, waited)?;
    catalog::INSTANCES_LOST.encode(
        encoder,
        plugins.iter().flat_map(|(plugin, it)| {
            it.losses().map(move |(reason, n)| ([plugin.to_string(), reason.to_owned()], n as f64))
        }),
    )?;
    let restarts = plugins.iter().map(|(plugin, it)| ([plugin.to_string()], it.restarts() as f64));
    catalog::RESTARTS.encode(encoder, restarts)
}

pub(super) fn usage(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let views: Vec<_> = plugins.iter().map(|(plugin, it)| (plugin, it.usage().view())).collect();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let cpu = views.iter().flat_map(|(plugin, it)| {
        let parts = [("guest", it.guest_cpu_ns), ("host", it.host_cpu_ns)];
        parts.map(|(of, ns)| ([plugin.to_string(), of.to_owned()], seconds(ns)))
    });
    catalog::PLUGIN_CPU.encode(encoder, cpu)?;
    let copied = views.iter().flat_map(|(plugin, it)| {
        let ways = [("to-guest", it.bytes_to_guest), ("from-guest", it.bytes_from_guest)];
        ways.map(|(way, bytes)| ([plugin.to_string(), way.to_owned()], bytes as f64))
    });
    catalog::COPIED.encode(encoder, copied)?;
    let values: [(_, Reads<UsageView>); 8] = [
        (&catalog::CALL_WALL, |it| it.call_wall_ns as f64 / 1e9),
        (&catalog::IMPORT_WAIT, |it| it.import_wait_ns as f64 / 1e9),
        (&catalog::CACHE_READS, |it| it.cache_reads as f64),
        (&catalog::PLUGIN_REQUESTS, |it| it.requests as f64),
        (&catalog::INSTANCES, |it| it.instances as f64),
        (&catalog::INSTANCES_MADE, |it| it.instances_made as f64),
        (&catalog::MEMORY, |it| it.linear_memory_bytes as f64),
        (&catalog::MEMORY_PEAK, |it| it.linear_memory_peak_bytes as f64),
    ];
    for (description, value) in values {
        description.encode(encoder, views.iter().map(|(plugin, it)| ([plugin.to_string()], value(it))))?;
    }
    Ok(())
}

pub(super) fn writes(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let series = plugins.iter().flat_map(|(plugin, it)| {
        it.writes().view().into_iter().map(move |WriteCount { verb, code, count }| {
            ([plugin.to_string(), verb.to_owned(), code], count as f64)
        })
    });
    catalog::WRITES.encode(encoder, series)
}
