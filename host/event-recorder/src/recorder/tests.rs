//! The recorder from end to end, with a recording sink.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::logging::{Plain, Structured, follow};
use crate::testing::{FakeSink, Written, pod, settle};
use crate::{Recording, RecordingConfig, Stats, series};

type Lines = Arc<Mutex<Vec<String>>>;

/// A broadcaster whose Events are recorded and logged by tasks.
struct Rig {
    broadcaster: Broadcaster<Event>,
    recorder: EventRecorder,
    token: CancellationToken,
    tasks: JoinSet<()>,
}

impl Rig {
    fn new() -> Self {
        let broadcaster = Broadcaster::new();
        let recorder = EventRecorder::new(broadcaster.clone(), "eventTest", "node-1");
        Self { broadcaster, recorder, token: CancellationToken::new(), tasks: JoinSet::new() }
    }

    fn record_to(&mut self, sink: &FakeSink<Event>) -> Arc<Stats> {
        let recording = Recording::new(self.broadcaster.watch(), sink.clone(), RecordingConfig::default());
        let stats = recording.stats();
        self.tasks.spawn(recording.run(self.token.clone()));
        stats
    }

    fn log(&mut self, line: impl Fn(&Event) -> String + Send + 'static) -> Lines {
        let lines = Lines::default();
        let into = lines.clone();
        let each = move |event: &Event| into.lock().push(line(event));
        self.tasks.spawn(follow(self.broadcaster.watch(), self.token.clone(), each));
        lines
    }

    async fn no_task_is_left(self) {
        self.tasks.join_all().await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }
}

/// Emits seven Events about two Pods with one name; each becomes a create or a patch of the count.
fn seven() -> [(ObjectReference, &'static str, &'static str, Option<i32>); 7] {
    let container = "spec.containers[2]";
    [
        (pod("bar", container), "Started", "some verbose message: 1", None),
        (pod("bar", ""), "Killed", "some other verbose message: 1", None),
        (pod("bar", container), "Started", "some verbose message: 1", Some(2)),
        (pod("differentUid", container), "Started", "some verbose message: 1", None),
        (pod("bar", container), "Started", "some verbose message: 1", Some(3)),
        (pod("differentUid", container), "Stopped", "some verbose message: 1", None),
        (pod("differentUid", container), "Stopped", "some verbose message: 1", Some(2)),
    ]
}

async fn emit_seven(recorder: &EventRecorder, sink: &FakeSink<Event>) {
    for (about, reason, message, count) in seven() {
        recorder.event(about.clone(), EventType::Normal, reason, message).unwrap();
        settle().await;
        let [written]: [Written<Event>; 1] = sink.calls().try_into().unwrap();
        let event = written.event();
        assert_eq!(event.involved_object, about);
        assert_eq!(event.count, Some(count.unwrap_or(1)), "{reason} {about:?}");
        assert_eq!(written.patch().map(|patch| patch["count"].clone()), count.map(Into::into));
        if let Some(patch) = written.patch() {
            assert_eq!(patch["message"], message);
            assert!(patch["lastTimestamp"].is_string());
        }
    }
}

