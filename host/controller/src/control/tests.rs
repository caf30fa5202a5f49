use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use oarlock_informer::GroupVersionResource;
use oarlock_informer::list_watch::ListWatch;
use oarlock_informer::object::{Content, TypeMeta};
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::informers::{Informers, Limits, ResourceSource};
use crate::leadership::Leadership;
use crate::metrics::ClientMetrics;
use crate::reload;
use crate::report::{self, HostEvent, Level};
use crate::status::RefusedFile;
use crate::tasks::Tasks;
use crate::traces::Traces;

struct NoSource;

#[async_trait]
impl ResourceSource for NoSource {
    async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        Ok(None)
    }

    fn list_watch(&self, _: &GroupVersionResource, _: &TypeMeta, _: Content) -> Arc<dyn ListWatch> {
        unreachable!("nothing is served")
    }
}

/// Returns the operations on a host with one plugin, `mirror`, of which no version serves.
fn control() -> Control {
    let (tasks, _) = Tasks::new(CancellationToken::new());
    let (reporter, _) = report::channel(report::Config::default());
    let informers = Informers::new(tasks, reporter.clone(), Arc::new(NoSource), Limits::default());
    let statuses = StatusRegistry::default();
    let metrics = Metrics::new(
        statuses.clone(),
        informers,
        reporter.clone(),
        ClientMetrics::default(),
        Traces::default(),
    );
    let name: Arc<str> = "mirror".into();
    statuses.register(PluginStatus::loading(name.clone(), "m.yaml".into(), "m.wasm".into(), "a/b".into()));
    reporter.keep_lines(&name);
    metrics.plugin(&name).called("on-add", "retry", Duration::from_millis(3));
    let (rollback, _) = reload::rollbacks();
    Control {
        statuses,
        metrics,
        reporter,
        rollback,
        host: Arc::default(),
        leadership: Leadership::sole(),
        token: CancellationToken::new(),
    }
}

async fn ask(operations: &Router, method: &str, path: &str, body: &str) -> (u16, String) {
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = operations.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn log(control: &Control, message: &str) {
    let event = HostEvent::GuestLog {
        level: Level::Info,
        object: None,
        message: message.to_owned(),
        pairs: Default::default(),
    };
    control.reporter.about(&"mirror".into(), 1).report(event);
}

#[tokio::test]
async fn the_admin_address_serves_no_operation_that_changes_something_and_no_logs() {
    let control = control();
    let (reading, all) = (reading(control.clone(), |route| route), all(control));
    for path in ["/v1/host", "/v1/plugins", "/v1/plugins/mirror"] {
        assert_eq!(ask(&reading, "GET", path, "").await.0, 200, "{path}");
        assert_eq!(ask(&all, "GET", path, "").await.0, 200, "{path}");
    }
    for (method, path) in [
        ("GET", "/v1/plugins/mirror/lines"),
        ("POST", "/v1/plugins/mirror/suspend"),
        ("POST", "/v1/plugins/mirror/resume"),
        ("POST", "/v1/plugins/mirror/rollback"),
        ("POST", "/v1/plugins/mirror/redeliver"),
    ] {
        let (status, body) = ask(&reading, method, path, r#"{"all":null}"#).await;
        assert_eq!(status, 403, "{path}: {body}");
        assert!(body.contains("control socket"), "{body}");
    }
}

#[tokio::test]
async fn a_plugin_is_shown_with_what_it_has_used_and_an_unknown_one_with_a_hint() {
    let all = all(control());
    let plugin: Value = serde_json::from_str(&ask(&all, "GET", "/v1/plugins/mirror", "").await.1).unwrap();
    assert_eq!((&plugin["name"], &plugin["phase"]), (&"mirror".into(), &"loading".into()));
    assert_eq!(plugin["usage"]["failures"], 1);
    assert_eq!(plugin["usage"]["call-duration"], serde_json::json!([[3_200_000, 1]]));
    for (method, path) in [("GET", "/v1/plugins/mirorr"), ("POST", "/v1/plugins/mirorr/suspend")] {
        let (status, body) = ask(&all, method, path, "").await;
        assert_eq!(status, 404);
        let refusal: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(refusal["error"], "no plugin is named \"mirorr\"");
        assert_eq!(refusal["hint"], "did you mean mirror? the plugins are mirror");
    }
}

#[tokio::test]
async fn an_object_that_is_refused_is_listed_and_its_plugin_is_not_unknown() {
    let control = control();
    let refused = RefusedFile { file: "Plugin a/mirror".to_owned(), message: "why".to_owned() };
    control.statuses.set_refused_object("a.mirror", Some(refused));
    let all = all(control.clone());
    let page: Value = serde_json::from_str(&ask(&all, "GET", "/v1/plugins", "").await.1).unwrap();
    let expected = serde_json::json!([{"file": "Plugin a/mirror", "message": "why"}]);
    assert_eq!(page["refused-files"], expected);
    let (status, body) = ask(&all, "POST", "/v1/plugins/a.mirror/suspend", "").await;
    assert_eq!(status, 404);
    assert!(body.contains("does not run plugin a.mirror: it refuses Plugin a/mirror: why"), "{body}");
    control.statuses.set_refused_object("a.mirror", None);
    assert!(ask(&all, "GET", "/v1/plugins/a.mirror", "").await.1.contains("no plugin is named"));
}

#[tokio::test]
async fn the_lines_of_a_plugin_are_shown_and_followed_until_the_host_ends() {
    let control = control();
    log(&control, "one\u{1b}[2J");
    log(&control, "two");
    let all = all(control.clone());
    let (_, text) = ask(&all, "GET", "/v1/plugins/mirror/lines?tail=2", "").await;
    assert!(text.contains("mirror#1: one\\u{1b}[2J\n") && text.ends_with("mirror#1: two\n"), "{text:?}");
    let (_, json) = ask(&all, "GET", "/v1/plugins/mirror/lines?tail=1&json=true", "").await;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["message"], "two");
    let (followed, ()) =
        tokio::join!(ask(&all, "GET", "/v1/plugins/mirror/lines?tail=0&follow=true", ""), async {
            log(&control, "three");
            tokio::task::yield_now().await;
            control.token.cancel();
        });
    assert!(followed.1.ends_with("mirror#1: three\n"), "{followed:?}");
}
