//! Which Events a change of a Plugin's status is worth.
//!
//! | the change | the Event |
//! |---|---|
//! | a condition becomes bad, or has another reason for it | Warning, with the reason of the condition |
//! | `Ready` or `ShadowReady` is false while all is as it should be: `Loading`, `Suspended`, `Standby` | Normal, the same |
//! | `Ready` becomes true, or has another reason for it | Normal, the same |
//! | another condition is good after it was bad | Normal, the same; `Recovered` for `Degraded` |
//! | another version serves | Normal `Switched` |
//!
//! Conditions that fail for the same reason share an Event. That a condition becomes unknown, or was unknown,
//! is worth none, except for `Degraded`: then the newest spec is not used. What repeats is counted and
//! bounded where Events are recorded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use oarlock_event_recorder::EventType;

use super::types::PluginStatus;

/// The reasons for which a plugin or a shadow is not ready although nothing is wrong.
const EXPECTED: [&str; 3] = ["Loading", "Suspended", "Standby"];

/// What an Event says about a transition.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Transition {
    pub(super) event_type: EventType,
    pub(super) reason: String,
    pub(super) message: String,
}

/// Returns the transitions between two statuses, in the order of the conditions.
pub(super) fn between(before: &PluginStatus, after: &PluginStatus) -> Vec<Transition> {
    let mut transitions: Vec<Transition> = Vec::new();
    for condition in &after.conditions {
        let before = before.conditions.iter().find(|it| it.type_ == condition.type_);
        if let Some(transition) = of_condition(before, condition)
            && transitions.iter().all(|it| it.reason != transition.reason)
        {
            transitions.push(transition);
        }
    }
    transitions.extend(switched(before, after));
    transitions
}

fn of_condition(before: Option<&Condition>, condition: &Condition) -> Option<Transition> {
    let Condition { type_, status, reason, message, .. } = condition;
    let is_same = before.is_some_and(|it| it.status == *status && it.reason == *reason);
    if is_same || (status == "Unknown" && !is_bad(condition)) {
        return None;
    }
    let transition = |event_type, reason: &str, message| {
        Some(Transition { event_type, reason: reason.to_owned(), message })
    };
    let said = format!("{type_}: {message}");
    if is_bad(condition) {
        let is_expected = ["Ready", "ShadowReady"].contains(&&**type_) && EXPECTED.contains(&&**reason);
        let event_type = if is_expected { EventType::Normal } else { EventType::Warning };
        return transition(event_type, reason, said);
    }
    match before {
        // That all is well with a new plugin is worth one Event, not six.
        _ if type_ == "Ready" => transition(EventType::Normal, reason, said),
        Some(before) if is_bad(before) => {
            let reason = if type_ == "Degraded" { "Recovered" } else { reason };
            let message = format!("{type_} is {status} after {}: {message}", before.reason);
            transition(EventType::Normal, reason, message)
        }
        _ => None,
    }
}

fn switched(before: &PluginStatus, after: &PluginStatus) -> Option<Transition> {
    // Another host counts its generations from 1.
    let is_another_spec =
        before.observed_generation != after.observed_generation && before.generation != after.generation;
    let is_another = before.digest != after.digest || is_another_spec;
    let (Some(_), Some(digest), Some(version), true) =
        (&before.digest, &after.digest, &after.version, is_another)
    else {
        return None;
    };
    let message = format!("version {version} serves, {digest}");
    Some(Transition { event_type: EventType::Normal, reason: "Switched".to_owned(), message })
}

