use std::sync::Arc;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use oarlock_informer::testing::FakeListWatch;
use oarlock_informer::{
    GroupVersionResource,
    list_watch::ListWatch,
    object::{Content, TypeMeta},
};
use tower::ServiceExt;

use super::*;
use crate::control::HostFacts;
use crate::informers::{InformerHandle, Limits, Purpose, ResourceSource};
use crate::metrics::ClientMetrics;
use crate::report;
use crate::tasks::Tasks;
use crate::traces::Traces;

struct Namespaces;

#[async_trait]
impl ResourceSource for Namespaces {
    async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        Ok(Some(TypeMeta::new("v1", "Namespace")))
    }

    fn list_watch(&self, _: &GroupVersionResource, type_meta: &TypeMeta, _: Content) -> Arc<dyn ListWatch> {
        let api = FakeListWatch::new(type_meta.clone());
        api.put("default");
        Arc::new(api)
    }
}

pub(super) fn admin() -> Admin {
    let (tasks, _) = Tasks::new(CancellationToken::new());
    let (reporter, _) = report::channel(report::Config::default());
    let informers = Informers::new(tasks.clone(), reporter.clone(), Arc::new(Namespaces), Limits::default());
    let statuses = StatusRegistry::default();
    let metrics = Metrics::new(
        statuses.clone(),
        informers.clone(),
        reporter.clone(),
        ClientMetrics::default(),
        Traces::default(),
    );
    Admin {
        health: Health::new(informers.clone()),
        control: Control {
            statuses: statuses.clone(),
            metrics: metrics.clone(),
            reporter,
            rollback: crate::reload::rollbacks().0,
            host: Arc::new(HostFacts::default()),
            leadership: crate::leadership::Leadership::sole(),
            token: CancellationToken::new(),
        },
        metrics,
        informers,
        statuses,
        tasks,
    }
}

fn namespaces_handle(admin: &Admin) -> InformerHandle {
    let namespaces = GroupVersionResource::new("", "v1", "namespaces");
    admin.informers.acquire(&namespaces, Purpose::Host, Content::Metadata).unwrap()
}

async fn answer(admin: &Admin, path: &str, accept: &str) -> Response {
    let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).unwrap();
    admin.clone().router(Reasons::Shown).oneshot(request).await.unwrap()
}

