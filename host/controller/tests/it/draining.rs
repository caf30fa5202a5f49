//! Calls in progress when their plugin is deleted, or when the host stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::{Method, Request};
use kube::api::DeleteParams;
use kube::client::Body;
use oarlock_component_source::Policy;
use oarlock_controller::control;
use oarlock_controller::runtime::Config;
use oarlock_dev_cluster::faults::{Action, Fault, FaultId, Match};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::control_socket;
use crate::plugin_objects::Objects;
use crate::rig::{Rig, until_ok};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// Holds back the answers to the ConfigMaps that a host creates.
struct HeldAnswers {
    is_asked: AtomicBool,
    released: Semaphore,
}

// === impl HeldAnswers ===

impl HeldAnswers {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_asked: AtomicBool::new(false), released: Semaphore::new(0) })
    }

    /// Returns a client for the host, whose answers are held back.
    fn client(self: Arc<Self>, client: kube::Client) -> kube::Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let (held, client) = (Arc::clone(&self), client.clone());
            async move {
                let creates =
                    request.method() == Method::POST && request.uri().path().ends_with("/configmaps");
                let answer = client.send(request).await;
                if creates {
                    held.is_asked.store(true, Ordering::SeqCst);
                    held.released.acquire().await.unwrap().forget();
                }
                answer
            }
        });
        kube::Client::new(service, "default")
    }

    async fn until_asked(&self) {
        until_ok("the call", async || if self.is_asked.load(Ordering::SeqCst) { Ok(()) } else { Err(()) })
            .await;
    }
}

/// Delays the answer to the second ConfigMap that is created from now on for ever. The first one is the
/// test's, the second one the plugin's copy of it.
fn unanswered_copy(rig: &Rig) -> FaultId {
    let on = Match { resource: Some("configmaps".into()), verbs: vec!["create".into()], ..Match::default() };
    let slow = Action::SlowBody { pause: NEVER };
    rig.cluster.faults().add(Fault { on, action: slow, skip: 1, times: Some(1) })
}

async fn in_progress(rig: &Rig, slow: FaultId) {
    until_ok("the call", async || if rig.cluster.faults().count(slow) == 1 { Ok(()) } else { Err(()) }).await;
}

/// Returns where in the lines the first one is that satisfies the predicate.
fn place(lines: &[Value], is_it: impl Fn(&Value) -> bool) -> Option<usize> {
    lines.iter().position(is_it)
}

/// Deletes a Plugin object while its call waits for an answer, which comes when the plugin is unloaded or
/// never. Returns all lines.
async fn deleted_during_a_call(is_answered: bool, limit: Duration) -> Vec<Value> {
    let answers = HeldAnswers::new();
    let of_host = Arc::clone(&answers);
    let change =
        |config: Config| Config { drain_timeout: limit, client: of_host.client(config.client), ..config };
    let objects = Objects::start_with(Policy::default(), change).await;
    objects.component("writes.wasm", "writes");
    objects.account("w").await;
    let spec = json!({
        "source": {"file": {"path": "writes.wasm"}}, "serviceAccountName": "w", "limits": {"callDeadline": "60s"},
    });
    objects.create("w", spec).await;
    objects.condition("w", "Ready", "True", "Serving").await;
    objects.rig.create("a").await;
    answers.until_asked().await;
    objects.plugins().delete("w", &DeleteParams::default()).await.unwrap();
    objects.rig.event("default.w", "plugin-unloaded").await;
    if is_answered {
        answers.released.add_permits(1);
    }
    objects.rig.line(|it| it["event"] == "generation-state" && it["state"] == "gone").await;
    objects.rig.end().await
}

fn delivered(line: &Value) -> bool {
    line["event"] == "delivered" && line["name"] == "a"
}

fn gone(line: &Value) -> bool {
    line["event"] == "generation-state" && line["state"] == "gone"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_normally_after_its_plugin_object_was_deleted() {
    let lines = deleted_during_a_call(true, Duration::from_secs(100)).await;
    let unloaded = place(&lines, |it| it["event"] == "plugin-unloaded");
    let done = place(&lines, |it| delivered(it) && it["outcome"] == "done");
    assert!(unloaded.is_some() && unloaded < done && done < place(&lines, gone), "{lines:#?}");
    assert_eq!(place(&lines, |it| it["event"] == "calls-dropped"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cut_when_its_plugin_object_was_deleted_and_the_limit_has_passed() {
    let lines = deleted_during_a_call(false, Duration::from_millis(200)).await;
    let dropped = place(&lines, |it| it["event"] == "calls-dropped").unwrap();
    assert!(Some(dropped) < place(&lines, gone), "{lines:#?}");
    assert_eq!((&lines[dropped]["calls"], &lines[dropped]["after-ms"]), (&json!(1), &json!(200)));
    assert_eq!(lines[dropped]["plugin"], "default.w");
    assert_eq!(place(&lines, delivered), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stops_reports_the_calls_that_it_cut_and_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let socket = control::bind(folder.path(), None).unwrap();
    let path = socket.path().to_owned();
    let rig = Rig::start_with(|config| Config {
        drain_timeout: Duration::from_millis(200),
        control: Some(socket),
        ..config
    })
    .await;
    rig.plugin_with("w", "writes", json!({"limits": {"callDeadline": "60s"}}));
    rig.serves("w", 1).await;
    let slow = unanswered_copy(&rig);
    rig.create("a").await;
    in_progress(&rig, slow).await;
    for name in ["b", "c", "d"] {
        rig.create(name).await;
    }
    // With the ConfigMap of the call in progress, and the copy that it has made.
    until_ok("three more that wait", async || {
        let (_, body) = control_socket::request(&path, "GET /v1/plugins/w").await;
        let status: Value = serde_json::from_str(&body).unwrap();
        if status["subscriptions"][0]["backlog"]["pending"] == 5 { Ok(()) } else { Err(status) }
    })
    .await;
    let lines = rig.end().await;
    let drained = lines.iter().find(|it| it["event"] == "host-drained").unwrap();
    assert_eq!((&drained["calls-dropped"], &drained["waiting"]), (&json!(1), &json!(5)), "{drained}");
}
