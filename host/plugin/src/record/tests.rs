use std::path::Path;

use oarlock_wait_until::{LIMIT, wait_until};
use serde_json::{Value, json};

use super::*;
use crate::{
    CallError,
    contract::{Content, Description, Enqueue, GroupVersionResource, Namespaces, Subscription},
    intercept::Intercept,
};

fn config(folder: &Path, limit: u64) -> Config {
    let (file, budget) = (folder.join("a.record"), Budget::new(limit));
    Config { file, budget, secrets: false, plugin: "a".into(), host: "0.1.0" }
}

fn log(recorder: &Recorder) -> CallLog {
    CallLog::new(recorder.clone(), 1, Arc::default())
}

/// The description of a plugin that subscribes to a resource, with one field.
fn description(plural: &str) -> Description {
    let target = GroupVersionResource { group: String::new(), version: "v1".into(), plural: plural.into() };
    Description {
        name: "a".into(),
        version: "1".into(),
        subscriptions: vec![Subscription {
            name: plural.into(),
            target,
            namespaces: Namespaces::All,
            label_selector: String::new(),
            conditions: vec![],
            fields: vec!["/data/password".into()],
            content: Content::Full,
            resync_seconds: 0,
            enqueue: Enqueue::Nothing,
            ignore_own_writes: false,
        }],
        reads: vec![],
        indices: vec![],
        requests: vec![],
        schedules: vec![],
        stateless: true,
    }
}

/// The interceptor of an instance of a plugin with this description.
fn instance(recorder: &Recorder, description: &Description, config: Option<Value>) -> Arc<dyn Intercept> {
    let config = config.map(Into::into);
    recorder.generation(1, component::Digest::of(b"a"), description, config).interceptor()
}

fn one_call(log: &dyn Intercept, text: &str) {
    log.call_begins("reconcile", json!({ "text": text }));
    log.import_begins("clock.now", json!({}));
    log.import_ends(json!(5));
    log.call_ends(Ok(Value::Null));
}

fn start(log: &dyn Intercept) {
    log.call_begins("start", serde_json::to_value(crate::Limits::default()).unwrap());
    log.call_ends(Ok(Value::Null));
}

fn read(file: &Path) -> Vec<Entry> {
    let mut reader = Reader::new(std::fs::File::open(file).unwrap()).unwrap();
    let entries = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
    assert!(!reader.is_truncated());
    entries
}

fn calls(entries: &[Entry]) -> Vec<&Call> {
    entries.iter().filter_map(|it| if let Entry::Call(call) = it { Some(call) } else { None }).collect()
}

#[tokio::test]
async fn calls_of_several_instances_are_recorded_in_the_order_of_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 1 << 20)).unwrap();
    let (first, second) = (log(&recorder), log(&recorder));
    start(&first);
    start(&second);
    first.call_begins("reconcile", json!("first"));
    one_call(&second, "second");
    first.call_ends(Err(&CallError::Dead));
    // A call that the host drops.
    second.call_begins("reconcile", json!("dropped"));
    second.import_begins("cache.get", json!({}));
    drop((first, second));
    let view = recorder.progress().view();
    drop(recorder);
    writer.run(std::future::pending()).await.unwrap();

    let entries = read(&view.file);
    let calls = calls(&entries);
    let shown: Vec<_> =
        calls.iter().map(|it| (it.number, it.instance, it.imports.len(), &it.ended)).collect();
    let failed = Ended::Failed { kind: Kind::Dead, message: CallError::Dead.to_string() };
    assert_eq!(
        shown,
        [(1, 2, 1, &Ended::Answer(Value::Null)), (2, 1, 0, &failed), (3, 2, 1, &Ended::Cancelled),]
    );
    assert_eq!(calls[2].imports[0].answer, None);
    assert!(matches!(&entries[0], Entry::File(file) if file.plugin == "a" && !file.exact));
    let end = End { reason: EndReason::Stopped, lost: 0, forgotten_values: 0 };
    assert_eq!(entries.last(), Some(&Entry::End(end)));
}