// Conformance: 45.4
#[tokio::test(start_paused = true)]
async fn eventf() {
    let mut rig = Rig::new();
    let sink = FakeSink::new();
    let stats = rig.record_to(&sink);
    let plain = rig.log(|event| Plain(event).to_string());
    let structured = rig.log(|event| Structured(event).to_string());
    emit_seven(&rig.recorder, &sink).await;
    assert_eq!(stats.recorded(), 7);
    assert_eq!((plain.lock().len(), structured.lock().len()), (7, 7));
    insta::assert_snapshot!(plain.lock()[0], @r#"Event(v1.ObjectReference{Kind:"Pod", Namespace:"baz", Name:"foo", UID:"bar", APIVersion:"v1", ResourceVersion:"", FieldPath:"spec.containers[2]"}): type: 'Normal' reason: 'Started' some verbose message: 1"#);
    insta::assert_snapshot!(plain.lock()[1], @r#"Event(v1.ObjectReference{Kind:"Pod", Namespace:"baz", Name:"foo", UID:"bar", APIVersion:"v1", ResourceVersion:"", FieldPath:""}): type: 'Normal' reason: 'Killed' some other verbose message: 1"#);
    insta::assert_snapshot!(structured.lock()[0], @r#""Event occurred" object="baz/foo" fieldPath="spec.containers[2]" kind="Pod" apiVersion="v1" type="Normal" reason="Started" message="some verbose message: 1""#);
    rig.token.cancel();
    rig.no_task_is_left().await;
}

// Conformance: 45.10
#[tokio::test(start_paused = true)]
async fn each_sink_counts_from_one_er_08() {
    for _ in 0..2 {
        let mut rig = Rig::new();
        let (one, two) = (FakeSink::new(), FakeSink::new());
        rig.record_to(&one);
        emit_seven(&rig.recorder, &one).await;
        rig.token.cancel();
        while rig.tasks.join_next().await.is_some() {}
        rig.token = CancellationToken::new();
        rig.record_to(&two);
        emit_seven(&rig.recorder, &two).await;
        assert!(one.calls().is_empty());
        // With both watches active.
        let three = FakeSink::new();
        rig.record_to(&three);
        emit_seven(&rig.recorder, &three).await;
        rig.broadcaster.shut_down();
        rig.no_task_is_left().await;
    }
}

// Conformance: 45.9
#[tokio::test(start_paused = true)]
async fn an_event_about_a_cluster_scoped_object_is_in_namespace_default_er_02() {
    let mut rig = Rig::new();
    let sink = FakeSink::new();
    rig.record_to(&sink);
    let about = ObjectReference { namespace: None, ..pod("bar", "") };
    rig.recorder.event(about, EventType::Warning, "Started", "m").unwrap();
    settle().await;
    let [Written::Created(event)]: [Written<Event>; 1] = sink.calls().try_into().unwrap() else { panic!() };
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(event.involved_object.namespace, None);
    rig.token.cancel();
    rig.no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_has_source_reference_times_and_a_name_er_02() {
    let broadcaster = Broadcaster::new();
    let mut watch = broadcaster.watch();
    let recorder = EventRecorder::new(broadcaster, "eventTest", "node-1");
    let annotations = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    recorder
        .event_with_annotations(annotations.clone(), pod("bar", ""), EventType::Warning, "Failed", "why")
        .unwrap();
    let event = watch.next().await.unwrap();
    let name = event.metadata.name.clone().unwrap();
    let nanoseconds = i64::from_str_radix(name.strip_prefix("foo.").unwrap(), 16).unwrap();
    let first = event.first_timestamp.clone().unwrap();
    assert_eq!(first.0.as_nanosecond(), nanoseconds.into());
    assert_eq!(event.last_timestamp, Some(first));
    assert_eq!((event.count, event.type_.as_deref()), (Some(1), Some("Warning")));
    assert_eq!(event.metadata.annotations, Some(annotations));
    assert_eq!(event.metadata.namespace.as_deref(), Some("baz"));
    assert_eq!(event.reporting_component.as_deref(), Some("eventTest"));
    assert_eq!(event.reporting_instance.as_deref(), Some("node-1"));
    let source = EventSource { component: Some("eventTest".to_owned()), host: Some("node-1".to_owned()) };
    assert_eq!(event.source, Some(source));
}

// Conformance: 45.1, 47.1
#[tokio::test(start_paused = true)]
async fn a_cancelled_recording_leaves_no_task() {
    let mut rig = Rig::new();
    let (sink, _gate) = FakeSink::blocked();
    rig.record_to(&sink);
    rig.log(|_| String::new());
    for n in 0..20 {
        rig.recorder.event(pod("bar", ""), EventType::Normal, "Started", &n.to_string()).unwrap();
    }
    settle().await;
    assert_eq!(sink.calls().len(), 1, "the sink answers nothing");
    rig.token.cancel();
    rig.no_task_is_left().await;
}

// Conformance: 45.2, 47.1, B.2
#[tokio::test(start_paused = true)]
async fn a_recording_writes_its_queue_after_the_shutdown_and_ends() {
    let mut rig = Rig::new();
    let sink = FakeSink::new();
    rig.record_to(&sink);
    let lines = rig.log(|event| Plain(event).to_string());
    for n in 0..5 {
        rig.recorder.event(pod("bar", ""), EventType::Normal, "Started", &n.to_string()).unwrap();
    }
    rig.broadcaster.shut_down();
    let late = rig.recorder.event(pod("bar", ""), EventType::Normal, "Started", "late");
    assert_eq!(late, Err(Dropped::ShutDown));
    rig.no_task_is_left().await;
    assert_eq!((sink.calls().len(), lines.lock().len()), (5, 5));
}

// Conformance: 45.3, B.2
#[tokio::test(start_paused = true)]
async fn concurrent_emissions_survive_a_shutdown() {
    for _ in 0..20 {
        let mut rig = Rig::new();
        let sink = FakeSink::new();
        let stats = rig.record_to(&sink);
        let threads: Vec<_> = (0..100)
            .map(|n| {
                let recorder = rig.recorder.clone();
                let about = ObjectReference { name: Some(format!("pod-{n}")), ..pod("bar", "") };
                std::thread::spawn(move || recorder.event(about, EventType::Normal, "Started", "m"))
            })
            .collect();
        rig.broadcaster.shut_down();
        let emitted = threads.into_iter().map(|it| it.join().unwrap()).filter(Result::is_ok).count();
        rig.no_task_is_left().await;
        assert_eq!(stats.recorded(), emitted as u64, "what was taken was written");
    }
}

// Conformance: G.46, B.2
#[tokio::test(start_paused = true)]
async fn a_blocked_sink_blocks_no_emitter_and_holds_a_bounded_queue() {
    let mut rig = Rig::new();
    let (sink, gate) = FakeSink::blocked();
    rig.record_to(&sink);
    settle().await;
    let mut lost = 0;
    for n in 0..5_000 {
        let about = ObjectReference { name: Some(format!("pod-{n}")), ..pod("bar", "") };
        match rig.recorder.event(about, EventType::Normal, "Started", "m") {
            Ok(()) => {}
            Err(Dropped::Full) => lost += 1,
            Err(error) => panic!("{error}"),
        }
        if n == 0 {
            settle().await;
        }
    }
    assert_eq!(
        lost,
        5_000 - 1 - Broadcaster::<Event>::QUEUE as u64,
        "one is being written, the queue is full"
    );
    assert_eq!(rig.broadcaster.dropped(), lost);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
    gate.add_permits(10_000);
    rig.broadcaster.shut_down();
    rig.no_task_is_left().await;
    assert_eq!(sink.calls().len(), 1 + Broadcaster::<Event>::QUEUE);

    // The series recorder: eight writes run, 1,000 wait, and 25 Events are queued.
    let broadcaster = Broadcaster::with_capacity(series::QUEUE);
    let recorder = series::SeriesRecorder::new(broadcaster.clone(), "eventTest", "node-1");
    let (sink, gate) = FakeSink::blocked();
    let recording =
        series::SeriesRecording::new(broadcaster.watch(), sink.clone(), series::Config::default());
    let stats = recording.stats();
    let mut tasks = JoinSet::new();
    tasks.spawn(recording.run(CancellationToken::new()));
    for n in 0..2_000 {
        let about = ObjectReference { name: Some(format!("pod-{n}")), ..pod("bar", "") };
        let said =
            series::Said { event_type: EventType::Normal, reason: "Started", action: "Start", note: "m" };
        recorder.event(about, None, &said).unwrap();
        if n % 10 == 0 {
            settle().await;
        }
    }
    settle().await;
    assert_eq!(sink.calls().len(), 8);
    assert_eq!(stats.dropped(), 2_000 - 8 - 1_000);
    let said = series::Said { event_type: EventType::Normal, reason: "Started", action: "Start", note: "m" };
    let emitted = (0..100).map(|_| recorder.event(pod("bar", ""), None, &said));
    let lost = emitted.filter(|it| *it == Err(Dropped::Full)).count();
    assert_eq!((lost, broadcaster.dropped()), (75, 75), "EV-07");
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
    gate.add_permits(10_000);
    broadcaster.shut_down();
    tokio::time::timeout(Duration::from_secs(60), tasks.join_all()).await.unwrap();
}