async fn get(admin: &Admin, path: &str) -> (u16, String) {
    let response = answer(admin, path, "").await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn readyz_passes_when_the_namespaces_are_synced_and_the_plugin_files_read() {
    let admin = admin();
    assert_eq!(get(&admin, "/livez").await, (200, "ok\n".to_owned()));
    let namespaces = namespaces_handle(&admin);
    assert_eq!(get(&admin, "/readyz").await.0, 503);
    namespaces.synced().await;
    admin.health.plugin_files_read(Vec::new());
    assert_eq!(get(&admin, "/readyz").await, (200, "ok\n".to_owned()));
    let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
    let handle = admin.statuses.register(status);
    handle.update(|status| status.waits_for = vec!["its component to be compiled".to_owned()]);
    let ready = (200, "ok\np waits for its component to be compiled\n".to_owned());
    assert_eq!(get(&admin, "/readyz").await, ready);
}

#[tokio::test]
async fn the_pages_show_plugins_informers_budget_and_metrics() {
    let admin = admin();
    let namespaces = namespaces_handle(&admin);
    namespaces.synced().await;
    let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
    admin.statuses.register(status);
    admin.metrics.plugin(&"p".into()).called("on-add", "done", std::time::Duration::from_millis(1));
    let (_, plugins) = get(&admin, "/plugins").await;
    let plugins: serde_json::Value = serde_json::from_str(&plugins).unwrap();
    assert_eq!(plugins["plugins"][0]["phase"], "loading");
    assert_eq!(plugins["informers"][0]["resource"], "v1/namespaces");
    assert_eq!(plugins["informers"][0]["content"], "metadata");
    assert_eq!(plugins["budget"]["informers"], 1);
    let (_, metrics) = get(&admin, "/metrics").await;
    for series in [
        r#"oarlock_plugin_calls_total{plugin="p",function="on-add",outcome="done"} 1.0"#,
        r#"oarlock_cache_objects{resource="v1/namespaces"} 1.0"#,
        r#"oarlock_plugin_up{plugin="p"} 0.0"#,
        r#"oarlock_cache_content{resource="v1/namespaces",content="metadata"} 1.0"#,
        r#"oarlock_cache_bytes{resource="v1/namespaces",part="compressed"} 0.0"#,
        r#"oarlock_cache_handles{resource="v1/namespaces"} 1.0"#,
        "oarlock_budget_used_objects 1.0",
        "oarlock_budget_limit_informers 256.0",
        "oarlock_budget_refusals_total 0",
        "oarlock_reports_dropped_total 0",
    ] {
        assert!(metrics.contains(series), "{series} is not in\n{metrics}");
    }
    admin.metrics.forget(&"p".into());
    assert!(!get(&admin, "/metrics").await.1.contains("on-add"));
}

/// The host makes the page of metrics on another thread.
#[tokio::test]
async fn a_probe_is_answered_while_a_page_of_metrics_is_made() {
    let admin = admin();
    let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
    let handle = admin.statuses.register(status);
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    // The page waits for the status.
    let busy = std::thread::spawn(move || {
        let mut is_released = false;
        handle.update(|_| {
            begun.send(()).unwrap();
            is_released = released.recv_timeout(std::time::Duration::from_secs(20)).is_ok();
        });
        is_released
    });
    has_begun.recv().unwrap();
    let probe = async {
        // The other request begins first.
        tokio::task::yield_now().await;
        let answer = get(&admin, "/livez").await;
        // Too late if the page was made in this thread.
        let _ = release.send(());
        answer
    };
    let (page, probe) = tokio::join!(get(&admin, "/metrics"), probe);
    assert_eq!((page.0, probe), (200, (200, "ok\n".to_owned())));
    assert!(busy.join().unwrap(), "the probe was answered too late");
}

#[tokio::test(start_paused = true)]
async fn promise_4_one_page_about_all_plugins_is_held_at_a_time() {
    let admin = admin();
    for n in 0..200 {
        let name = format!("p-{n}").into();
        let status = PluginStatus::loading(name, "p.yaml".into(), "p.wasm".into(), "ns/p".into());
        admin.statuses.register(status);
    }
    let pages = admin.router(Reasons::Shown);
    let ask = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        pages.clone().oneshot(request).await.unwrap()
    };
    let long = ["/plugins", "/v1/plugins", "/v1/parked"];
    for held in long {
        let unread = ask(held).await;
        assert_eq!(unread.status(), 200);
        let (first, refused) = tokio::join!(ask(held), ask(held));
        assert_eq!(first.status(), 200);
        assert_eq!((refused.status().as_u16(), refused.headers().contains_key("retry-after")), (503, true));
        let refused = to_bytes(refused.into_body(), usize::MAX).await.unwrap();
        let refused: serde_json::Value = serde_json::from_slice(&refused).unwrap();
        assert_eq!(refused["hint"], "try again in a few seconds", "{refused}");
        // No other page waits for the client that holds this one.
        let apart = ["/livez", "/metrics", "/v1/plugins/p-1"];
        for other in long.into_iter().filter(|it| *it != held).chain(apart) {
            let began = tokio::time::Instant::now();
            assert_eq!((ask(other).await.status().as_u16(), began.elapsed().as_secs()), (200, 0), "{other}");
        }
        assert_eq!(first.headers()[header::CONTENT_TYPE], "application/json");
        let length = first.headers()[header::CONTENT_LENGTH].to_str().unwrap().parse::<usize>().unwrap();
        let page = to_bytes(first.into_body(), usize::MAX).await.unwrap();
        assert_eq!(page.len(), length);
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        if let Some(plugins) = page["plugins"].as_array() {
            assert!(plugins.len() == 200 && length > 32 << 10, "{} plugins, {length} bytes", plugins.len());
        }
        assert_eq!(ask(held).await.status(), 200, "it is read");
    }
}

/// Every user of the machine may read the pages, and the output of a guest may quote secrets.
#[tokio::test]
async fn the_output_of_a_guest_before_a_trap_is_on_the_control_socket_alone() {
    let admin = admin();
    let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
    let handle = admin.statuses.register(status);
    handle.record_loss("on-add of pods n/a: the guest trapped: unreachable", "no answer token=canary-41f0");
    let socket = control::all(admin.control.clone());
    for path in ["/plugins", "/v1/plugins", "/v1/plugins/p"] {
        let (_, page) = get(&admin, path).await;
        assert!(page.contains("unreachable. `oarlock logs p` shows") && !page.contains("canary"), "{page}");
        if path.starts_with("/v1") {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = socket.clone().oneshot(request).await.unwrap();
            let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let text = String::from_utf8(body.to_vec()).unwrap();
            assert!(text.contains(r"unreachable\nno answer token=canary-41f0"), "{text}");
        }
    }
    // The next error has no output.
    handle.record_error("on-add of pods n/a: not yet");
    assert!(!format!("{:?}", admin.statuses.snapshot_in_full()).contains("canary"));
}

#[tokio::test]
async fn the_error_of_a_port_in_use_names_the_flag() {
    let taken = bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let error = bind(taken.address(), None).await.unwrap_err();
    assert!(matches!(error, Error::AddressInUse { .. }));
    assert!(error.to_string().contains("--admin-addr"), "{error}");
}

