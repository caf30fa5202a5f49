use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use tokio::{task::JoinSet, time::sleep};

use super::*;
use crate::{
    EventType,
    sink::SinkError,
    testing::{FakeSink, Written, pod, settle, transport},
};

const SAID: Said<'static> = Said {
    event_type: EventType::Normal,
    reason: "Started",
    action: "Starting",
    note: "some verbose message",
};

/// A recording on a task.
struct Rig {
    broadcaster: Broadcaster<Event>,
    recorder: SeriesRecorder,
    sink: FakeSink<Event>,
    tasks: JoinSet<()>,
}

impl Rig {
    fn start(sink: FakeSink<Event>) -> Self {
        let broadcaster = Broadcaster::with_capacity(QUEUE);
        let recorder = SeriesRecorder::new(broadcaster.clone(), "eventTest", "node-1");
        let config = Config { seed: 7, ..Config::default() };
        let recording = SeriesRecording::new(broadcaster.watch(), sink.clone(), config);
        let mut tasks = JoinSet::new();
        tasks.spawn(recording.run(CancellationToken::new()));
        Self { broadcaster, recorder, sink, tasks }
    }

    /// Emits an Event and returns its immediate writes.
    async fn emit(&self, said: &Said<'_>) -> Vec<Written<Event>> {
        self.recorder.event(pod("bar", ""), None, said).unwrap();
        self.written().await
    }

    async fn written(&self) -> Vec<Written<Event>> {
        settle().await;
        self.sink.calls()
    }

    async fn end(self) -> Vec<Written<Event>> {
        self.broadcaster.shut_down();
        self.tasks.join_all().await;
        self.sink.calls()
    }
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn kinds(written: &[Written<Event>]) -> Vec<&'static str> {
    written.iter().map(|it| if it.patch().is_some() { "patch" } else { "create" }).collect()
}