#[tokio::test]
async fn a_record_ends_at_its_limit_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 300 << 10;
    let (recorder, writer) = Recorder::create(config(folder.path(), limit)).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let log = log(&recorder);
    start(&log);
    let mut n = 0_u32;
    let calling = async {
        while recorder.progress().view().state == RecordState::Recording {
            n += 1;
            assert!(n < 1_000_000, "{:?}", recorder.progress().view());
            // Text that does not compress.
            let noise: String = (0..64).map(|_| format!("{:016x}", rand::random::<u64>())).collect();
            one_call(&log, &noise);
            tokio::task::yield_now().await;
        }
        one_call(&log, "too late");
        stop.send(()).unwrap();
    };
    let (written, ()) = tokio::join!(writer.run(async { drop(stopped.await) }), calling);
    written.unwrap();
    let view = recorder.progress().view();
    assert_eq!(view.state, RecordState::Full);
    let length = std::fs::metadata(&view.file).unwrap().len();
    assert!(length <= limit && length > limit / 4, "{length}");
    let entries = read(&view.file);
    assert!(matches!(entries.last(), Some(Entry::End(End { reason: EndReason::Limit, .. }))));
}

#[tokio::test]
async fn nothing_is_written_after_the_last_entry_of_a_full_record() {
    let folder = tempfile::tempdir().unwrap();
    // No block fits, not even the first.
    let (recorder, writer) = Recorder::create(config(folder.path(), (1 << 10) + 20)).unwrap();
    let view = recorder.progress().view();
    assert_eq!(view.state, RecordState::Full);
    let log = log(&recorder);
    start(&log);
    one_call(&log, "too late");
    drop((recorder, log));
    writer.run(std::future::pending()).await.unwrap();
    assert_eq!(std::fs::metadata(&view.file).unwrap().len(), view.bytes, "it grows no more");
    let entries = read(&view.file);
    assert!(matches!(entries[..], [Entry::End(End { reason: EndReason::Limit, .. })]), "{entries:?}");
}

#[tokio::test]
async fn a_call_never_waits_for_the_writer_and_the_record_says_what_it_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let log = log(&recorder);
    start(&log);
    // No writer runs.
    for n in 0..MOST_WAITING + 9 {
        one_call(&log, &n.to_string());
    }
    assert_eq!(recorder.progress().view().lost, 10);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let calling = async {
        wait_until("the queue has room", LIMIT, || match recorder.queue.capacity() {
            0 => Err("full"),
            _ => Ok(()),
        })
        .await;
        one_call(&log, "after");
        stop.send(()).unwrap();
    };
    let (written, ()) = tokio::join!(writer.run(async { drop(stopped.await) }), calling);
    written.unwrap();
    let entries = read(&recorder.progress().view().file);
    let calls = calls(&entries);
    assert_eq!(calls.len(), MOST_WAITING);
    assert_eq!(calls.last().unwrap().lost_before, 10);
}

#[tokio::test]
async fn a_huge_call_is_cut_and_the_file_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let log = log(&recorder);
    start(&log);
    log.call_begins("reconcile", json!({}));
    for _ in 0..40 {
        log.import_begins("cache.get", json!({}));
        log.import_ends("x".repeat(1 << 20).into());
    }
    log.call_ends(Ok(Value::Null));
    drop(log);
    let file = recorder.progress().view().file;
    assert!(Recorder::create(config(folder.path(), 1)).is_err(), "a file is never overwritten");
    drop(recorder);
    writer.run(std::future::pending()).await.unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let entries = read(&file);
    let call = calls(&entries)[0];
    assert!(call.cut && call.imports.len() < 20, "{}", call.imports.len());
}

const PASSWORD: &str = "hunter2-hunter2";
const ENCODED: &str = "aHVudGVyMi1odW50ZXIy";

