use oarlock_fake_api::{FakeApi, Reply};
use oarlock_plugin::contract::{EventType, ObjectRef};

use parking_lot::Mutex;

use super::*;
use crate::kube_access::testing::{core_v1, requester};

fn event(note: &str) -> GuestEvent {
    GuestEvent {
        target: GroupVersionResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            plural: "deployments".to_owned(),
        },
        regarding: ObjectRef {
            namespace: "team-a".to_owned(),
            name: "web".to_owned(),
            uid: "u-1".to_owned(),
            resource_version: "7".to_owned(),
        },
        kind: "Deployment".to_owned(),
        event_type: EventType::Warning,
        reason: "TooSmall".to_owned(),
        note: note.to_owned(),
    }
}

fn api() -> FakeApi {
    FakeApi::new(|request| match request.path.as_str() {
        "/api/v1" => core_v1(),
        _ => Reply::json(201, "{}"),
    })
}

/// Returns an emitter, and the recorders that it has started.
fn emitter(api: &FakeApi) -> (Emitter, Arc<Mutex<Vec<Recorder>>>) {
    let started = Arc::<Mutex<Vec<_>>>::default();
    let starts = started.clone();
    let record = Box::new(move |recorder| starts.lock().push(recorder));
    (Emitter::new(Arc::new(requester(api)), record), started)
}

/// Emits Events, runs the recorder until the queue is empty, and returns method, path and body of each
/// request.
async fn sent(api: &FakeApi, events: Vec<GuestEvent>) -> Vec<(String, String, serde_json::Value)> {
    let (emitter, started) = emitter(api);
    for event in events {
        emitter.emit(event).unwrap();
    }
    drop(emitter);
    let recorder = started.lock().pop().unwrap();
    recorder.run(CancellationToken::new()).await;
    let requests = api.requests().into_iter().filter(|it| it.path != "/api/v1");
    requests.map(|it| (it.method.to_string(), it.path, serde_json::from_str(&it.body).unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_created_once_and_then_counted() {
    let sent = sent(&api(), vec![event("a"), event("a"), event("b")]).await;
    let (method, path, body) = &sent[0];
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/api/v1/namespaces/team-a/events"));
    assert_eq!(body["involvedObject"]["apiVersion"], "apps/v1");
    assert_eq!(body["involvedObject"]["uid"], "u-1");
    assert_eq!(body["type"], "Warning");
    assert_eq!(body["source"]["component"], "hello");
    let name = body["metadata"]["name"].as_str().unwrap();

    let (method, path, body) = &sent[1];
    assert_eq!(
        (method.as_str(), path.as_str()),
        ("PATCH", format!("/api/v1/namespaces/team-a/events/{name}").as_str())
    );
    assert_eq!(body["count"], 2);
    assert_eq!(sent[2].0, "POST", "a different note makes a different Event");
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_is_created_again() {
    let api = FakeApi::new(|request| match (request.method.as_str(), request.path.as_str()) {
        (_, "/api/v1") => core_v1(),
        ("PATCH", _) => Reply::status(404, "NotFound", "expired"),
        _ => Reply::json(201, "{}"),
    });
    let sent = sent(&api, vec![event("a"), event("a")]).await;
    let methods: Vec<_> = sent.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(methods, ["POST", "PATCH", "POST"]);
}

#[tokio::test(start_paused = true)]
async fn events_about_cluster_scoped_objects_are_in_the_namespace_default() {
    let mut event = event("a");
    event.regarding.namespace = String::new();
    assert_eq!(sent(&api(), vec![event]).await[0].1, "/api/v1/namespaces/default/events");
}

#[tokio::test(start_paused = true)]
async fn spam_is_dropped() {
    let events = (0..40).map(|n| event(&n.to_string())).collect();
    assert_eq!(sent(&api(), events).await.len(), 25);
}

#[tokio::test(start_paused = true)]
async fn similar_events_are_combined() {
    let events = (0..12).map(|n| event(&n.to_string())).collect();
    let sent = sent(&api(), events).await;
    let outline: Vec<_> = sent.iter().map(|(method, _, body)| (method.as_str(), &body["message"])).collect();
    assert_eq!(outline[8], ("POST", &"8".into()));
    assert_eq!(outline[9], ("POST", &"(combined from similar events): 9".into()));
    assert_eq!(outline[11], ("PATCH", &"(combined from similar events): 11".into()));
}

#[tokio::test(start_paused = true)]
async fn an_event_is_sent_again_while_the_api_server_is_unavailable() {
    let n_tries = std::sync::atomic::AtomicU32::new(0);
    let api = FakeApi::new(move |request| match request.path.as_str() {
        "/api/v1" => core_v1(),
        _ if n_tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2 => {
            Reply::status(503, "ServiceUnavailable", "not now")
        }
        _ => Reply::json(201, "{}"),
    });
    let sent = sent(&api, vec![event("a")]).await;
    let names: Vec<_> = sent.iter().map(|(_, _, body)| &body["metadata"]["name"]).collect();
    assert_eq!(names, [names[0]; 3], "each try has the same name, so that the Event exists once");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_an_error() {
    let (emitter, _started) = emitter(&api());
    for _ in 0..Broadcaster::<Event>::QUEUE {
        emitter.emit(event("a")).unwrap();
    }
    assert!(matches!(emitter.emit(event("a")), Err(Error::Throttled(_))));
}

#[tokio::test(start_paused = true)]
async fn the_first_event_starts_the_recording() {
    let (emitter, started) = emitter(&api());
    assert!(started.lock().is_empty());
    emitter.emit(event("a")).unwrap();
    emitter.emit(event("b")).unwrap();
    assert_eq!(started.lock().len(), 1);
}
