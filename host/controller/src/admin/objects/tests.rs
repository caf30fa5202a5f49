use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use tower::ServiceExt;

use super::super::guard::{Reviewer, Unanswered, User};
use super::*;
use crate::control::HostFacts;
use crate::leadership::Leadership;
use crate::report;
use crate::status::{PluginStatus, StatusRegistry};

/// Knows the users `NAME` by the token of the same name. Each may do what is listed for it:
/// `USER VERB RESOURCE/SUBRESOURCE NAMESPACE`.
struct FakeReviewer(&'static [&'static str]);

#[async_trait]
impl Reviewer for FakeReviewer {
    async fn user(&self, token: &str) -> Result<Option<User>, Unanswered> {
        Ok(Some(User { name: token.to_owned(), ..User::default() }))
    }

    async fn is_allowed(&self, user: &User, action: &Action) -> Result<bool, Unanswered> {
        let Action::Object(ObjectAction { verb, resource, subresource, namespace, name: _ }) = action else {
            return Ok(false);
        };
        let asked = format!("{} {verb} {resource}/{subresource} {namespace}", user.name);
        Ok(self.0.contains(&asked.trim_end()))
    }
}

fn control(leadership: Leadership) -> Control {
    let statuses = StatusRegistry::default();
    for name in ["team-a.mirror", "team-b.mirror", "census", "team-b.mirror.shadow", "census.shadow"] {
        statuses.register(PluginStatus::loading(name.into(), "p.yaml".into(), "p.wasm".into(), "a/p".into()));
    }
    let (reporter, _) = report::channel(report::Config::default());
    reporter.keep_lines(&"team-a.mirror".into());
    reporter.about(&"team-a.mirror".into(), 1).report(report::HostEvent::GuestLog {
        level: report::Level::Info,
        object: None,
        message: "hello".to_owned(),
        pairs: Default::default(),
    });
    let control = crate::admin::tests::admin().control;
    Control { statuses, reporter, leadership, host: std::sync::Arc::new(HostFacts::default()), ..control }
}

fn pages(control: &Control) -> Router {
    let guard = Guard::new(FakeReviewer(&[
        "ada get plugins/metrics team-a",
        "ada get plugins/logs team-a",
        "ada create plugins/redeliver team-a",
        "ops get plugins/metrics",
        "admin get plugins/metrics",
        "admin get plugins/metrics team-b",
        "admin get plugins/metrics census",
        "admin get clusterplugins/metrics",
        "admin get plugins/logs team-a",
        "admin get plugins/logs a.b",
        "admin get clusterplugins/logs",
    ]));
    routes(control, &guard)
        .into_iter()
        .fold(Router::new(), |router, (path, route)| router.route(&path, route))
}