fn secrets() -> Value {
    json!({"target": {"group": "", "version": "v1", "plural": "secrets"}})
}

fn secret() -> Value {
    json!({ "Ok": json!({"data": {"password": ENCODED}}).to_string() })
}

/// Writes everything, and returns the entries.
async fn written(recorder: Recorder, writer: Writer) -> Vec<Entry> {
    let file = recorder.progress().view().file;
    drop(recorder);
    writer.run(std::future::pending()).await.unwrap();
    read(&file)
}

fn contains_password(entries: &[Entry]) -> bool {
    let text = entries.iter().map(|it| serde_json::to_string(it).unwrap()).collect::<String>();
    text.contains(PASSWORD) || text.contains(ENCODED)
}

fn end_reason(entries: &[Entry]) -> EndReason {
    let Some(Entry::End(end)) = entries.last() else { panic!("{:?}", entries.last()) };
    end.reason
}

/// One way in which a call that has not ended receives, or makes, a value of a Secret.
type Seen = (&'static str, fn(&dyn Intercept));

/// A call that has not ended knows a value. Another call receives a copy of it, and ends before.
#[tokio::test]
async fn a_value_is_replaced_in_calls_that_end_before_the_call_that_received_it() {
    let ways: [Seen; 5] = [
        ("a read", |log| {
            log.call_begins("reconcile", json!({}));
            log.import_begins("client.get", secrets());
            log.import_ends(secret());
        }),
        ("a write that has no answer yet", |log| {
            log.call_begins("reconcile", json!({}));
            let mut arguments = secrets();
            arguments["json"] = json!({"stringData": {"password": PASSWORD}}).to_string().into();
            log.import_begins("client.create", arguments);
        }),
        ("a declared field", |log| {
            let field = json!(ENCODED).to_string();
            log.call_begins("on-add", json!({"subscription": "secrets", "fields": [field]}));
        }),
        ("the object of the call", |log| {
            log.call_begins("on-add", json!({"subscription": "secrets", "fields": [null]}));
            log.import_begins("event.json", json!({"which": "New"}));
            log.import_ends(secret());
        }),
        ("a read after the call was cut", |log| {
            log.call_begins(
                "on-add",
                json!({"subscription": "secrets", "fields": [null], "x": "x".repeat(9 << 20)}),
            );
            log.import_begins("cache.get", json!({}));
            log.import_ends("x".repeat(9 << 20).into());
            log.import_begins("event.field", json!({"which": "New", "pointer": "/data/password"}));
            log.import_ends(json!({ "Ok": json!(ENCODED).to_string() }));
        }),
    ];
    for (way, receive) in ways {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
        let description = description("secrets");
        let (first, second) =
            (instance(&recorder, &description, None), instance(&recorder, &description, None));
        start(&*first);
        start(&*second);
        receive(&*first);
        one_call(&*second, &format!("it is {PASSWORD} or {ENCODED}"));
        first.call_ends(Ok(Value::Null));
        drop((first, second));
        let entries = written(recorder, writer).await;
        assert_eq!(calls(&entries).len(), 2, "{way}");
        assert!(!contains_password(&entries), "{way}");
        let text = calls(&entries)[0].argument["text"].as_str().unwrap();
        assert!(text.starts_with("it is ") && text.len() == 10 + PASSWORD.len() + ENCODED.len(), "{text}");
        assert_eq!(end_reason(&entries), EndReason::Stopped, "{way}");
    }
}

#[tokio::test]
async fn promise_4_values_that_are_not_learned_yet_are_bounded_and_wake_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let log = log(&recorder);
    start(&log);
    log.call_begins("reconcile", json!({}));
    let read = |text: &str| {
        log.import_begins("client.get", secrets());
        log.import_ends(json!({ "Ok": json!({"stringData": {"a": text}}).to_string() }));
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let calling = async {
        read(&"x".repeat(2 << 20));
        // No call ends, and the writer has nothing to write.
        wait_until("nothing but the call is held", LIMIT, || {
            match recorder.shared.held_bytes.load(Relaxed) {
                held if held > 2 << 20 && held < 3 << 20 => Ok(()),
                held => Err(held),
            }
        })
        .await;
        assert_eq!(recorder.progress().view().state, RecordState::Recording);
        stop.send(()).unwrap();
    };
    let (done, ()) = tokio::join!(writer.run(async { drop(stopped.await) }), calling);
    done.unwrap();
    // No writer runs. Nothing but the calls and what they read is held.
    for _ in 0..40 {
        read(&"y".repeat(2 << 20));
    }
    let held = recorder.shared.held_bytes.load(Relaxed);
    assert!(held <= MOST_HELD_BYTES && held > MOST_HELD_BYTES / 2, "{held}");
    assert_eq!(recorder.progress().view().state, RecordState::SecretsMissed);
}

#[tokio::test]
async fn a_lost_call_with_secrets_leaves_their_values_known() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let (log, progress) = (log(&recorder), recorder.progress());
    start(&log);
    // No writer runs.
    for n in 0..MOST_WAITING {
        one_call(&log, &n.to_string());
    }
    log.call_begins("reconcile", json!({}));
    log.import_begins("client.get", secrets());
    log.import_ends(secret());
    log.call_ends(Ok(Value::Null));
    assert_eq!((progress.view().state, progress.view().lost), (RecordState::Recording, 2));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let calling = async {
        wait_until("the queue has room", LIMIT, || match recorder.queue.capacity() {
            0 => Err("full"),
            _ => Ok(()),
        })
        .await;
        one_call(&log, &format!("it is {PASSWORD}"));
        stop.send(()).unwrap();
    };
    let (done, ()) = tokio::join!(writer.run(async { drop(stopped.await) }), calling);
    done.unwrap();
    let entries = read(&progress.view().file);
    assert!(!contains_password(&entries));
    let call = *calls(&entries).last().unwrap();
    assert!(
        call.argument["text"].as_str().unwrap().starts_with("it is ") && call.lost_before == 2,
        "{call:?}"
    );
    assert_eq!(end_reason(&entries), EndReason::Stopped);
}

