//! The series of informers and of their budget.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::Reads;
use crate::informers::{BudgetView, InformerView};
use crate::metrics::catalog;

pub(super) fn informers(
    encoder: &mut DescriptorEncoder<'_>,
    views: &[InformerView],
) -> Result<(), fmt::Error> {
    let flag = |it: bool| f64::from(u8::from(it));
    let values: [(_, Reads<InformerView>); 6] = [
        (&catalog::CACHE_OBJECTS, |it| it.objects as f64),
        (&catalog::CACHE_TEXT, |it| it.bytes as f64),
        (&catalog::CACHE_HANDLES, |it| it.handles as f64),
        (&catalog::CACHE_UNDECODABLE, |it| it.undecodable as f64),
        (&catalog::WATCH_RELISTS, |it| it.relists as f64),
        (&catalog::WATCH_STARTS, |it| it.watches as f64),
    ];
    let of = |view: &InformerView| view.resource.clone();
    for (description, value) in values {
        description.encode(encoder, views.iter().map(|view| ([of(view)], value(view))))?;
    }
    catalog::CACHE_BYTES.encode(
        encoder,
        views.iter().flat_map(|view| {
            let parts = [
                ("plain", view.plain_bytes),
                ("compressed", view.compressed_bytes),
                ("index", view.index_bytes),
                ("dictionary", view.dictionary_bytes),
            ];
            parts.map(|(part, bytes)| ([of(view), part.to_owned()], bytes as f64))
        }),
    )?;
    catalog::CACHE_CONTENT
        .encode(encoder, views.iter().map(|view| ([of(view), view.content.to_owned()], 1.0)))?;
    catalog::CACHE_LEFT_OUT.encode(
        encoder,
        views.iter().flat_map(|view| {
            let indices = view.incomplete_indices.iter();
            indices.map(|index| ([of(view), index.index.clone()], index.objects as f64))
        }),
    )?;
    catalog::CACHE_OVER_BUDGET
        .encode(encoder, views.iter().map(|it| ([of(it)], flag(it.over_budget.is_some()))))?;
    catalog::WATCH_UP
        .encode(encoder, views.iter().map(|it| ([of(it)], flag(it.trouble_for.is_none() && it.synced))))?;
    let trouble = views.iter().map(|it| ([of(it)], it.trouble_for.map_or(0.0, |it| it.as_secs_f64())));
    catalog::WATCH_TROUBLE.encode(encoder, trouble)?;
    let signs = views.iter().filter_map(|it| Some(([of(it)], it.last_sign_of_life?.as_secs_f64())));
    catalog::WATCH_SIGN.encode(encoder, signs)?;
    let undecodable = views.iter().map(|it| ([of(it)], it.undecodable_events as f64));
    catalog::WATCH_UNDECODABLE.encode(encoder, undecodable)
}

pub(super) fn budget(encoder: &mut DescriptorEncoder<'_>, budget: &BudgetView) -> Result<(), fmt::Error> {
    let BudgetView { informers, max_informers, objects, max_objects, bytes, max_bytes, over: _, refusals } =
        *budget;
    for (description, value) in [
        (&catalog::BUDGET_INFORMERS, informers as f64),
        (&catalog::BUDGET_INFORMERS_LIMIT, max_informers as f64),
        (&catalog::BUDGET_OBJECTS, objects as f64),
        (&catalog::BUDGET_OBJECTS_LIMIT, max_objects as f64),
        (&catalog::BUDGET_BYTES, bytes as f64),
        (&catalog::BUDGET_BYTES_LIMIT, max_bytes as f64),
        (&catalog::BUDGET_REFUSALS, refusals as f64),
    ] {
        description.encode(encoder, [([], value)])?;
    }
    Ok(())
}