async fn request(pages: &Router, user: &str, verb: &str, path: &str) -> (u16, String) {
    let request = axum::http::Request::builder().method(verb).uri(path);
    let request =
        if user.is_empty() { request } else { request.header("authorization", format!("Bearer {user}")) };
    let request = request.header("content-type", "application/json").body(Body::from("\"all\"")).unwrap();
    let response = pages.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn names(page: &str) -> Vec<String> {
    let page: serde_json::Value = serde_json::from_str(page).unwrap();
    let names = page["plugins"].as_array().unwrap().iter();
    names.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn promise_5_a_user_sees_only_the_plugins_that_kubernetes_lets_him_see() {
    let pages = pages(&control(Leadership::sole()));
    for (user, path, seen) in [
        ("ada", "/v1/namespaces/team-a/metrics", vec!["team-a.mirror"]),
        ("ada", "/v1/namespaces/team-a/plugins/mirror/metrics", vec!["team-a.mirror"]),
        ("ops", "/v1/all/metrics", vec!["team-a.mirror", "team-b.mirror", "team-b.mirror.shadow"]),
        (
            "admin",
            "/v1/all/metrics",
            vec!["census", "census.shadow", "team-a.mirror", "team-b.mirror", "team-b.mirror.shadow"],
        ),
        ("admin", "/v1/clusterplugins/metrics", vec!["census", "census.shadow"]),
        ("admin", "/v1/clusterplugins/census/metrics", vec!["census"]),
        // A shadow belongs to its plugin, and not to the namespace with the name of a ClusterPlugin.
        ("admin", "/v1/clusterplugins/census.shadow/metrics", vec!["census.shadow"]),
        ("admin", "/v1/namespaces/team-b/plugins/mirror.shadow/metrics", vec!["team-b.mirror.shadow"]),
        ("admin", "/v1/namespaces/census/metrics", vec![]),
    ] {
        let (status, page) = request(&pages, user, "GET", path).await;
        assert_eq!(status, 200, "{user} {path}: {page}");
        assert_eq!(names(&page), seen, "{user} {path}");
    }
    for (user, path) in [
        ("ada", "/v1/namespaces/team-b/metrics"),
        ("ada", "/v1/namespaces/team-b/plugins/mirror/metrics"),
        ("ada", "/v1/all/metrics"),
        ("ada", "/v1/clusterplugins/metrics"),
        ("ada", "/v1/clusterplugins/census/metrics"),
        ("ada", "/v1/namespaces/team-a/deadletters"),
        ("ops", "/v1/clusterplugins/metrics"),
        ("ops", "/v1/namespaces/team-a/plugins/mirror/logs"),
    ] {
        assert_eq!(request(&pages, user, "GET", path).await.0, 403, "{user} {path}");
    }
    assert_eq!(request(&pages, "", "GET", "/v1/all/metrics").await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_list_of_all_plugins_waits_for_its_turn_and_that_of_a_namespace_does_not() {
    let guard = Guard::new(FakeReviewer(&[
        "ops get plugins/metrics",
        "ops get plugins/deadletters",
        "ops get clusterplugins/metrics",
        "ops get clusterplugins/deadletters",
        "ops get plugins/metrics team-a",
        "ops get plugins/deadletters team-a",
    ]));
    let router = Router::new();
    let routes = routes(&control(Leadership::sole()), &guard);
    let pages = routes.into_iter().fold(router, |router, (path, route)| router.route(&path, route));
    let ask = async |path: &str, user: &str| {
        let request = axum::http::Request::get(path).header("authorization", format!("Bearer {user}"));
        pages.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    };
    for operation in ["metrics", "deadletters"] {
        for (place, waits) in [
            ("all", true),
            ("clusterplugins", true),
            ("clusterplugins/census", false),
            ("namespaces/team-a", false),
        ] {
            let path = format!("/v1/{place}/{operation}");
            let held = ask(&path, "ops").await;
            assert_eq!(held.status(), 200, "{path}");
            let began = tokio::time::Instant::now();
            // Who may not read the page does not wait for it.
            assert_eq!((ask(&path, "ada").await.status().as_u16(), began.elapsed().as_secs()), (403, 0));
            assert_eq!(ask(&path, "ops").await.status(), 200, "{path}");
            assert_eq!(!began.elapsed().is_zero(), waits, "{path}");
        }
    }
}

#[tokio::test]
async fn promise_5_a_plugin_named_shadow_is_not_the_shadow_of_a_cluster_plugin() {
    let pages = pages(&control(Leadership::sole()));
    let (status, answer) =
        request(&pages, "admin", "GET", "/v1/namespaces/census/plugins/shadow/metrics").await;
    assert_eq!(status, 404, "{answer}");
}

#[tokio::test]
async fn promise_5_a_write_needs_its_own_right() {
    let pages = pages(&control(Leadership::sole()));
    let at = "/v1/namespaces/team-a/plugins/mirror";
    for operation in ["rollback", "release"] {
        assert_eq!(request(&pages, "ada", "POST", &format!("{at}/{operation}")).await.0, 403, "{operation}");
    }
    let (status, answer) = request(&pages, "admin", "POST", &format!("{at}/redeliver")).await;
    assert_eq!(status, 403);
    insta::assert_snapshot!(answer, @r#"{"error":"forbidden: admin may not create plugins/redeliver of oarlock.dev \"mirror\" in namespace \"team-a\"","hint":"kubectl create rolebinding NAME --clusterrole=oarlock-plugins-edit --user=USER --namespace=team-a grants it"}"#);
    // Allowed, and carried out by the operation of the control socket: no version serves yet.
    let (status, answer) = request(&pages, "ada", "POST", &format!("{at}/redeliver")).await;
    assert_ne!(status, 403, "{answer}");
    assert_eq!(request(&pages, "ada", "GET", &format!("{at}/redeliver")).await.0, 405);
}

#[tokio::test]
async fn a_name_with_a_dot_never_reaches_a_plugin_of_another_place() {
    let pages = pages(&control(Leadership::sole()));
    for path in [
        "/v1/clusterplugins/team-a.mirror/logs",
        "/v1/namespaces/a.b/plugins/mirror/logs",
        "/v1/namespaces/team-a/plugins/absent/logs",
    ] {
        let (status, answer) = request(&pages, "admin", "GET", path).await;
        assert_eq!(status, 404, "{path}: {answer}");
        assert!(!answer.contains("team-b") && !answer.contains("census"), "{answer}");
    }
}

#[tokio::test]
async fn lines_are_numbered_and_go_on_where_a_client_stopped() {
    let pages = pages(&control(Leadership::sole()));
    let logs = "/v1/namespaces/team-a/plugins/mirror/logs";
    let (status, lines) = request(&pages, "ada", "GET", &format!("{logs}?numbered=true")).await;
    assert!(status == 200 && lines.starts_with("0 ") && lines.ends_with("hello\n"), "{status} {lines}");
    let (_, all) = request(&pages, "ada", "GET", &format!("{logs}?from=1-1")).await;
    assert!(all.ends_with("hello\n"), "the line of another log is no place in this one: {all}");
    assert_eq!(request(&pages, "ada", "GET", &format!("{logs}?since=0")).await, (200, String::new()));
    assert_eq!(request(&pages, "ada", "GET", &format!("{logs}?tail=x")).await.0, 400);
}

#[tokio::test]
async fn a_standby_says_who_leads() {
    let leadership = Leadership::standby();
    leadership.observe("oarlock-1_x");
    let pages = pages(&control(leadership));
    let (status, answer) = request(&pages, "ada", "GET", "/v1/namespaces/team-a/metrics").await;
    assert!(status == 409 && answer.contains("oarlock-1_x"), "{status} {answer}");
}
