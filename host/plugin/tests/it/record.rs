//! Sessions of real components are recorded, and replayed without the host's answers.

mod differing;

use std::{path::Path, sync::Arc};

use oarlock_plugin::{
    Component, Instance, InstanceConfig, Limits,
    contract::{Added, Deleted, ObjectKey, Synced, Updated, WorkKey},
    guest::{GuestMetrics, Usage},
    kube_access::KubeAccess,
    record::{Budget, Config, Ended, Entry, Reader, Recorder},
    replay::{Options, ReplayError, Report, replay},
};
use serde_json::json;

use super::{
    fake::{FakeObject, config_map, object_ref},
    support::{Add as _, Host, add, deadline, engine, guest},
};

/// Records what `session` does with instances of a guest, and returns the file.
async fn record(
    host: &Host,
    folder: &Path,
    session: impl AsyncFnOnce(&InstanceConfig, &Component),
) -> Vec<u8> {
    let file = folder.join(format!("{}.record", rand_name()));
    let budget = Budget::new(64 << 20);
    let config = Config { file: file.clone(), budget, secrets: false, plugin: "guest".into(), host: "test" };
    let (recorder, writer) = Recorder::create(config).unwrap();
    let description = host.describe().await.unwrap();
    let config = InstanceConfig {
        config: host.config.clone().into(),
        limits: host.limits.clone(),
        access: KubeAccess::of(Arc::clone(&host.kube)),
        log: Arc::clone(&host.log),
        metrics: Arc::new(GuestMetrics::new()),
        usage: Usage::default(),
        share: engine().share(100),
        interception: Some(recorder.generation(1, host.component.digest(), &description, None)),
    };
    session(&config, &host.component).await;
    drop((config, recorder));
    writer.run(std::future::pending()).await.unwrap();
    std::fs::read(file).unwrap()
}

fn rand_name() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
}

async fn replay_with(file: &[u8], component: &Component, options: &Options) -> Result<Report, ReplayError> {
    replay(&mut Reader::new(file).unwrap(), component, options, |_| {}).await
}

fn text(report: &Report) -> String {
    let line = |it: &oarlock_plugin::replay::Difference| {
        format!(
            "call {} {} import {:?} {}: {} != {}\n",
            it.call, it.function, it.import, it.at, it.recorded, it.actual
        )
    };
    report.differences.iter().map(line).collect()
}

/// All notifications about one object.
async fn lifetime(config: &InstanceConfig, component: &Component) {
    let mut instance = Instance::new(component, config.clone()).await.unwrap();
    let (added, object) = add("default", "a");
    let added = Added { fields: vec![Some("\"1\"".into()), None], ..added };
    instance.on_add(&added.borrowed().argument(), object).await.unwrap().unwrap();
    let (old, new) = (config_map("default", "a", 1), config_map("default", "a", 2));
    let updated = Updated {
        subscription: "configmaps".into(),
        object: object_ref(&new),
        old_resource_version: object_ref(&old).resource_version,
        old_uid: None,
        fields: vec![Some("\"2\"".into()), None],
        old_fields: vec![Some("\"1\"".into()), None],
    };
    let (old, new) = (FakeObject::new(&old), FakeObject::new(&new));
    instance.on_update(&updated.borrowed().argument(), old, new.clone()).await.unwrap().unwrap();
    let deleted = Deleted {
        subscription: "configmaps".into(),
        object: object_ref(&new.object),
        final_state_unknown: true,
        fields: vec![None, None],
    };
    instance.on_delete(&deleted.borrowed().argument(), new).await.unwrap().unwrap();
    instance.on_synced(&Synced { subscription: "configmaps".into(), remaining: 0 }).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_replay_of_the_same_component_is_equal_in_every_language() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hello-rust", "hello-c", "hello-go", "hello-ts", "hello-python"] {
        let host = Host::new(name).await;
        host.kube.put(&config_map("default", "a", 1));
        let file = record(&host, folder.path(), lifetime).await;
        for _ in 0..2 {
            let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
            assert_eq!((report.calls, report.starts, report.skipped), (4, 1, 0), "{name}");
            assert!(report.imports >= 8, "{name}: {report:?}");
            assert_eq!(text(&report), "", "{name}");
            assert!(report.exact, "{name} uses no Secrets");
        }
    }
}

