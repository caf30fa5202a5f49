//! The condition `ShadowReady` and `status.shadow`: what an operator needs, without values, and without
//! hashes of values, which can be compared within one process only.

use super::conditions::{self, Finding};
use super::resolve::Problem;
use super::shadows::ShadowRecord;
use super::status_writer;
use super::types::{ShadowDifference, ShadowStatus};
use crate::shadow::{ShadowView, WriteDifference};
use crate::status::PluginStatus;

/// How many differences a status shows.
const MAX_DIFFERENCES: usize = 4;

/// The longest name of an object, and the longest JSON pointer. The guests choose them.
const LONGEST_TEXT: usize = 256;

/// What the host knows about the shadow of an object.
#[derive(Clone, Copy)]
pub(super) struct Shadow<'a> {
    pub(super) record: &'a ShadowRecord,
    /// What the host does with it, if it has begun to load it.
    pub(super) loaded: Option<&'a PluginStatus>,
    /// How its writes compare, while it serves.
    pub(super) comparison: Option<&'a ShadowView>,
    /// Whether the numbers may be written, which change with every write.
    pub(super) with_numbers: bool,
}

// === impl Shadow ===

impl Shadow<'_> {
    /// Returns whether the newest component of its source serves.
    pub(super) fn ready(&self) -> Finding {
        const KIND: &str = "ShadowReady";
        let Self { record, loaded, .. } = self;
        let stale = match &record.resolution {
            Ok(stale) => stale.as_ref(),
            Err(found) => return conditions::problem(KIND, found),
        };
        if let Some(refused) = loaded.and_then(|it| it.refused.as_ref()) {
            return conditions::finding(KIND, conditions::FALSE, "Refused", &refused.message);
        }
        let newest = record.component.as_ref().map(|it| it.digest().to_hex());
        if let Some(older) = loaded.filter(|it| it.generation > 0 && it.digest != newest) {
            let waits_for = match &*older.waits_for {
                [] => String::new(),
                waits_for => format!("; it waits for {}", waits_for.join("; ")),
            };
            let message = format!("it is being loaded, and the component before runs on{waits_for}");
            return conditions::finding(KIND, conditions::FALSE, "Loading", message);
        }
        let found = conditions::ready(KIND, Ok(()), *loaded);
        match stale {
            Some(why) if found.status == conditions::TRUE => {
                let message = format!("{}; fetched before: {}", found.message, why.message);
                conditions::finding(KIND, conditions::TRUE, conditions::reason_of_stale(why), message)
            }
            _ => found,
        }
    }

    /// Returns its part of the status. Without the numbers, those of before stay if they are about the same
    /// component.
    pub(super) fn status(&self, before: Option<&ShadowStatus>) -> ShadowStatus {
        let Self { record, loaded, comparison, with_numbers } = self;
        let resolution: Result<(), &Problem> = record.resolution.as_ref().map(drop);
        let serving = loaded.filter(|it| it.generation > 0);
        let digest = serving.and_then(|it| it.digest.as_deref()).map(status_writer::written);
        let phase = status_writer::phase(resolution, *loaded).to_owned();
        let before = before.filter(|it| it.digest == digest);
        match (before, comparison) {
            (Some(before), _) if !with_numbers => ShadowStatus { phase, ..before.clone() },
            (_, Some(comparison)) => {
                numbers(ShadowStatus { phase, digest, ..ShadowStatus::default() }, comparison)
            }
            (_, None) => ShadowStatus { phase, digest, ..ShadowStatus::default() },
        }
    }
}

fn numbers(status: ShadowStatus, comparison: &ShadowView) -> ShadowStatus {
    let ShadowView {
        digest: _,
        compared,
        equal,
        different,
        only_serving,
        only_shadow,
        waiting: _,
        left_out,
        differences,
    } = comparison;
    let number = |number: &u64| i64::try_from(*number).unwrap_or(i64::MAX);
    ShadowStatus {
        compared: number(compared),
        equal: number(equal),
        different: number(different),
        only_serving: number(only_serving),
        only_shadow: number(only_shadow),
        left_out: number(left_out),
        differences: differences.iter().take(MAX_DIFFERENCES).map(difference).collect(),
        ..status
    }
}

fn difference(difference: &WriteDifference) -> ShadowDifference {
    let WriteDifference { verb, object, path, serving: _, shadow: _ } = difference;
    let shortened = |text: &str| conditions::shortened_to(LONGEST_TEXT, text);
    ShadowDifference { verb: (*verb).to_owned(), object: shortened(object), path: shortened(path) }
}

#[cfg(test)]
mod tests;