// Conformance: 42.1
#[tokio::test(start_paused = true)]
async fn eventf() {
    let broadcaster = Broadcaster::new();
    let recorder = SeriesRecorder::new(broadcaster.clone(), "eventTest", "node-1");
    let mut watch = broadcaster.watch();
    let about = |name: &str| ObjectReference { name: Some(name.to_owned()), ..pod("bar", "") };

    recorder.event(about("foo"), None, &SAID).unwrap();
    let event = watch.next().await.unwrap();
    assert!(event.metadata.name.as_deref().unwrap().starts_with("foo."));
    assert_eq!(event.metadata.namespace.as_deref(), Some("baz"));
    assert_eq!(event.regarding, Some(about("foo")));
    assert_eq!((event.related.as_ref(), event.series.as_ref()), (None, None));
    assert_eq!(event.reporting_controller.as_deref(), Some("eventTest"));
    assert_eq!(event.reporting_instance.as_deref(), Some("eventTest-node-1"), "EV-08");
    assert_eq!((event.action.as_deref(), event.reason.as_deref()), (Some("Starting"), Some("Started")));
    assert_eq!((event.type_.as_deref(), event.note.as_deref()), (Some("Normal"), Some(SAID.note)));
    assert!(event.event_time.is_some());

    let related = ObjectReference { name: Some("node-1".to_owned()), ..ObjectReference::default() };
    let nowhere = ObjectReference { namespace: None, ..about("foo") };
    let note = format!("{} of {}", 7, "many");
    let said = Said { event_type: EventType::Warning, note: &note, ..SAID };
    recorder.event(nowhere, Some(related.clone()), &said).unwrap();
    let event = watch.next().await.unwrap();
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(event.regarding.as_ref().unwrap().namespace, None);
    assert_eq!((event.related.as_ref(), event.note.as_deref()), (Some(&related), Some("7 of many")));
    assert_eq!(event.type_.as_deref(), Some("Warning"));

    for name in ["system:node:a", &"long".repeat(100)] {
        recorder.event(about(name), None, &SAID).unwrap();
        let event = watch.next().await.unwrap();
        let own = event.metadata.name.as_deref().unwrap();
        assert!(uuid::Uuid::parse_str(own).is_ok(), "{own}");
        assert_eq!(event.regarding, Some(about(name)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_note_is_truncated_to_the_limit_of_the_api() {
    let broadcaster = Broadcaster::new();
    let mut watch = broadcaster.watch();
    let note = "ü".repeat(1000);
    let recorder = SeriesRecorder::new(broadcaster, "eventTest", "node-1");
    recorder.event(pod("bar", ""), None, &Said { note: &note, ..SAID }).unwrap();
    assert_eq!(watch.next().await.unwrap().note.as_deref(), Some("ü".repeat(512).as_str()));
}

// Conformance: 43.1
#[tokio::test(start_paused = true)]
async fn a_repeated_event_becomes_a_series() {
    let rig = Rig::start(FakeSink::new());
    let first = rig.emit(&SAID).await;
    assert_eq!(kinds(&first), ["create"]);
    assert_eq!(first[0].event().series, None);
    // EV-01: the key does not include the note.
    let second = rig.emit(&Said { note: "another note", ..SAID }).await;
    assert_eq!(kinds(&second), ["patch"]);
    assert_eq!(second[0].patch().unwrap()["series"]["count"], 2);
    assert!(second[0].patch().unwrap()["series"]["lastObservedTime"].is_string());
    assert_eq!(second[0].event().metadata.name, first[0].event().metadata.name);
    let other = rig.emit(&Said { action: "Stopping", ..SAID }).await;
    assert_eq!(kinds(&other), ["create"]);
    assert_eq!(other[0].event().series, None);
    assert!(rig.emit(&SAID).await.is_empty(), "EV-02: the third is only counted");
    assert!(rig.end().await.is_empty());
}

// Conformance: 43.2
#[tokio::test(start_paused = true)]
async fn two_equal_events_at_once_become_one_event_with_a_series() {
    // Like the API server: names are unique, and a patch needs an Event. The first request takes longest.
    for seed in 0..20 {
        let stored: Arc<Mutex<Vec<Event>>> = Arc::default();
        struct Api(Arc<Mutex<Vec<Event>>>, Mutex<SmallRng>);
        impl Api {
            async fn delay(&self) {
                use rand::Rng;
                let delay = Duration::from_millis(self.1.lock().random_range(0..100));
                sleep(delay).await;
            }
        }
        #[async_trait::async_trait]
        impl EventSink<Event> for Api {
            async fn create(&self, event: &Event) -> Result<Event, SinkError> {
                self.delay().await;
                let mut stored = self.0.lock();
                if !stored.is_empty() {
                    return Err(SinkError::AlreadyExists(String::new()));
                }
                stored.push(event.clone());
                Ok(event.clone())
            }
            async fn patch(&self, event: &Event, _: &serde_json::Value) -> Result<Event, SinkError> {
                let found = {
                    let mut stored = self.0.lock();
                    stored.first_mut().map(|it| it.series = event.series.clone()).is_some()
                };
                self.delay().await;
                if found { Ok(event.clone()) } else { Err(SinkError::NotFound(String::new())) }
            }
        }
        let broadcaster = Broadcaster::with_capacity(QUEUE);
        let recorder = SeriesRecorder::new(broadcaster.clone(), "eventTest", "node-1");
        let api = Api(stored.clone(), Mutex::new(SmallRng::seed_from_u64(seed)));
        let recording = SeriesRecording::new(broadcaster.watch(), api, Config { seed, ..Config::default() });
        recorder.event(pod("bar", ""), None, &SAID).unwrap();
        recorder.event(pod("bar", ""), None, &SAID).unwrap();
        drop((recorder, broadcaster));
        recording.run(CancellationToken::new()).await;
        let stored = stored.lock();
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[0].series.as_ref().map(|series| series.count), Some(2), "seed {seed}");
    }
}

// Conformance: 43.4
#[tokio::test(start_paused = true)]
async fn a_refresh_writes_a_series_once_and_keeps_it_after_an_error() {
    for works in [true, false] {
        let mut n_patches = 0;
        let sink = FakeSink::answering(move |call: &Written<Event>| {
            n_patches += usize::from(call.patch().is_some());
            let fails = !works && n_patches == 2;
            if fails { Err(SinkError::Construction("no request".to_owned())) } else { Ok(()) }
        });
        let rig = Rig::start(sink);
        rig.emit(&SAID).await;
        rig.emit(&SAID).await;
        // An Event every five minutes keeps the series active.
        for _ in 0..5 {
            sleep(minutes(5)).await;
            assert!(rig.emit(&SAID).await.is_empty());
        }
        sleep(minutes(5) + Duration::from_secs(1)).await;
        let refreshed = rig.written().await;
        assert_eq!(kinds(&refreshed), ["patch"], "works: {works}");
        assert_eq!(refreshed[0].patch().unwrap()["series"]["count"], 7);
        assert!(rig.emit(&SAID).await.is_empty(), "it is still a series");
        rig.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_idle_for_six_minutes_is_forgotten_ev_03() {
    let rig = Rig::start(FakeSink::new());
    sleep(Duration::from_secs(1)).await;
    let single = Said { action: "Stopping", ..SAID };
    for said in [&SAID, &SAID, &single] {
        rig.emit(said).await;
    }
    sleep(minutes(11)).await;
    assert!(rig.written().await.is_empty(), "looked at after six minutes, when it was not idle for six");
    sleep(minutes(1)).await;
    assert_eq!(kinds(&rig.written().await), ["patch"], "the series only");
    for said in [&SAID, &single] {
        assert_eq!(kinds(&rig.emit(said).await), ["create"], "begins again");
    }
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_series_ends_with_its_last_count_ev_03() {
    let rig = Rig::start(FakeSink::new());
    sleep(Duration::from_secs(1)).await;
    for _ in 0..5 {
        rig.emit(&SAID).await;
    }
    sleep(minutes(12)).await;
    let written = rig.written().await;
    assert_eq!(kinds(&written), ["patch"]);
    assert_eq!(written[0].patch().unwrap()["series"]["count"], 5);
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_series_that_failed_or_continued_is_kept_ev_03() {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let sink = {
        let fails = fails.clone();
        FakeSink::answering(move |_| if fails.load(Ordering::Relaxed) { Err(transport()) } else { Ok(()) })
    };
    let rig = Rig::start(sink);
    sleep(Duration::from_secs(1)).await;
    rig.emit(&SAID).await;
    rig.emit(&SAID).await;
    fails.store(true, Ordering::Relaxed);
    sleep(minutes(12)).await;
    assert_eq!(kinds(&rig.written().await), ["patch"], "tried once");
    fails.store(false, Ordering::Relaxed);
    assert!(rig.emit(&SAID).await.is_empty(), "still a series");
    rig.end().await;

    let mut cache = Cache::new(10);
    let broadcaster = Broadcaster::new();
    let mut watch = broadcaster.watch();
    let recorder = SeriesRecorder::new(broadcaster, "eventTest", "node-1");
    recorder.event(pod("bar", ""), None, &SAID).unwrap();
    let event = watch.next().await.unwrap();
    cache.observe(&event);
    cache.observe(&event);
    sleep(minutes(7)).await;
    let (purpose, _) = cache.take_idle(minutes(6)).pop().unwrap();
    cache.observe(&event);
    cache.wrote(purpose, Outcome::Written);
    assert_eq!(cache.len(), 1, "EV-06: it went on while it was written");
}

#[tokio::test(start_paused = true)]
async fn a_series_that_expired_is_created_with_its_count_ev_04() {
    let sink = FakeSink::answering(|call: &Written<Event>| match call {
        Written::Patched(..) => Err(SinkError::NotFound(String::new())),
        Written::Created(_) => Ok(()),
    });
    let rig = Rig::start(sink);
    rig.emit(&SAID).await;
    let written = rig.emit(&SAID).await;
    assert_eq!(kinds(&written), ["patch", "create"]);
    assert_eq!(written[1].event().series.as_ref().unwrap().count, 2);
    assert_eq!(written[1].event().metadata.resource_version, None);
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_is_tried_twelve_times_with_10_to_12_5_seconds_between_ev_05() {
    let rig = Rig::start(FakeSink::answering(|_| Err(transport())));
    rig.emit(&SAID).await;
    let began = Instant::now();
    let mut tries = vec![began];
    while tries.len() < 12 {
        sleep(Duration::from_millis(10)).await;
        if !rig.written().await.is_empty() {
            tries.push(Instant::now());
        }
    }
    for pair in tries.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(Duration::from_secs(10) <= pause && pause <= Duration::from_millis(12_520), "{pause:?}");
    }
    sleep(minutes(1)).await;
    assert!(rig.written().await.is_empty(), "then it is given up");
    rig.end().await;

    let rig = Rig::start(FakeSink::answering(|_| Err(SinkError::Refused(String::new()))));
    rig.emit(&SAID).await;
    sleep(minutes(1)).await;
    assert!(rig.written().await.is_empty(), "what is refused is not tried again");
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_does_not_block_other_writes() {
    let sink = FakeSink::answering(|call: &Written<Event>| {
        let fails = call.event().reason.as_deref() == Some("Bad");
        if fails { Err(transport()) } else { Ok(()) }
    });
    let rig = Rig::start(sink);
    rig.emit(&Said { reason: "Bad", ..SAID }).await;
    assert_eq!(kinds(&rig.emit(&SAID).await), ["create"]);
    let began = Instant::now();
    rig.end().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "at the end nothing is waited for");
}