#[tokio::test]
async fn a_record_without_room_for_values_of_secrets_ends_before_the_guest_has_them() {
    for secrets_as_they_are in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { secrets: secrets_as_they_are, ..config(folder.path(), 64 << 20) };
        let (recorder, writer) = Recorder::create(config).unwrap();
        let (first, second) = (log(&recorder), log(&recorder));
        start(&first);
        start(&second);
        first.call_begins("reconcile", json!({}));
        recorder.hold_always(MOST_HELD_BYTES);
        first.import_begins("client.get", secrets());
        first.import_ends(secret());
        recorder.release(MOST_HELD_BYTES);
        one_call(&second, &format!("it is {PASSWORD}"));
        first.call_ends(Ok(Value::Null));
        // The recorder and the instances are alive: the writer ends by itself if it has to.
        let (recorder, writer) = match secrets_as_they_are {
            false => {
                writer.run(std::future::pending()).await.unwrap();
                let view = recorder.progress().view();
                let end = End { reason: EndReason::SecretsMissed, lost: view.lost, forgotten_values: 0 };
                let entries = read(&view.file);
                assert_eq!((entries.last(), calls(&entries).len()), (Some(&Entry::End(end)), 0));
                assert!(!contains_password(&entries));
                continue;
            }
            true => (recorder, writer),
        };
        drop((first, second));
        // A record with the values has nothing to hide.
        let entries = written(recorder, writer).await;
        assert_eq!((end_reason(&entries), calls(&entries).len()), (EndReason::Stopped, 2));
    }
}