#[tokio::test]
async fn probes_name_and_exclude_checks_as_kubernetes_does() {
    let admin = admin();
    insta::assert_snapshot!(get(&admin, "/readyz").await.1, @r"
    [+]ping ok
    [-]plugin-files failed: the host has not read the plugin files yet
    [+]informer-sync ok
    [+]api-server ok
    readyz check failed
    ");
    assert_eq!(get(&admin, "/readyz").await.0, 503);
    assert_eq!(get(&admin, "/readyz?exclude=plugin-files").await, (200, "ok\n".to_owned()));
    insta::assert_snapshot!(get(&admin, "/readyz?verbose&exclude=plugin-files&exclude=etcd").await.1, @r#"
    [+]ping ok
    [+]plugin-files excluded: ok
    [+]informer-sync ok
    [+]api-server ok
    warn: some health checks cannot be excluded: no matches for "etcd"
    readyz check passed
    "#);
    admin.health.plugin_files_read(Vec::new());
    insta::assert_snapshot!(get(&admin, "/readyz?verbose=1").await.1, @r"
    [+]ping ok
    [+]plugin-files ok
    [+]informer-sync ok
    [+]api-server ok
    readyz check passed
    ");
    insta::assert_snapshot!(get(&admin, "/livez?verbose").await.1, @r"
    [+]ping ok
    livez check passed
    ");
    assert_eq!(get(&admin, "/readyz/informer-sync").await, (200, "ok\n".to_owned()));
    assert_eq!(get(&admin, "/livez/ping").await, (200, "ok\n".to_owned()));
    assert_eq!(get(&admin, "/readyz/etcd").await.0, 404);
}

#[tokio::test]
async fn metrics_have_the_text_format_unless_the_request_accepts_open_metrics() {
    let admin = admin();
    let open = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5";
    for (accept, content_type) in [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        (open, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        let response = answer(&admin, "/metrics", accept).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], content_type);
        let page = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(page.ends_with(b"# EOF\n"), content_type.contains("openmetrics"), "{accept}");
    }
}

#[tokio::test]
async fn the_first_page_links_every_other_page() {
    let admin = admin();
    let (status, page) = get(&admin, "/").await;
    assert_eq!(status, 200);
    let links: Vec<_> = page.split("href=\"").skip(1).filter_map(|link| link.split('"').next()).collect();
    assert_eq!(links, ["/livez?verbose", "/readyz?verbose", "/metrics", "/plugins"]);
    for link in links {
        assert_ne!(get(&admin, link).await.0, 404, "{link}");
    }
    assert_eq!(get(&admin, "/nope").await.0, 404);
}

#[tokio::test]
async fn the_plugins_page_shows_a_refused_plugin_without_control_characters() {
    let admin = admin();
    let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
    let handle = admin.statuses.register(status);
    let message = "no \u{1b}[2J\u{9b}".to_owned();
    let error =
        crate::status::RecordedError { time: crate::report::Timestamp::now(), message: message.clone() };
    handle.update(|status| status.refused = Some(error));
    admin
        .statuses
        .set_refused_files(vec![RefusedFile { file: "q.yaml".to_owned(), message: message.clone() }]);
    let (_, text) = get(&admin, "/plugins").await;
    assert!(!text.contains(char::is_control), "{text:?}");
    let page: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(page["plugins"][0]["phase"], "refused");
    assert_eq!(page["plugins"][0]["refused"]["message"], message);
    assert_eq!(page["refused-files"][0]["file"], "q.yaml");
    // A version that serves keeps serving while the next one is refused.
    handle.update(|status| status.phase = crate::status::Phase::Serving);
    let page: serde_json::Value = serde_json::from_str(&get(&admin, "/plugins").await.1).unwrap();
    assert_eq!(page["plugins"][0]["phase"], "serving");
}

#[tokio::test]
async fn the_reason_of_a_failed_check_is_withheld_from_probes_without_credentials() {
    let admin = admin();
    let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
    admin.statuses.register(status).update(|status| status.waits_for = vec!["a canary".to_owned()]);
    let pages = admin.clone().router(Reasons::Withheld);
    let page = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let body = pages.clone().oneshot(request).await.unwrap().into_body();
        String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap()
    };
    insta::assert_snapshot!(page("/readyz").await, @r"
    [+]ping ok
    [-]plugin-files failed: reason withheld
    [+]informer-sync ok
    [+]api-server ok
    readyz check failed
    ");
    // The page of the check, which needs credentials.
    insta::assert_snapshot!(page("/readyz/plugin-files").await, @"the host has not read the plugin files yet");
    assert_eq!(page("/readyz?exclude=plugin-files").await, "ok\n");
}