#[tokio::test]
async fn a_record_is_not_exact_where_a_value_of_a_secret_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("hello-rust").await;
    host.kube.put(&config_map("default", "a", 1));
    let file = record(&host, folder.path(), lifetime).await;
    let is_exact = async |change: fn(&mut serde_json::Value)| {
        let file = rewritten(&file, |entries| entries.iter_mut().for_each(change));
        replay_with(&file, &host.component, &Options::default()).await.unwrap().exact
    };
    assert!(is_exact(|_| ()).await);
    let changes: [fn(&mut serde_json::Value); 4] = [
        |it| {
            if it["entry"] == "generation" {
                it["declares-secrets"] = json!(true);
            }
        },
        // Of an earlier version.
        |it| {
            if it["entry"] == "generation" {
                it.as_object_mut().unwrap().remove("declares-secrets").unwrap();
            }
        },
        // Of a generation that the record lacks.
        |it| {
            if it["entry"] == "generation" {
                it["generation"] = json!(7);
            }
        },
        // An undeclared read.
        |it| {
            if it["entry"] == "call" && it["imports"][0].is_object() {
                it["imports"][0]["arguments"]["target"] = json!({"group": "", "plural": "secrets"});
            }
        },
    ];
    for change in changes {
        assert!(!is_exact(change).await);
    }
    // The record has them as they were.
    assert!(
        is_exact(|it| match it["entry"].as_str() {
            Some("file") => it["exact"] = json!(true),
            Some("generation") => it["declares-secrets"] = json!(true),
            _ => {}
        })
        .await
    );
}

#[tokio::test]
async fn a_replay_never_asks_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("makes-mistakes").await;
    host.kube.put(&config_map("default", "a", 1));
    let file = record(&host, folder.path(), async |config, component| {
        let mut instance = Instance::new(component, config.clone()).await.unwrap();
        instance.add("default", "a").await.unwrap().unwrap();
    })
    .await;
    host.kube.remove(&config_map("default", "a", 1));
    let lines = host.lines().len();
    let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
    assert_eq!(text(&report), "");
    assert!(report.imports > 100, "{report:?}");
    assert_eq!(host.lines().len(), lines);
}

#[tokio::test]
async fn another_component_differs_and_the_first_difference_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("hello-rust").await;
    host.kube.put(&config_map("default", "a", 1));
    let file = record(&host, folder.path(), lifetime).await;
    let other = Component::compile(engine(), guest("makes-mistakes")).await.unwrap();
    let report = replay_with(&file, &other, &Options::default()).await.unwrap();
    assert_eq!(report.differences.len(), 1);
    let first = &report.differences[0];
    assert_eq!((first.call, first.function.as_str()), (1, "on-add"), "{first:?}");
    assert!(first.import.is_some() && first.recorded != first.actual, "{first:?}");
    let options = Options { keep_going: true, ..Options::default() };
    let report = replay_with(&file, &other, &options).await.unwrap();
    assert_eq!((report.calls, report.starts), (4, 1));
    let calls: std::collections::BTreeSet<_> = report.differences.iter().map(|it| it.call).collect();
    assert!(calls.len() >= 2, "{}", text(&report));
}

/// A recorded argument that another version would not pass.
#[tokio::test]
async fn a_changed_argument_is_named_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("hello-rust").await;
    host.kube.put(&config_map("default", "a", 1));
    let file = record(&host, folder.path(), lifetime).await;
    let file = edited(&file, |entry| {
        let Entry::Call(call) = entry else { return };
        for import in call.imports.iter_mut().filter(|_| call.number == 2) {
            if import.function == "log.log" {
                import.arguments["message"] = "another".into();
            }
        }
    });
    let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
    let [difference] = &report.differences[..] else { panic!("{report:?}") };
    assert_eq!((difference.call, difference.at.as_str()), (2, "log.log /message"));
    assert_eq!(difference.recorded, "\"another\"");
    let options = Options { ignore: vec!["log".to_owned()], ..Options::default() };
    let report = replay_with(&file, &host.component, &options).await.unwrap();
    assert_eq!(text(&report), "");
}

