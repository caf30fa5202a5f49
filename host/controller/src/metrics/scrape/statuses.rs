//! The series of the state of plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oarlock_plugin::guest::host_bytes::HostBytesView;
use prometheus_client::encoding::DescriptorEncoder;

use super::Reads;
use crate::generations::GenerationState;
use crate::metrics::catalog;
use crate::status::{Phase, PluginStatus, SubscriptionStatus};

pub(super) fn plugins(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &[PluginStatus],
) -> Result<(), fmt::Error> {
    let values: [(_, Reads<PluginStatus>); 5] = [
        (&catalog::PLUGIN_UP, |it| f64::from(u8::from(it.phase == Phase::Serving))),
        (&catalog::PLUGIN_REFUSED, |it| f64::from(u8::from(it.refused.is_some()))),
        (&catalog::PLUGIN_GENERATION, |it| it.generation as f64),
        (&catalog::HOST_BYTES_LIMIT, |it| it.host_bytes.limit as f64),
        (&catalog::HOST_BYTES_REFUSED, |it| it.host_bytes.refused as f64),
    ];
    for (description, value) in values {
        description.encode(encoder, plugins.iter().map(|it| ([it.name.to_string()], value(it))))?;
    }
    let with_state =
        |plugin: &PluginStatus, state: GenerationState| [plugin.name.to_string(), state.name().to_owned()];
    catalog::PLUGIN_STATE.encode(
        encoder,
        plugins.iter().flat_map(|plugin| {
            let newest = plugin.generations.last().map(|it| it.state);
            let value = move |state| f64::from(u8::from(newest == Some(state)));
            GenerationState::ALL.map(|state| (with_state(plugin, state), value(state)))
        }),
    )?;
    catalog::PLUGIN_TRANSITIONS.encode(
        encoder,
        plugins.iter().flat_map(|plugin| {
            let entered = GenerationState::ALL.into_iter().zip(plugin.transitions);
            entered.map(move |(state, count)| (with_state(plugin, state), count as f64))
        }),
    )?;
    subscriptions(encoder, plugins)?;
    catalog::HOST_BYTES.encode(encoder, plugins.iter().flat_map(host_bytes))?;
    catalog::SHADOW_WRITES.encode(
        encoder,
        plugins.iter().filter_map(|plugin| Some((plugin, plugin.shadow.as_ref()?))).flat_map(
            |(plugin, it)| {
                let results = [
                    ("equal", it.equal),
                    ("different", it.different),
                    ("only-serving", it.only_serving),
                    ("only-shadow", it.only_shadow),
                ];
                results.map(|(result, n)| ([plugin.name.to_string(), result.to_owned()], n as f64))
            },
        ),
    )
}

/// Why the newest spec of each object is not used, by the name of the plugin; none if it is used.
pub(super) fn objects(
    encoder: &mut DescriptorEncoder<'_>,
    objects: &BTreeMap<Arc<str>, Option<&'static str>>,
) -> Result<(), fmt::Error> {
    let series = objects.iter().map(|(plugin, why_unresolved)| {
        // The reason of the condition Degraded of a plugin that is not degraded.
        let reason = why_unresolved.unwrap_or("AsExpected");
        ([plugin.to_string(), reason.to_owned()], f64::from(u8::from(why_unresolved.is_some())))
    });
    catalog::OBJECT_UNRESOLVED.encode(encoder, series)
}

fn subscriptions(encoder: &mut DescriptorEncoder<'_>, plugins: &[PluginStatus]) -> Result<(), fmt::Error> {
    let values: [(_, Reads<SubscriptionStatus>); 5] = [
        (&catalog::BACKLOG, |it| it.backlog.pending as f64),
        (&catalog::BACKLOG_OLDEST, |it| it.backlog.oldest_ms as f64 / 1000.0),
        (&catalog::PARKED, |it| it.backlog.parked as f64),
        (&catalog::FORBIDDEN, |it| f64::from(u8::from(it.forbidden.is_some()))),
        (&catalog::PAUSED, |it| f64::from(u8::from(it.paused.is_some()))),
    ];
    for (description, value) in values {
        let series = plugins.iter().flat_map(|plugin| {
            let of = move |it: &SubscriptionStatus| ([plugin.name.to_string(), it.name.clone()], value(it));
            plugin.subscriptions.iter().map(of)
        });
        description.encode(encoder, series)?;
    }
    Ok(())
}

fn host_bytes(plugin: &PluginStatus) -> [([String; 2], f64); 6] {
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
    uses.map(|(of, bytes)| ([plugin.name.to_string(), of.to_owned()], bytes as f64))
}