/// Returns whether a condition says that something is wrong. An unknown one does not, except for `Degraded`:
/// the version that serves is not known to be that of the newest spec.
fn is_bad(condition: &Condition) -> bool {
    match &*condition.type_ {
        "Degraded" => condition.status != "False",
        _ => condition.status == "False",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a status with these conditions: type, status and reason.
    fn status(conditions: &[&str]) -> PluginStatus {
        let condition = |text: &&str| {
            let (type_, rest) = text.split_once('=').unwrap();
            let (status, reason) = rest.split_once(' ').unwrap();
            serde_json::from_value(json!({
                "type": type_, "status": status, "reason": reason, "message": "so it is",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }))
            .unwrap()
        };
        PluginStatus { conditions: conditions.iter().map(condition).collect(), ..PluginStatus::default() }
    }

    fn lines(transitions: &[Transition]) -> String {
        let line = |it: &Transition| format!("{} {}", it.event_type.as_str(), it.reason);
        transitions.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn each_transition_of_a_condition_is_worth_one_event() {
        for (before, after, events) in [
            // A new plugin.
            (&[][..], &["Authorized=True NamespaceOptedIn", "Ready=True Serving"][..], "Normal Serving"),
            (&[], &["Fetched=True Fetched", "Ready=False Loading"], "Normal Loading"),
            (&["Compiled=Unknown Compiling"], &["Compiled=True Compiled"], ""),
            (
                &[],
                &[
                    "Authorized=False AccountMissing",
                    "Fetched=Unknown NotAuthorized",
                    "Ready=False AccountMissing",
                ],
                "Warning AccountMissing",
            ),
            // Something becomes bad, or bad for another reason.
            (&["Ready=True Serving"], &["Ready=False Refused"], "Warning Refused"),
            (&["Verified=True Verified"], &["Verified=False DigestMismatch"], "Warning DigestMismatch"),
            (&["Degraded=False AsExpected"], &["Degraded=True Parked"], "Warning Parked"),
            (&["Degraded=True Parked"], &["Degraded=True CrashLoop"], "Warning CrashLoop"),
            (&["Degraded=True CrashLoop"], &["Degraded=True RolledBack"], "Warning RolledBack"),
            (&["Degraded=True Parked"], &["Degraded=True Parked"], ""),
            (&["Authorized=True NamespaceOptedIn"], &["Authorized=Unknown ReviewFailed"], ""),
            // A condition becomes good again, while Ready stays.
            (&["Degraded=True Parked"], &["Degraded=False AsExpected"], "Normal Recovered"),
            (&["Degraded=True CrashLoop"], &["Degraded=False AsExpected"], "Normal Recovered"),
            (&["Degraded=True RolledBack"], &["Degraded=False AsExpected"], "Normal Recovered"),
            (
                &["Authorized=False RightsMissing", "Ready=True Serving"],
                &["Authorized=True NamespaceOptedIn", "Ready=True Serving"],
                "Normal NamespaceOptedIn",
            ),
            (&["Fetched=False NotFound"], &["Fetched=True Fetched"], "Normal Fetched"),
            (&["Verified=False DigestMismatch"], &["Verified=True Verified"], "Normal Verified"),
            (&["Compiled=False CompilationFailed"], &["Compiled=True Compiled"], "Normal Compiled"),
            (&["Fetched=True SourceUnavailable"], &["Fetched=True Fetched"], ""),
            // The source of the newest spec cannot be asked, while the version before serves.
            (&["Degraded=False AsExpected"], &["Degraded=Unknown Unavailable"], "Warning Unavailable"),
            (&["Degraded=True NotFound"], &["Degraded=Unknown Unavailable"], "Warning Unavailable"),
            (&["Degraded=Unknown Unavailable"], &["Degraded=False AsExpected"], "Normal Recovered"),
            (&["Fetched=Unknown NotAuthorized"], &["Fetched=True Fetched"], ""),
            // Ready, and one Event for each condition that recovers with it.
            (
                &[
                    "Authorized=False AccountMissing",
                    "Ready=False AccountMissing",
                    "Degraded=True AccountMissing",
                ],
                &["Authorized=True NamespaceOptedIn", "Ready=True Serving", "Degraded=False AsExpected"],
                "Normal NamespaceOptedIn, Normal Serving, Normal Recovered",
            ),
            (&["Ready=True Serving"], &["Ready=False Suspended"], "Normal Suspended"),
            (&["Ready=False Suspended"], &["Ready=True Serving"], "Normal Serving"),
            (&["Ready=False Standby"], &["Ready=True Serving"], "Normal Serving"),
            (&["Ready=True Serving"], &["Ready=True Restarting"], "Normal Restarting"),
            // A shadow.
            (&["ShadowReady=Unknown Fetching"], &["ShadowReady=False Loading"], "Normal Loading"),
            (&["ShadowReady=False Loading"], &["ShadowReady=True Serving"], "Normal Serving"),
            (&["ShadowReady=True Serving"], &["ShadowReady=False NotFound"], "Warning NotFound"),
            (&["ShadowReady=True Serving"], &[], ""),
        ] {
            let found = between(&status(before), &status(after));
            assert_eq!(lines(&found), events, "{before:?} → {after:?}");
        }
    }

    #[test]
    fn an_event_says_what_was_wrong() {
        let said =
            |before: &str, after: &str| between(&status(&[before]), &status(&[after])).remove(0).message;
        assert_eq!(said("Ready=True Serving", "Ready=False Refused"), "Ready: so it is");
        assert_eq!(
            said("Degraded=True CrashLoop", "Degraded=False AsExpected"),
            "Degraded is False after CrashLoop: so it is"
        );
    }

    #[test]
    fn another_version_is_worth_an_event_when_both_serve() {
        let serving = |spec: i64, number: i64, digest: &str| PluginStatus {
            observed_generation: Some(spec),
            generation: Some(number),
            version: Some("1.0.0".to_owned()),
            digest: Some(digest.to_owned()),
            ..PluginStatus::default()
        };
        let none = PluginStatus::default();
        for (before, after, events) in [
            (serving(1, 1, "a"), serving(2, 2, "b"), "Normal Switched"),
            // The same component with another configuration.
            (serving(1, 1, "a"), serving(2, 2, "a"), "Normal Switched"),
            // Another host, which has loaded fewer versions.
            (serving(1, 3, "a"), serving(1, 1, "a"), ""),
            (none.clone(), serving(1, 1, "a"), ""),
            (serving(1, 1, "a"), none, ""),
        ] {
            assert_eq!(lines(&between(&before, &after)), events, "{before:?} → {after:?}");
        }
    }
}
