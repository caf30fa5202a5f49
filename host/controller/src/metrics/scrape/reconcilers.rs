//! The series of work queues and of reconcilers, as client-go and controller-runtime have them. A plugin is a
//! controller; a plugin without a reconciler has none of these series.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;

use super::Reads;
use crate::metrics::{PluginMetrics, catalog};
use crate::status::{PluginStatus, QueueStats};

/// A plugin with a work queue.
type Reconciler<'a> = (&'a PluginStatus, &'a QueueStats, &'a PluginMetrics);

pub(super) fn queues(
    encoder: &mut DescriptorEncoder<'_>,
    statuses: &[PluginStatus],
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let all = reconcilers(statuses, plugins);
    let values: [(_, Reads<Reconciler<'_>>); 5] = [
        (&catalog::QUEUE_DEPTH, |(_, queue, _)| queue.ready as f64),
        (&catalog::QUEUE_UNFINISHED, |(_, queue, _)| queue.unfinished.as_secs_f64()),
        (&catalog::QUEUE_LONGEST, |(_, queue, _)| queue.longest.as_secs_f64()),
        (&catalog::QUEUE_ADDS, |(.., it)| it.keys().added() as f64),
        (&catalog::QUEUE_RETRIES, |(.., it)| it.keys().retried() as f64),
    ];
    // controller-runtime names the queue after its controller.
    let names = |it: &Reconciler<'_>| [it.0.name.to_string(), it.0.name.to_string()];
    for (description, value) in values {
        description.encode(encoder, all.iter().map(|it| (names(it), value(it))))?;
    }
    catalog::QUEUE_WAIT
        .encode_histograms(encoder, all.iter().map(|it| (names(it), it.2.keys().waited_view())))?;
    catalog::QUEUE_WORK
        .encode_histograms(encoder, all.iter().map(|it| (names(it), it.2.keys().worked_view())))?;
    let oldest =
        all.iter().map(|(plugin, queue, _)| ([plugin.name.to_string()], queue.oldest_ms as f64 / 1000.0));
    catalog::QUEUE_OLDEST.encode(encoder, oldest)?;
    let delayed = all.iter().map(|(plugin, queue, _)| ([plugin.name.to_string()], queue.delayed as f64));
    catalog::QUEUE_DELAYED.encode(encoder, delayed)?;
    let parked = all.iter().map(|(plugin, queue, _)| ([plugin.name.to_string()], queue.parked as f64));
    catalog::QUEUE_PARKED.encode(encoder, parked)?;
    let wakes =
        all.iter().map(|(plugin, queue, _)| ([plugin.name.to_string()], queue.wakes_by_any_change as f64));
    catalog::WAKES_BY_ANY.encode(encoder, wakes)
}

pub(super) fn reconciles(
    encoder: &mut DescriptorEncoder<'_>,
    statuses: &[PluginStatus],
    plugins: &[(Arc<str>, Arc<PluginMetrics>)],
) -> Result<(), fmt::Error> {
    let all = reconcilers(statuses, plugins);
    let results = all.iter().flat_map(|(plugin, _, it)| {
        let counts = it.reconciles();
        let results =
            [("success", counts.succeeded), ("requeue_after", counts.requeued), ("error", counts.failed)];
        results.map(|(result, n)| ([plugin.name.to_string(), result.to_owned()], n as f64))
    });
    catalog::RECONCILES.encode(encoder, results)?;
    let values: [(_, Reads<Reconciler<'_>>); 6] = [
        (&catalog::RECONCILE_ERRORS, |(.., it)| it.reconciles().failed as f64),
        (&catalog::RECONCILE_TERMINAL, |(.., it)| it.reconciles().terminal as f64),
        (&catalog::RECONCILE_PANICS, |(.., it)| it.reconciles().trapped as f64),
        (&catalog::RECONCILE_TIMEOUTS, |(.., it)| it.reconciles().timed_out as f64),
        (&catalog::MAX_RECONCILES, |(_, queue, _)| queue.lanes as f64),
        (&catalog::ACTIVE_WORKERS, |(_, queue, _)| queue.calls as f64),
    ];
    for (description, value) in values {
        description.encode(encoder, all.iter().map(|it| ([it.0.name.to_string()], value(it))))?;
    }
    let durations = all.iter().map(|(plugin, _, it)| ([plugin.name.to_string()], it.reconcile_duration()));
    catalog::RECONCILE_TIME.encode_histograms(encoder, durations)
}

/// Returns the plugins that have a work queue. Both lists are sorted by name.
fn reconcilers<'a>(
    statuses: &'a [PluginStatus],
    plugins: &'a [(Arc<str>, Arc<PluginMetrics>)],
) -> Vec<Reconciler<'a>> {
    let metrics = |name: &Arc<str>| {
        let found = plugins.binary_search_by(|(plugin, _)| plugin.cmp(name)).ok()?;
        Some(&*plugins[found].1)
    };
    let with_queue =
        statuses.iter().filter_map(|it| Some((it, it.work_queue.as_deref()?, metrics(&it.name)?)));
    with_queue.collect()
}