#[tokio::test]
async fn a_failure_that_happens_again_is_equal() {
    let folder = tempfile::tempdir().unwrap();
    for (name, object) in [("traps", "overflow"), ("loops", "a"), ("allocates", "without end")] {
        let limits = Limits { memory: 8 << 20, ..deadline(std::time::Duration::from_millis(200)) };
        let host = Host::with(name, limits, json!({})).await;
        let file = record(&host, folder.path(), async |config, component| {
            let mut instance = Instance::new(component, config.clone()).await.unwrap();
            instance.add("default", object).await.unwrap_err();
        })
        .await;
        let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
        assert_eq!(text(&report), "", "{name}");
        assert_eq!((report.calls, report.starts), (1, 1));
        // The same call without a failure in the record.
        let file = edited(&file, |entry| {
            if let Entry::Call(call) = entry {
                call.ended = Ended::Answer(json!({ "Ok": null }));
            }
        });
        let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
        assert_eq!(report.differences[0].at, "end", "{name}");
    }
}

/// The host cancels the wait at the deadline, so the record has no answer of that import.
#[tokio::test]
async fn a_call_that_waited_beyond_its_deadline_is_equal() {
    let folder = tempfile::tempdir().unwrap();
    let host =
        Host::with("waits-for-the-host", deadline(std::time::Duration::from_millis(100)), json!({})).await;
    let file = record(&host, folder.path(), async |config, component| {
        let mut instance = Instance::new(component, config.clone()).await.unwrap();
        instance.add("default", "a").await.unwrap_err();
    })
    .await;
    let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
    assert_eq!(text(&report), "");
}

#[tokio::test]
async fn keys_of_a_reconciler_are_replayed_up_to_the_call_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("reconciles").await;
    let file = three_keys(&host, folder.path()).await;
    let report = replay_with(&file, &host.component, &Options::default()).await.unwrap();
    assert_eq!(text(&report), "");
    let until = Options { until: Some(2), ..Options::default() };
    let shorter = replay_with(&file, &host.component, &until).await.unwrap();
    assert!(shorter.calls < report.calls && shorter.calls == 2, "{shorter:?} {report:?}");
}

/// Records the calls of three keys of a reconciler.
async fn three_keys(host: &Host, folder: &Path) -> Vec<u8> {
    record(host, folder, async |config, component| {
        let mut instance = Instance::new(component, config.clone()).await.unwrap();
        for name in ["a", "b", "c"] {
            let object = ObjectKey { namespace: "default".into(), name: name.into() };
            let _ = instance.reconcile(&WorkKey { kind: "configmaps".into(), object }).await;
            if !instance.is_alive() {
                instance = Instance::new(component, config.clone()).await.unwrap();
            }
        }
    })
    .await
}

/// Decodes a record, changes its entries, and encodes it again.
fn edited(file: &[u8], mut edit: impl FnMut(&mut Entry)) -> Vec<u8> {
    let mut reader = Reader::new(file).unwrap();
    let mut lines = Vec::new();
    while let Some(mut entry) = reader.next_entry().unwrap() {
        edit(&mut entry);
        serde_json::to_writer(&mut lines, &entry).unwrap();
        lines.push(b'\n');
    }
    let packed = zstd::bulk::compress(&lines, 3).unwrap();
    let length = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    [&file[..12], &length(packed.len()), &length(lines.len()), &packed].concat()
}

/// Decodes a record into its entries as JSON, has them changed, and encodes them again.
fn rewritten(file: &[u8], change: impl FnOnce(&mut Vec<serde_json::Value>)) -> Vec<u8> {
    let mut reader = Reader::new(file).unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        entries.push(serde_json::to_value(entry).unwrap());
    }
    change(&mut entries);
    let length = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let mut file = file[..12].to_vec();
    for entry in entries {
        let line = entry.to_string();
        let packed = zstd::bulk::compress(line.as_bytes(), 1).unwrap();
        file.extend([&length(packed.len())[..], &length(line.len()), &packed].concat());
    }
    file
}