#[tokio::test]
async fn a_configuration_that_is_of_a_secret_is_replaced_everywhere() {
    let config_json = || {
        json!({
            "user": "plain-user-name", "password": PASSWORD, "encoded": ENCODED, "pin": 123_456_789,
            "ratio": -1.5, "on": true, "nested": {"list": ["second-secret", "ab"]},
        })
    };
    for is_secret in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
        let log = instance(&recorder, &description("configmaps"), is_secret.then(config_json));
        start(&*log);
        // The copy comes before the guest reads its configuration in a recorded call.
        one_call(&*log, &format!("it is {PASSWORD}, {ENCODED}, second-secret, 123456789"));
        log.call_begins("reconcile", json!({}));
        log.import_begins("config.json", json!({}));
        log.import_ends(config_json().to_string().into());
        log.import_begins("config.get", json!({"pointer": "/nested"}));
        log.import_ends(json!({ "Ok": config_json()["nested"].to_string() }));
        log.import_begins("config.get", json!({"pointer": "/absent"}));
        log.import_ends(json!({ "Ok": null }));
        log.import_begins("client.create", json!({"target": {"plural": "configmaps"}, "json": PASSWORD}));
        log.import_ends(json!({"Err": {"Invalid": format!("not {PASSWORD}")}}));
        log.call_ends(Ok(Value::Null));
        drop(log);
        let entries = written(recorder, writer).await;
        let text = calls(&entries).iter().map(|it| serde_json::to_string(it).unwrap()).collect::<String>();
        let values = [PASSWORD, ENCODED, "plain-user-name", "second-secret", "123456789"];
        assert_eq!(values.map(|it| text.contains(it)), [!is_secret; 5], "{text}");
        let imports = &calls(&entries)[1].imports;
        let config = imports[0].answer.as_ref().unwrap().as_str().unwrap();
        let config: Value = serde_json::from_str(config).unwrap();
        assert_eq!(config["on"], true);
        assert!(config["pin"].is_u64() && config["ratio"].as_f64().unwrap() < 0.0, "{config}");
        if is_secret {
            for (name, value) in config_json().as_object().unwrap() {
                assert_eq!(config[name] == *value, name == "on", "{config}");
            }
            // One value has one pseudonym in all places.
            let copy = calls(&entries)[0].argument["text"].as_str().unwrap();
            for name in ["password", "encoded", "pin"] {
                let pseudonym = config[name].to_string();
                assert!(copy.contains(pseudonym.trim_matches('"')), "{copy} {config}");
            }
            assert_eq!(imports[1].answer.as_ref().unwrap()["Ok"], config["nested"].to_string());
        }
    }
}

#[tokio::test]
async fn calls_in_progress_when_the_writer_stops_are_lost_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let logs = [log(&recorder), log(&recorder), log(&recorder)];
    for log in &logs[..2] {
        start(log);
        one_call(log, "ends");
        log.call_begins("reconcile", json!("does not end"));
    }
    logs[2].call_begins("start", json!({}));
    writer.run(std::future::ready(())).await.unwrap();
    let entries = read(&recorder.progress().view().file);
    assert_eq!(calls(&entries).len(), 2);
    let end = End { reason: EndReason::Stopped, lost: 3, forgotten_values: 0 };
    assert_eq!(entries.last(), Some(&Entry::End(end)));
    assert_eq!(recorder.progress().view().lost, 3);
}

