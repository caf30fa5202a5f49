use std::collections::VecDeque;
use std::sync::Arc;

use super::super::conditions::Stage;
use super::super::types::PluginSpec;
use super::*;
use crate::account::Account;
use crate::report::Timestamp;
use crate::status::{Phase, RecordedError};

fn record(resolution: Result<Option<Problem>, Problem>) -> ShadowRecord {
    let spec = serde_json::json!({
        "source": {}, "serviceAccountName": "a", "shadow": {"source": {"file": {"path": "next.wasm"}}},
    });
    let spec: PluginSpec = serde_json::from_value(spec).unwrap();
    let account: Account = "team/a".parse().unwrap();
    let mut record = ShadowRecord::of(&spec, account, None).unwrap();
    record.resolution = resolution;
    record
}

fn problem(reason: &'static str, is_unknown: bool) -> Problem {
    Problem { stage: Stage::Fetched, reason, message: "why".to_owned(), is_unknown }
}

fn loaded(phase: Phase, generation: u64) -> PluginStatus {
    let text = || "t".to_owned();
    PluginStatus { phase, generation, ..PluginStatus::loading(Arc::from("a.shadow"), text(), text(), text()) }
}

/// Returns the condition as one line.
fn ready(resolution: Result<Option<Problem>, Problem>, loaded: Option<&PluginStatus>) -> String {
    let record = record(resolution);
    let shadow = Shadow { record: &record, loaded, comparison: None, with_numbers: true };
    let Finding { kind, status, reason, message } = shadow.ready();
    format!("{kind}={status} {reason}: {message}")
}

#[test]
fn a_shadow_is_ready_when_the_newest_component_of_its_source_serves() {
    let serving = loaded(Phase::Serving, 1);
    insta::assert_snapshot!(ready(Ok(None), Some(&serving)), @"ShadowReady=True Serving: version unknown, generation 1");
    insta::assert_snapshot!(ready(Ok(Some(problem("Unavailable", true))), Some(&serving)), @"ShadowReady=True SourceUnavailable: version unknown, generation 1; fetched before: why");
    insta::assert_snapshot!(ready(Ok(Some(problem("NotSigned", false))), Some(&serving)), @"ShadowReady=True FetchedBefore: version unknown, generation 1; fetched before: why");
    // The source of the newest spec, whatever serves.
    insta::assert_snapshot!(ready(Err(problem("NotFound", false)), Some(&serving)), @"ShadowReady=False NotFound: why");
    insta::assert_snapshot!(ready(Err(problem("Unavailable", true)), None), @"ShadowReady=Unknown Unavailable: why");
    insta::assert_snapshot!(ready(Ok(None), None), @"ShadowReady=False Loading: the host has not begun to load it");
    let time = Timestamp::now();
    let refused = PluginStatus {
        refused: Some(RecordedError { time, message: "it is no component".to_owned() }),
        ..serving.clone()
    };
    insta::assert_snapshot!(ready(Ok(None), Some(&refused)), @"ShadowReady=False Refused: it is no component");
    let older = PluginStatus {
        digest: Some("ab".to_owned()),
        waits_for: vec!["the right to x".to_owned()],
        ..serving
    };
    insta::assert_snapshot!(ready(Ok(None), Some(&older)), @"ShadowReady=False Loading: it is being loaded, and the component before runs on; it waits for the right to x");
}

#[test]
fn a_shadow_of_a_new_spec_was_not_fetched_yet() {
    let spec = serde_json::json!({"source": {}, "serviceAccountName": "a", "shadow": {"source": {}}});
    let spec: PluginSpec = serde_json::from_value(spec).unwrap();
    let record = ShadowRecord::of(&spec, "team/a".parse().unwrap(), None).unwrap();
    insta::assert_snapshot!(ready(record.resolution, None), @"ShadowReady=Unknown Fetching: the host has not fetched the component yet");
    let without = PluginSpec { shadow: None, ..spec };
    assert!(ShadowRecord::of(&without, "team/a".parse().unwrap(), None).is_none());
}

#[test]
fn a_status_has_no_values_and_few_bounded_texts() {
    let record = record(Ok(None));
    let serving = PluginStatus { digest: Some("ab".to_owned()), ..loaded(Phase::Serving, 1) };
    let difference = |n: usize| WriteDifference {
        verb: "apply",
        object: format!("configmaps default/{n}-{}", "o".repeat(1_000)),
        path: format!("/data/{}", "p".repeat(1_000)),
        serving: Some("5eaf".to_owned()),
        shadow: Some("5eb0".to_owned()),
    };
    let comparison = ShadowView {
        digest: "ab".to_owned(),
        compared: 5,
        equal: 2,
        different: 3,
        only_serving: 7,
        only_shadow: 8,
        waiting: 9,
        left_out: 10,
        differences: (0..16).map(difference).collect::<VecDeque<_>>(),
    };
    let shadow =
        Shadow { record: &record, loaded: Some(&serving), comparison: Some(&comparison), with_numbers: true };
    let status = shadow.status(None);
    let numbers = [status.compared, status.equal, status.different, status.only_serving, status.only_shadow];
    assert_eq!((numbers, status.left_out), ([5, 2, 3, 7, 8], 10));
    assert_eq!((status.phase.as_str(), status.digest.as_deref()), ("Serving", Some("sha256:ab")));
    assert_eq!(status.differences.len(), MAX_DIFFERENCES);
    assert!(status.differences[0].object.starts_with("configmaps default/0-"));
    for ShadowDifference { object, path, .. } in &status.differences {
        assert_eq!([object.chars().count(), path.chars().count()], [LONGEST_TEXT; 2]);
    }
    assert!(!serde_json::to_string(&status).unwrap().contains("5e"), "a hash has a key of the process");
}

#[test]
fn numbers_are_written_in_whole_looks_only_unless_another_component_serves() {
    let record = record(Ok(None));
    let serving = PluginStatus { digest: Some("ab".to_owned()), ..loaded(Phase::Serving, 1) };
    let comparison = ShadowView { digest: "ab".to_owned(), compared: 5, equal: 5, ..ShadowView::default() };
    let status = |with_numbers, before: &ShadowStatus| {
        let (loaded, comparison) = (Some(&serving), Some(&comparison));
        Shadow { record: &record, loaded, comparison, with_numbers }.status(Some(before))
    };
    let before = |digest: &str| ShadowStatus {
        phase: "Loading".to_owned(),
        digest: Some(format!("sha256:{digest}")),
        compared: 1,
        ..ShadowStatus::default()
    };
    let same = status(false, &before("ab"));
    assert_eq!((same.compared, same.phase.as_str()), (1, "Serving"));
    assert_eq!(status(true, &before("ab")).compared, 5);
    assert_eq!(status(false, &before("cd")).compared, 5, "the numbers of before are about another component");
}

#[test]
fn a_merge_patch_of_a_shadow_without_a_version_removes_what_was_there() {
    let json = serde_json::to_value(ShadowStatus::default()).unwrap();
    assert_eq!((&json["digest"], &json["differences"]), (&serde_json::Value::Null, &serde_json::json!([])));
    assert_eq!(json.as_object().unwrap().len(), 9, "each member is written");
}