#[tokio::test]
async fn a_hostile_record_is_refused_or_replayed_in_part_and_never_more() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new("hello-rust").await;
    host.kube.put(&config_map("default", "a", 1));
    let file = record(&host, folder.path(), lifetime).await;
    let replayed = async |change: &dyn Fn(&mut Vec<serde_json::Value>)| {
        let file = rewritten(&file, change);
        let options = Options { keep_going: true, ..Options::default() };
        replay_with(&file, &host.component, &options).await
    };
    let refused =
        async |change: &dyn Fn(&mut Vec<serde_json::Value>)| replayed(change).await.unwrap_err().to_string();
    let at = |entries: &[serde_json::Value], kind: &str| {
        entries.iter().position(|entry| entry["entry"] == kind).unwrap()
    };

    // Without its first entry, with entries in another order, and without any.
    type Change<'a> = &'a dyn Fn(&mut Vec<serde_json::Value>);
    let changes: [Change<'_>; 2] = [&|entries| drop(entries.remove(0)), &|entries| entries.reverse()];
    for change in changes {
        let error = refused(change).await;
        assert_eq!(error, "the record is damaged: its first entry does not say what it is");
    }
    assert_eq!(refused(&|entries| entries.clear()).await, "the record ends before its first entry");
    // Calls of an instance that never started, and of one that is gone.
    let report = replayed(&|entries| drop(entries.remove(at(entries, "start")))).await.unwrap();
    assert_eq!((report.calls, report.starts, report.skipped), (0, 0, 4));
    let report = replayed(&|entries| {
        let gone = entries.remove(at(entries, "gone"));
        entries.insert(at(entries, "call"), gone);
    })
    .await
    .unwrap();
    assert_eq!((report.calls, report.starts, report.skipped), (0, 1, 4));
    // An instance that starts twice, a call that happens twice, a second head, and what follows the end.
    let report = replayed(&|entries| {
        let end = entries.len();
        for index in 0..end {
            entries.push(entries[index].clone());
        }
    })
    .await
    .unwrap();
    assert_eq!((report.calls, report.starts, report.skipped), (4, 1, 0), "nothing follows the end");
    let report = replayed(&|entries| {
        for kind in ["file", "start", "call"] {
            let index = at(entries, kind);
            entries.insert(index + 1, entries[index].clone());
        }
    })
    .await
    .unwrap();
    assert_eq!((report.calls, report.starts, report.skipped), (5, 2, 0));
    // A function, an argument, an answer and limits that no host has written.
    let call = |name: &'static str, value: serde_json::Value| {
        move |entries: &mut Vec<serde_json::Value>| {
            let index = at(entries, "call");
            entries[index][name] = value.clone();
        }
    };
    let error = refused(&call("function", json!("describe"))).await;
    insta::assert_snapshot!(error, @"call 1, describe: the recorded function does not fit the contract of this oarlock: no function describe");
    let error = refused(&call("argument", json!([1, 2]))).await;
    insta::assert_snapshot!(error, @"call 1, on-add: the recorded argument does not fit the contract of this oarlock: invalid type: integer `1`, expected a string");
    let error = refused(&|entries| {
        let index = at(entries, "call");
        entries[index]["imports"][0]["answer"] = json!(7);
    })
    .await;
    assert!(error.starts_with("call 1, on-add: the recorded answer of import 1 does not fit"), "{error}");
    let error = refused(&call("number", json!(-1))).await;
    assert!(error.contains("is damaged at byte ") && error.contains("integer `-1`"), "{error}");
    let error = refused(&|entries| {
        let index = at(entries, "start");
        entries[index]["limits"]["memory"] = json!(u64::MAX);
    })
    .await;
    assert!(error.contains("damaged") && error.contains("limits"), "{error}");
    // More instances than a host has, and starts that are kept and large.
    let starts = |n: u64, argument: usize| {
        move |entries: &mut Vec<serde_json::Value>| {
            let mut start = entries[at(entries, "start")].clone();
            start["call"]["cut"] = json!(true);
            start["call"]["argument"] = json!("x".repeat(argument));
            entries.truncate(1);
            for instance in 0..n {
                start["call"]["instance"] = json!(instance);
                entries.push(start.clone());
            }
        }
    };
    let error = refused(&starts(2_000, 1)).await;
    assert_eq!(error, "the record is damaged: more than 1024 instances are alive at once");
    let error = refused(&starts(4, 20 << 20)).await;
    insta::assert_snapshot!(error, @"the record is damaged: the starts of instances that are alive at once have more than 64 MiB");
}
