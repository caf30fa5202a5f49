//! The conditions of a Plugin, from how its spec was resolved and from what the host does with it.
//!
//! | condition | True | False | Unknown |
//! |---|---|---|---|
//! | `Authorized` | the host may act as the account, and no right is missing | it may not, or a right is missing | the API server cannot be asked |
//! | `Fetched` | the component is there | it is not | the source cannot be asked |
//! | `Verified` | digest and signature are as required | they are not | not fetched yet |
//! | `Compiled` | its code is loaded | it cannot be compiled | it is being compiled |
//! | `Ready` | a version serves | no version serves | – |
//! | `ShadowReady`, if the spec has a shadow | the newest component of its source serves as the shadow | it does not | it is being fetched, or its source cannot be asked |
//! | `Degraded` | the newest version is not the one that serves, or it crashes, or work is parked | none of this | the spec cannot be resolved, since the source or the API server cannot be asked |
//!
//! While a new version is prepared, `Ready` and `Degraded` are about the version before, as their
//! `observedGeneration` says. The others are about the newest spec.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff;

use super::resolve::{Problem, Resolved};
use crate::generations::{GenerationState, GenerationView};
use crate::status::{Phase, PluginStatus, Writes};

/// The longest message of a condition. The API allows 32,768 bytes.
pub(super) const LONGEST_MESSAGE: usize = 1024;

/// What may fail before the host can load a version, in this order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Stage {
    /// The spec can be read.
    Read,
    /// The host may act as the account.
    Authorized,
    /// The component is fetched.
    Fetched,
    /// The component is verified.
    Verified,
    /// The rest of the spec is valid.
    Ready,
}

/// A condition without its times.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Finding {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The conditions about what the host does with the version that serves.
const OF_THE_VERSION: [&str; 2] = ["Ready", "Degraded"];

pub(super) const TRUE: &str = "True";
pub(super) const FALSE: &str = "False";
const UNKNOWN: &str = "Unknown";

/// Returns the six conditions of a plugin. `status` is what the host does with it, if it has loaded it. While
/// the newest spec is `in_progress`, an error in it is about a version before.
pub(super) fn find(
    resolution: &Result<Resolved, Problem>,
    status: Option<&PluginStatus>,
    in_progress: bool,
) -> Vec<Finding> {
    vec![
        authorized(resolution, status),
        fetched(resolution),
        verified(resolution),
        compiled(resolution, status, in_progress),
        ready("Ready", resolution.as_ref().map(drop), status),
        degraded(resolution, status),
    ]
}

/// Returns conditions with times and generations. A condition whose status is as before keeps the time of its
/// last transition. While the newest spec is `in_progress`, the conditions that are about the version before
/// keep their `observedGeneration`.
pub(super) fn dated(
    findings: Vec<Finding>,
    before: &[Condition],
    generation: Option<i64>,
    in_progress: bool,
    now: jiff::Timestamp,
) -> Vec<Condition> {
    let dated = |Finding { kind, status, reason, message }: Finding| {
        let before = before.iter().find(|it| it.type_ == kind);
        let same = before.filter(|it| it.status == status);
        let is_of_version_before = in_progress && OF_THE_VERSION.contains(&kind);
        Condition {
            last_transition_time: same.map_or(Time(now), |it| it.last_transition_time.clone()),
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason,
            message,
            observed_generation: match before {
                Some(before) if is_of_version_before => before.observed_generation,
                None if is_of_version_before => None,
                _ => generation,
            },
        }
    };
    findings.into_iter().map(dated).collect()
}

/// Shortens a text to the longest message.
pub(super) fn shortened(text: &str) -> String {
    shortened_to(LONGEST_MESSAGE, text)
}