#[tokio::test]
async fn a_record_that_fails_has_the_reason_and_counts_the_calls_that_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, mut writer) = Recorder::create(config(folder.path(), 1 << 20)).unwrap();
    let first = log(&recorder);
    start(&first);
    one_call(&first, "waits for the writer");
    first.call_begins("reconcile", json!("is in progress"));
    writer.fail_writes().unwrap();
    let error = writer.run(std::future::ready(())).await.unwrap_err();
    first.call_ends(Ok(Value::Null));
    one_call(&first, "comes later");
    let view = recorder.progress().view();
    assert_eq!((view.state, view.calls, view.lost), (RecordState::Failed, 0, 4));
    assert_eq!(view.reason, Some(error.to_string()));
    // The same for a file that cannot be created.
    let recorder = Recorder::failed(config(folder.path(), 1 << 20), "no room".to_owned());
    let second = log(&recorder);
    start(&second);
    one_call(&second, "is not recorded");
    let view = recorder.progress().view();
    assert_eq!((view.state, view.calls, view.lost), (RecordState::Failed, 0, 2));
    assert_eq!(view.reason.as_deref(), Some("no room"));
}

#[tokio::test]
async fn promise_4_all_files_of_one_plugin_share_one_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 200 << 10;
    let first = config(folder.path(), limit);
    let second = Config { file: folder.path().join("a.2.record"), ..first.clone() };
    let third = Config { file: folder.path().join("a.3.record"), ..first.clone() };
    // Text that does not compress.
    let noise =
        |kib: usize| (0..64 * kib).map(|_| format!("{:016x}", rand::random::<u64>())).collect::<String>();
    let full = Arc::new(AtomicU64::new(0));
    let mut views = Vec::new();
    for (config, kib) in [(first.clone(), 100), (second, 400)] {
        let (recorder, writer) = Recorder::create(config).unwrap();
        let (log, progress) = (log(&recorder), recorder.progress());
        start(&log);
        one_call(&log, &noise(kib));
        drop((recorder, log));
        let full = full.clone();
        let writer = writer.when_full(move || _ = full.fetch_add(1, Relaxed));
        writer.run(std::future::pending()).await.unwrap();
        views.push(progress.view());
    }
    assert_eq!(full.load(Relaxed), 1);
    assert_eq!((views[0].state, views[1].state), (RecordState::Recording, RecordState::Full));
    let lengths = [&views[0], &views[1]].map(|it| std::fs::metadata(&it.file).unwrap().len());
    assert_eq!(lengths, [views[0].bytes, views[1].bytes]);
    assert!(lengths.iter().sum::<u64>() <= limit, "{lengths:?}");
    assert_eq!((views[0].limit, views[1].limit), (limit, limit - lengths[0]));
    assert!(first.budget.is_used_up() && first.budget.taken() == lengths[0] + lengths[1]);
    assert!(Recorder::create(third.clone()).is_err() && !third.file.exists());
}

#[tokio::test]
async fn promise_4_calls_in_progress_of_all_instances_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let logs: Vec<_> = (0..30).map(|_| log(&recorder)).collect();
    let large = || Value::from("x".repeat(5 << 20));
    for log in &logs {
        start(log);
        log.call_begins("reconcile", large());
        log.import_begins("cache.get", json!({}));
        log.import_ends(large());
    }
    let held = recorder.shared.held_bytes.load(Relaxed);
    assert!(held <= MOST_HELD_BYTES && held > MOST_HELD_BYTES / 2, "{held}");
    // A call that is never recorded again, and calls that end.
    logs.iter().skip(1).for_each(|log| log.call_ends(Ok(Value::Null)));
    drop(logs);
    let progress = recorder.progress();
    drop(recorder);
    writer.run(std::future::pending()).await.unwrap();
    assert_eq!(progress.shared.held_bytes.load(Relaxed), 0);
    let entries = read(&progress.view().file);
    let starts =
        entries.iter().filter_map(|it| if let Entry::Start(start) = it { Some(start) } else { None });
    assert_eq!(starts.filter(|start| start.limits.is_object() && !start.call.cut).count(), 30);
    let calls = calls(&entries);
    let n_cut = calls.iter().filter(|call| call.cut).count();
    assert!(n_cut > 0 && n_cut < calls.len(), "{n_cut} of {}", calls.len());
    // The argument of a call for which there was no room is missing too.
    assert!(calls.iter().any(|call| call.cut && call.argument.is_null()));
}
