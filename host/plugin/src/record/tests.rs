use std::path::Path;

use oarlock_wait_until::{LIMIT, wait_until};
use serde_json::{Value, json};

use super::*;
use crate::{CallError, intercept::Intercept as _};

fn config(folder: &Path, limit: u64) -> Config {
    Config { file: folder.join("a.record"), limit, secrets: false, plugin: "a".into(), host: "0.1.0" }
}

fn log(recorder: &Recorder) -> CallLog {
    CallLog::new(recorder.clone(), 1, Arc::default())
}

fn one_call(log: &CallLog, text: &str) {
    log.call_begins("reconcile", json!({ "text": text }));
    log.import_begins("clock.now", json!({}));
    log.import_ends(json!(5));
    log.call_ends(Ok(Value::Null));
}

fn start(log: &CallLog) {
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
    let (recorder, writer) = Recorder::create(config(folder.path(), 1 << 10)).unwrap();
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

/// A call that reads a Secret.
fn call_with_secrets(log: &CallLog, text: &str) {
    log.call_begins("reconcile", json!({}));
    log.import_begins("client.get", json!({"target": {"group": "", "version": "v1", "plural": "secrets"}}));
    log.import_ends(json!({ "Ok": json!({"data": {"password": text}}).to_string() }));
    log.call_ends(Ok(Value::Null));
}

#[tokio::test]
async fn a_lost_call_with_secrets_ends_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, writer) = Recorder::create(config(folder.path(), 64 << 20)).unwrap();
    let log = log(&recorder);
    start(&log);
    // No writer runs.
    for n in 0..MOST_WAITING {
        one_call(&log, &n.to_string());
    }
    assert_eq!(recorder.progress().view().state, RecordState::Recording);
    call_with_secrets(&log, "aHVudGVyMi1odW50ZXIy");
    assert_eq!(recorder.progress().view().state, RecordState::SecretsMissed);
    one_call(&log, "it is hunter2-hunter2");
    // The recorder and an instance are alive: the writer ends by itself.
    writer.run(std::future::pending()).await.unwrap();
    let view = recorder.progress().view();
    let entries = read(&view.file);
    let end = End { reason: EndReason::SecretsMissed, lost: view.lost, forgotten_values: 0 };
    assert_eq!(entries.last(), Some(&Entry::End(end)));
    assert_eq!(calls(&entries).len(), MOST_WAITING - 1);
    assert!(calls(&entries).iter().all(|call| !call.argument.to_string().contains("hunter2")));
}

#[tokio::test]
async fn a_call_that_is_cut_before_it_sees_secrets_ends_the_record() {
    let folder = tempfile::tempdir().unwrap();
    for secrets in [false, true] {
        let file = folder.path().join(format!("{secrets}.record"));
        let config = Config { file, secrets, ..config(folder.path(), 64 << 20) };
        let (recorder, writer) = Recorder::create(config).unwrap();
        let log = log(&recorder);
        start(&log);
        log.call_begins("reconcile", json!({}));
        log.import_begins("cache.get", json!({}));
        log.import_ends("x".repeat(17 << 20).into());
        log.import_begins("client.get", json!({"target": {"group": "", "plural": "secrets"}}));
        log.import_ends(json!({"Ok": "{}"}));
        log.call_ends(Ok(Value::Null));
        one_call(&log, "after");
        drop(log);
        let progress = recorder.progress();
        drop(recorder);
        writer.run(std::future::pending()).await.unwrap();
        let entries = read(&progress.view().file);
        let Some(Entry::End(end)) = entries.last() else { panic!("no end") };
        // A record with the values has nothing to hide.
        let (reason, n) = if secrets { (EndReason::Stopped, 2) } else { (EndReason::SecretsMissed, 0) };
        assert_eq!((end.reason, calls(&entries).len()), (reason, n));
    }
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