/// Shortens a text to so many characters.
pub(super) fn shortened_to(longest: usize, text: &str) -> String {
    match text.char_indices().nth(longest - 1) {
        Some((end, _)) if text.chars().count() > longest => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

pub(super) fn finding(
    kind: &'static str,
    status: &'static str,
    reason: &str,
    message: impl AsRef<str>,
) -> Finding {
    Finding { kind, status, reason: reason.to_owned(), message: shortened(message.as_ref()) }
}

/// Returns the finding about what failed.
pub(super) fn problem(kind: &'static str, problem: &Problem) -> Finding {
    let status = if problem.is_unknown { UNKNOWN } else { FALSE };
    finding(kind, status, problem.reason, &problem.message)
}

/// Returns the finding about one stage of a spec that cannot be resolved; none if the stage succeeded.
fn unresolved(kind: &'static str, stage: Stage, found: &Problem) -> Option<Finding> {
    if found.stage > stage {
        return None;
    }
    Some(if found.stage == stage { problem(kind, found) } else { not_reached(kind, found) })
}

/// Returns the finding about a stage after the one that failed.
fn not_reached(kind: &'static str, found: &Problem) -> Finding {
    let (reason, message) = match found.stage {
        Stage::Read => (found.reason, "not tried before the spec can be read"),
        Stage::Authorized => ("NotAuthorized", "not tried before the host may act as the account"),
        Stage::Fetched => ("NotFetched", "not tried before the component is fetched"),
        Stage::Verified => ("NotVerified", "not tried before the component is verified"),
        Stage::Ready => (found.reason, "not tried before the rest of the spec can be used"),
    };
    finding(kind, UNKNOWN, reason, message)
}

fn authorized(resolution: &Result<Resolved, Problem>, status: Option<&PluginStatus>) -> Finding {
    const KIND: &str = "Authorized";
    if let Err(found) = resolution
        && let Some(unresolved) = unresolved(KIND, Stage::Authorized, found)
    {
        return unresolved;
    }
    if let Some((reason, message)) = status.and_then(missing_rights) {
        return finding(KIND, FALSE, reason, message);
    }
    match status.and_then(|it| it.subscriptions.iter().find_map(|it| it.paused.as_ref())) {
        Some(why) => finding(KIND, UNKNOWN, "ReviewFailed", why),
        None => finding(KIND, TRUE, "NamespaceOptedIn", "the host may act as the ServiceAccount"),
    }
}

/// Returns the reason and the message, if the account lacks a right that the newest version, or the one that
/// serves, needs to watch.
fn missing_rights(status: &PluginStatus) -> Option<(&'static str, String)> {
    if let Some(forbidden) = newest(status).filter(|it| it.state == GenerationState::Forbidden) {
        let waits_for = status.waits_for.join("; ");
        let message = if waits_for.is_empty() { forbidden.reason.to_string() } else { waits_for };
        return Some(("RightsMissing", message));
    }
    let why = status.subscriptions.iter().find_map(|it| it.forbidden.as_ref())?;
    Some(("SubscriptionForbidden", why.to_string()))
}

fn fetched(resolution: &Result<Resolved, Problem>) -> Finding {
    const KIND: &str = "Fetched";
    match resolution {
        Ok(Resolved { stale: Some(why), component, .. }) => {
            let message = format!("{}, fetched before: {}", component.digest(), why.message);
            finding(KIND, TRUE, reason_of_stale(why), message)
        }
        Ok(Resolved { component, .. }) => finding(KIND, TRUE, "Fetched", component.digest().to_string()),
        Err(found) => unresolved(KIND, Stage::Fetched, found)
            .unwrap_or_else(|| finding(KIND, TRUE, "Fetched", "the component was fetched")),
    }
}

/// Returns the reason for which a component is one that was fetched before.
pub(super) fn reason_of_stale(why: &Problem) -> &'static str {
    // A source that answers with what cannot be used is available.
    if why.is_unknown { "SourceUnavailable" } else { "FetchedBefore" }
}

fn verified(resolution: &Result<Resolved, Problem>) -> Finding {
    const KIND: &str = "Verified";
    match resolution {
        Ok(Resolved { verified, .. }) => finding(KIND, TRUE, "Verified", verified),
        Err(found) => unresolved(KIND, Stage::Verified, found)
            .unwrap_or_else(|| finding(KIND, TRUE, "Verified", "the component was verified")),
    }
}

fn compiled(
    resolution: &Result<Resolved, Problem>,
    status: Option<&PluginStatus>,
    in_progress: bool,
) -> Finding {
    const KIND: &str = "Compiled";
    let component = match resolution {
        Ok(Resolved { component, .. }) => component,
        Err(found) => return not_reached(KIND, found),
    };
    let digest = component.digest().to_hex();
    let of_digest = |it: &&GenerationView| it.digest.as_ref() == Some(&digest);
    match status.and_then(|it| it.generations.iter().rev().find(of_digest)) {
        Some(_) => finding(KIND, TRUE, "Compiled", format!("sha256:{digest}")),
        None => match status.and_then(|it| it.refused.as_ref()).filter(|_| !in_progress) {
            Some(refused) => finding(KIND, FALSE, "CompilationFailed", &refused.message),
            None => {
                let waits_for = status.map(|it| it.waits_for.join("; ")).unwrap_or_default();
                finding(KIND, UNKNOWN, "Compiling", waits_for)
            }
        },
    }
}

/// Returns whether a version serves.
pub(super) fn ready(
    kind: &'static str,
    resolution: Result<(), &Problem>,
    status: Option<&PluginStatus>,
) -> Finding {
    let Some(status) = status else {
        return match resolution {
            Err(found) => finding(kind, FALSE, found.reason, &found.message),
            Ok(()) => finding(kind, FALSE, "Loading", "the host has not begun to load it"),
        };
    };
    let serving = || {
        let version = status.version.as_deref().unwrap_or("unknown");
        let writes = match status.writes {
            Writes::Stored | Writes::Withheld => "",
            Writes::DryRun => "; its writes are dry runs",
            Writes::Suspended => "; its writes are suspended",
        };
        format!("version {version}, generation {}{writes}", status.generation)
    };
    match status.phase {
        Phase::Serving => finding(kind, TRUE, "Serving", serving()),
        Phase::Restarting => finding(kind, TRUE, "Restarting", serving()),
        Phase::Suspended => finding(kind, FALSE, "Suspended", "the host does not call the plugin"),
        Phase::Standby => {
            finding(kind, FALSE, "Standby", "the host is ready to call the plugin when it leads")
        }
        Phase::Refused | Phase::Loading => match (resolution, &status.refused) {
            (Err(found), _) => finding(kind, FALSE, found.reason, &found.message),
            (_, Some(refused)) => finding(kind, FALSE, "Refused", &refused.message),
            (_, None) if status.waits_for.is_empty() => finding(kind, FALSE, "Loading", "it is being loaded"),
            (_, None) => {
                finding(kind, FALSE, "Loading", format!("it waits for {}", status.waits_for.join("; ")))
            }
        },
    }
}

fn degraded(resolution: &Result<Resolved, Problem>, status: Option<&PluginStatus>) -> Finding {
    const KIND: &str = "Degraded";
    let (stale, unknown) = match resolution {
        Ok(resolved) => (resolved.stale.as_ref(), None),
        Err(found) if found.is_unknown => (None, Some(found)),
        Err(found) => return finding(KIND, TRUE, found.reason, &found.message),
    };
    let as_expected = || {
        if let Some(found) = unknown {
            return problem(KIND, found);
        }
        let message = match stale {
            Some(_) => "the version that was fetched last serves, or it is being loaded",
            None => "the newest version is the one that serves, or it is being loaded",
        };
        finding(KIND, FALSE, "AsExpected", message)
    };
    let Some(status) = status else { return as_expected() };
    if let Some(refused) = &status.refused {
        // The version that the host went back to may have the highest number.
        let refused_one = status.generations.iter().rev().find(|it| it.number != status.generation);
        let is_quarantined = refused_one.is_some_and(|it| it.state == GenerationState::Quarantined);
        let reason = if is_quarantined { "RolledBack" } else { "NewVersionRefused" };
        return finding(KIND, TRUE, reason, &refused.message);
    }
    if status.phase == Phase::Restarting {
        let error = status.last_error.as_ref().map_or("the instance was lost", |it| &it.message);
        return finding(KIND, TRUE, "CrashLoop", error);
    }
    // A registry that is down says nothing about newer versions.
    if let Some(refused) = stale.filter(|it| !it.is_unknown) {
        return finding(KIND, TRUE, refused.reason, &refused.message);
    }
    if let Some((reason, message)) = missing_rights(status) {
        return finding(KIND, TRUE, reason, message);
    }
    if status.n_parked() > 0 {
        let message = "it failed to handle some objects or keys, which are parked: see status.parked and `kubectl oarlock dead-letters`";
        return finding(KIND, TRUE, "Parked", message);
    }
    as_expected()
}

fn newest(status: &PluginStatus) -> Option<&GenerationView> {
    status.generations.last()
}

#[cfg(test)]
pub(super) mod tests;
