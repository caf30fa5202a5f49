use std::{collections::HashMap, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;
use crate::logging::follow;
use crate::{
    Broadcaster, EventRecorder, EventType,
    testing::{FakeSink, Written, pod, transport},
};

const USUAL: Config = Config { correlator: NONE, tries: 12, sleep: Duration::from_secs(10), seed: 7 };
const NONE: correlator::Config = correlator::Config {
    lru_cache_size: 0,
    burst: 0,
    per_second: 0.0,
    max_events: 0,
    max_interval: Duration::ZERO,
};

/// Records one Event twice, and returns both durations.
async fn twice(sink: &FakeSink<Event>) -> [Duration; 2] {
    let broadcaster = Broadcaster::new();
    let recorder = EventRecorder::new(broadcaster.clone(), "test", "");
    let mut watch = broadcaster.watch();
    let mut recording = Recording::new(broadcaster.watch(), sink.clone(), USUAL);
    let mut took = [Duration::ZERO; 2];
    for took in &mut took {
        recorder.event(pod("bar", ""), EventType::Normal, "Started", "m").unwrap();
        let event = watch.next().await.unwrap();
        let began = Instant::now();
        recording.record(&event, &CancellationToken::new()).await;
        *took = began.elapsed();
    }
    took
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_a_missing_event_creates_it_without_resource_version_er_05() {
    let sink = FakeSink::answering(|call| match call {
        Written::Patched(..) => Err(SinkError::NotFound("expired".to_owned())),
        Written::Created(_) => Ok(()),
    });
    twice(&sink).await;
    let calls = sink.calls();
    let kinds: Vec<bool> = calls.iter().map(|call| call.patch().is_some()).collect();
    assert_eq!(kinds, [false, true, false]);
    let event = calls[2].event();
    assert_eq!((event.metadata.resource_version.as_ref(), event.count), (None, Some(2)));
    assert_eq!(event.metadata.name, calls[0].event().metadata.name);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_tried_twelve_times_with_a_random_first_delay_er_06() {
    let sink = FakeSink::answering(|_| Err(transport()));
    let [first, second] = twice(&sink).await;
    assert_eq!(sink.calls().len(), 12 + 12);
    for took in [first, second] {
        assert!(Duration::from_secs(100) <= took && took < Duration::from_secs(111), "{took:?}");
    }
    assert_ne!(first, second);
    let sink = FakeSink::answering(|_| Err(SinkError::Unexpected("a Pod".to_owned())));
    twice(&sink).await;
    assert_eq!(sink.calls().len(), 24);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_not_retried_er_06() {
    let text = || "m".to_owned();
    let errors = [
        SinkError::Refused(text()),
        SinkError::AlreadyExists(text()),
        SinkError::NotFound(text()),
        SinkError::Construction(text()),
    ];
    for error in errors {
        let answer = error.clone();
        let sink = FakeSink::answering(move |_| Err(answer.clone()));
        let took = twice(&sink).await;
        assert_eq!(took, [Duration::ZERO; 2], "{error}");
        let expected = if matches!(error, SinkError::NotFound(_)) { 3 } else { 2 };
        assert_eq!(sink.calls().len(), expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn counting_continues_from_the_stored_event_er_07() {
    struct Renaming(FakeSink<Event>);
    #[async_trait::async_trait]
    impl EventSink<Event> for Renaming {
        async fn create(&self, event: &Event) -> Result<Event, SinkError> {
            let mut event = self.0.create(event).await?;
            event.metadata.name = Some("stored".to_owned());
            event.metadata.resource_version = Some("7".to_owned());
            event.count = Some(5);
            Ok(event)
        }
        async fn patch(&self, event: &Event, patch: &serde_json::Value) -> Result<Event, SinkError> {
            self.0.patch(event, patch).await
        }
    }
    let broadcaster = Broadcaster::new();
    let recorder = EventRecorder::new(broadcaster.clone(), "test", "");
    let sink = FakeSink::new();
    let recording = Recording::new(broadcaster.watch(), Renaming(sink.clone()), USUAL);
    for _ in 0..2 {
        recorder.event(pod("bar", ""), EventType::Normal, "Started", "m").unwrap();
    }
    broadcaster.shut_down();
    recording.run(CancellationToken::new()).await;
    let calls = sink.calls();
    let event = calls[1].event();
    assert_eq!(event.metadata.name.as_deref(), Some("stored"));
    assert_eq!(event.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(calls[1].patch().unwrap()["count"], 6);
}

// Conformance: 45.7
#[tokio::test(start_paused = true)]
async fn during_the_shutdown_each_write_is_tried_once() {
    let sink = FakeSink::answering(|_| Err(transport()));
    let broadcaster = Broadcaster::new();
    let mut watch = broadcaster.watch();
    let mut recording = Recording::new(broadcaster.watch(), sink.clone(), USUAL);
    EventRecorder::new(broadcaster.clone(), "test", "")
        .event(pod("bar", ""), EventType::Normal, "Started", "m")
        .unwrap();
    let event = watch.next().await.unwrap();
    let closing = CancellationToken::new();
    closing.cancel();
    let began = Instant::now();
    recording.record(&event, &closing).await;
    assert_eq!((sink.calls().len(), began.elapsed()), (1, Duration::ZERO));
    assert_eq!(recording.stats().abandoned(), 1);
    // Also for Events that are queued at the shutdown.
    broadcaster.shut_down();
    recording.run(CancellationToken::new()).await;
    assert_eq!((sink.calls().len(), began.elapsed()), (1, Duration::ZERO));
}

// Conformance: 45.8
#[tokio::test(start_paused = true)]
async fn many_events_are_recorded_or_counted_as_dropped() {
    const N: usize = 1_000;
    let failures: Mutex<HashMap<String, usize>> = Mutex::default();
    let sink = FakeSink::answering(move |call: &Written<Event>| {
        let name = call.event().involved_object.name.clone().unwrap();
        let mut failures = failures.lock();
        let failures = failures.entry(name).or_default();
        *failures += 1;
        if *failures <= 4 { Err(transport()) } else { Ok(()) }
    });
    let broadcaster = Broadcaster::new();
    let recorder = EventRecorder::new(broadcaster.clone(), "test", "");
    let config = Config { sleep: Duration::ZERO, ..USUAL };
    let recording = Recording::new(broadcaster.watch(), sink.clone(), config);
    let stats = recording.stats();
    let logged = Arc::new(Mutex::new(0));
    let log = {
        let logged = logged.clone();
        follow(broadcaster.watch(), CancellationToken::new(), move |_: &Event| *logged.lock() += 1)
    };
    std::thread::scope(|scope| {
        for threads in 0..10 {
            let recorder = recorder.clone();
            scope.spawn(move || {
                for n in 0..N / 10 {
                    let name = Some(format!("pod-{threads}-{n}"));
                    let about = ObjectReference { name, ..pod("bar", "") };
                    recorder.event(about, EventType::Normal, "Started", "m").unwrap();
                }
            });
        }
    });
    drop((recorder, broadcaster));
    tokio::join!(recording.run(CancellationToken::new()), log);
    assert_eq!((stats.recorded(), stats.abandoned()), (N as u64, 0));
    assert_eq!(*logged.lock(), N);
    let mut tries: HashMap<String, usize> = HashMap::new();
    for call in sink.calls() {
        *tries.entry(call.event().involved_object.name.clone().unwrap()).or_default() += 1;
    }
    assert_eq!(tries.len(), N);
    assert!(tries.values().all(|&tries| tries >= 5));
}
