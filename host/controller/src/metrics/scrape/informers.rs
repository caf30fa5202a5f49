//! The series of informers and of their budget.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::families::{counter, counters, gauge, gauges, labels};
use crate::informers::{BudgetView, InformerView};

pub(super) fn informers(
    encoder: &mut DescriptorEncoder<'_>,
    views: &[InformerView],
) -> Result<(), fmt::Error> {
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

pub(super) fn budget(encoder: &mut DescriptorEncoder<'_>, budget: &BudgetView) -> Result<(), fmt::Error> {
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
