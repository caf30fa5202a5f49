//! What a report says of components that differ from a record, and of records that end early.

use serde_json::Value;

use super::*;

/// Returns a record of three keys, with each entry in a block of its own.
async fn keys(host: &Host, folder: &Path) -> Vec<u8> {
    rewritten(&three_keys(host, folder).await, |_| ())
}

/// Changes the first call of a record.
fn with_first_call(file: &[u8], part: &str, value: Value) -> Vec<u8> {
    let is_first = |entry: &&mut Value| entry["entry"] == "call" && entry["number"] == 1;
    rewritten(file, |entries| entries.iter_mut().find(is_first).unwrap()[part] = value)
}

#[tokio::test]
async fn a_replay_up_to_a_call_goes_on_after_earlier_differences() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("reconciles").await;
    let file = keys(&host, folder.path()).await;
    let file = with_first_call(&file, "ended", json!({"answer": "another"}));
    let options = Options { until: Some(2), ..Options::default() };
    let mut seen = Vec::new();
    let each = |step: oarlock_plugin::replay::Step<'_>| {
        seen.push((step.call.number, step.differences.len()));
    };
    let mut reader = Reader::new(&file[..]).unwrap();
    let report = replay(&mut reader, &host.component, &options, each).await.unwrap();
    seen.retain(|(number, _)| *number > 0);
    assert_eq!(seen, [(1, 1), (2, 0)]);
    assert_eq!(report.differences.len(), 1);
}

#[tokio::test]
async fn the_reason_of_a_component_of_the_other_kind_is_the_first_difference() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("reconciles").await;
    let file = keys(&host, folder.path()).await;
    // Imports that the handler will not call.
    let enabled = json!([{"function": "log.enabled", "arguments": {}, "answer": true}]);
    let file = with_first_call(&file, "imports", enabled);
    let handler = Component::compile(engine(), guest("traps")).await.unwrap();
    let report = replay_with(&file, &handler, &Options::default()).await.unwrap();
    insta::assert_snapshot!(text(&report), @r#"call 1 reconcile import None end: {"Ok":"Done"} != the component does not export `reconciler`"#);
}

#[tokio::test]
async fn a_record_without_a_last_entry_has_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("reconciles").await;
    let file = keys(&host, folder.path()).await;
    let notes = async |file: &[u8]| {
        let report = replay_with(file, &host.component, &Options::default()).await.unwrap();
        assert_eq!(text(&report), "");
        report.notes.join("\n")
    };
    assert_eq!(notes(&file).await, "");
    let between = rewritten(&file, |entries| assert_eq!(entries.pop().unwrap()["entry"], "end"));
    insta::assert_snapshot!(notes(&between).await, @"the record has no last entry: the host was ended before it wrote one, or still writes");
    insta::assert_snapshot!(notes(&file[..file.len() - 1]).await, @"the record ends within a block: the host was ended while it wrote, or its disk was full");
    // Where the replay stops before the end, it is not known.
    let options = Options { until: Some(1), ..Options::default() };
    let report = replay_with(&between, &host.component, &options).await.unwrap();
    assert_eq!(report.notes, [""; 0]);
}

#[tokio::test]
async fn a_record_of_several_versions_says_which_calls_are_whose() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("reconciles").await;
    let file = keys(&host, folder.path()).await;
    let digest = host.component.digest().to_string();
    // The same calls by another version before.
    let file = rewritten(&file, |entries| {
        let end = entries.pop().unwrap();
        let mut before = entries.split_off(1);
        let mut after = before.clone();
        for entry in &mut before {
            match entry["entry"].as_str().unwrap() {
                "generation" => entry["digest"] = json!("0123456789abcdef"),
                "call" => entry["ended"] = json!({"answer": "another"}),
                _ => {}
            }
        }
        for entry in &mut after {
            match entry["entry"].as_str().unwrap() {
                "generation" => entry["generation"] = json!(2),
                "start" => entry["generation"] = json!(2),
                "call" => entry["number"] = json!(entry["number"].as_u64().unwrap() + 3),
                _ => {}
            }
        }
        entries.extend(before.into_iter().chain(after).chain([end]));
    });
    // The replay stops at the first call, and the note knows the later ones.
    let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
    assert_eq!((report.calls, report.differences.len()), (1, 1));
    let [note] = &report.notes[..] else { panic!("{report:?}") };
    insta::assert_snapshot!(note.replace(&digest[..12], "DIGEST"), @"the record has calls of several versions: calls 1 to 3 of 0.1.0 (0123456789ab), calls 4 to 6 of 0.1.0 (DIGEST, the component)");

    // Only the calls of one of them.
    let of = |digest: &str| Options { of: Some(digest.to_owned()), ..Options::default() };
    let report = replay_with(&file, &host.component, &of(&digest[..12])).await.unwrap();
    assert_eq!((report.calls, report.skipped, &report.differences[..]), (3, 0, &[][..]));
    assert_eq!(report.notes, [""; 0]);
    let report = replay_with(&file, &host.component, &of("0123")).await.unwrap();
    assert_eq!((report.calls, report.differences.len()), (1, 1));
    let refused = async |options: Options| {
        let error = replay_with(&file, &host.component, &options).await.unwrap_err();
        error.to_string().replace(&digest[..12], "DIGEST")
    };
    insta::assert_snapshot!(refused(of("f00d")).await, @"no version in the record has a digest that begins with f00d: it has calls 1 to 3 of 0.1.0 (0123456789ab), calls 4 to 6 of 0.1.0 (DIGEST, the component)");
    let call = |number, digest: &str| Options { until: Some(number), ..of(digest) };
    insta::assert_snapshot!(refused(call(4, "0123")).await, @"call 4 was not made by the version whose digest begins with 0123");
    // The record names its version later.
    assert!(refused(call(1, "f00d")).await.starts_with("no version in the record"));
    insta::assert_snapshot!(refused(call(1, &digest)).await.replace(&digest[12..], "…"), @"call 1 was not made by the version whose digest begins with DIGEST…");
}
