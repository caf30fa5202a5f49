use oarlock_fake_api::{FakeApi, Reply, SeenRequest};
use oarlock_plugin::guest::{HostBytes, host_bytes::Use};

use super::*;
use crate::{
    identity::{Identity, IdentityState},
    kube_access::testing::{core_v1, requester, requester_as},
};

const ANSWER: &str = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"42","labels":{}},"data":{}}"#;

fn target(plural: &str) -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".to_owned(), plural: plural.to_owned() }
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn none() -> Preconditions {
    Preconditions { uid: None, resource_version: None }
}

fn both() -> Preconditions {
    Preconditions { uid: Some("u".to_owned()), resource_version: Some("41".to_owned()) }
}

fn api() -> FakeApi {
    FakeApi::new(|request| if request.path == "/api/v1" { core_v1() } else { Reply::json(200, ANSWER) })
}

fn last(api: &FakeApi) -> SeenRequest {
    api.requests().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_request_impersonates_the_plugins_account_and_no_group() {
    let api = api();
    let requester = requester(&api);
    requester.get(&target("configmaps"), &key("a", "b"), "").await.unwrap();
    requester.create(&target("configmaps"), "a", "{}".to_owned()).await.unwrap();
    requester.delete(&target("namespaces"), &key("", "a"), Propagation::Orphan, None, &none()).await.unwrap();
    for request in api.requests().iter().filter(|it| it.path != "/api/v1") {
        let impersonating: Vec<_> =
            request.headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate")).collect();
        assert_eq!(impersonating.len(), 1, "{request:?}");
        assert_eq!(impersonating[0].1, "system:serviceaccount:oarlock-plugins:hello");
        assert!(!request.headers.contains_key("authorization"));
    }
}

#[tokio::test(start_paused = true)]
async fn each_write_has_the_method_path_query_and_body_of_kubernetes() {
    let api = api();
    let requester = requester(&api);
    let configmaps = target("configmaps");
    let mut lines = Vec::new();
    let mut note = |api: &FakeApi| {
        let SeenRequest { method, path, query, headers, body } = last(api);
        let content_type = headers["content-type"].to_str().unwrap();
        lines.push(format!("{method} {path}?{query} {content_type} {body}"));
    };
    let written = requester.create(&configmaps, "a", "{\"x\":1}".to_owned()).await.unwrap();
    assert_eq!(written.resource_version, "42");
    note(&api);
    let json = r#"{"metadata":{"name":"b"}}"#.to_owned();
    requester.apply(&configmaps, &key("a", "b"), "", json.clone(), true, &both()).await.unwrap();
    note(&api);
    requester.apply(&configmaps, &key("a", "b"), "status", json, false, &none()).await.unwrap();
    note(&api);
    for (kind, body) in [
        (PatchKind::MergePatch, r#"{"data":null}"#),
        (PatchKind::StrategicMergePatch, "{}"),
        (PatchKind::JsonPatch, r#"[{"op":"remove","path":"/data"}]"#),
    ] {
        requester.patch(&configmaps, &key("a", "b"), "", kind, body.to_owned(), &both()).await.unwrap();
        note(&api);
    }
    requester.replace(&configmaps, &key("a", "b"), "scale", "{}".to_owned()).await.unwrap();
    note(&api);
    requester.delete(&configmaps, &key("a", "b"), Propagation::Foreground, None, &both()).await.unwrap();
    note(&api);
    insta::assert_snapshot!(lines.join("\n"), @r#"
    POST /api/v1/namespaces/a/configmaps?fieldManager=hello application/json {"x":1}
    PATCH /api/v1/namespaces/a/configmaps/b?fieldManager=hello&force=true application/apply-patch+yaml {"metadata":{"name":"b","uid":"u","resourceVersion":"41"}}
    PATCH /api/v1/namespaces/a/configmaps/b/status?fieldManager=hello&force=false application/apply-patch+yaml {"metadata":{"name":"b"}}
    PATCH /api/v1/namespaces/a/configmaps/b?fieldManager=hello application/merge-patch+json {"data":null,"metadata":{"uid":"u","resourceVersion":"41"}}
    PATCH /api/v1/namespaces/a/configmaps/b?fieldManager=hello application/strategic-merge-patch+json {"metadata":{"uid":"u","resourceVersion":"41"}}
    PATCH /api/v1/namespaces/a/configmaps/b?fieldManager=hello application/json-patch+json [{"op":"remove","path":"/data"},{"op":"replace","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/metadata/resourceVersion","value":"41"}]
    PUT /api/v1/namespaces/a/configmaps/b/scale?fieldManager=hello application/json {}
    DELETE /api/v1/namespaces/a/configmaps/b? application/json {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground","preconditions":{"uid":"u","resourceVersion":"41"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn names_that_would_change_the_path_are_errors() {
    let api = api();
    let requester = requester(&api);
    for name in ["", ".", "..", "a/exec", "../secrets/x", "a?dryRun=All", "a%2fb", "a b", "a#b"] {
        let error = requester.get(&target("configmaps"), &key("a", name), "").await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{name}: {error:?}");
        let error = requester.get(&target("configmaps"), &key(name, "a"), "").await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{name}: {error:?}");
    }
    for plural in ["configmaps/a/status", "..", ""] {
        let error = requester.get(&target(plural), &key("a", "b"), "").await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{plural}: {error:?}");
    }
    let error = requester.get(&target("widgets"), &key("a", "b"), "").await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)));
    let error = requester.get(&target("namespaces"), &key("a", "b"), "").await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)));
    assert!(api.requests().iter().all(|it| it.path == "/api/v1"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_response_is_a_timeout_and_too_many_requests_are_throttled() {
    let api = FakeApi::new(|request| if request.path == "/api/v1" { core_v1() } else { Reply::Never });
    let requester = requester(&api);
    let error = requester.create(&target("configmaps"), "a", "{}".to_owned()).await.unwrap_err();
    assert_eq!(error, Error::Timeout("create configmaps in a: no answer within 10 s".to_owned()));

    let api = self::api();
    let requester = crate::kube_access::testing::requester(&api);
    let mut throttled = None;
    for _ in 0..1_001 {
        if let Err(error) = requester.get(&target("configmaps"), &key("a", "b"), "").await {
            throttled = Some(error);
        }
    }
    let Some(Error::Throttled(info)) = throttled else { panic!("never throttled") };
    assert_eq!(info.retry_after_ms, Some(1000));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_body_is_an_error_before_any_request() {
    let api = api();
    let requester = requester(&api);
    for (kind, body) in
        [(PatchKind::MergePatch, "[]"), (PatchKind::JsonPatch, "{}"), (PatchKind::MergePatch, "{")]
    {
        let error = requester
            .patch(&target("configmaps"), &key("a", "b"), "", kind, body.to_owned(), &both())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
    assert!(api.requests().iter().all(|it| it.path == "/api/v1"));
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_answer_that_is_too_long_is_an_error() {
    let long = format!("{{\"data\":\"{}\"}}", "x".repeat(16 << 20));
    let api = FakeApi::new(move |request| match request.path.as_str() {
        "/api/v1" => core_v1(),
        _ => Reply::json(200, long.clone()),
    });
    let (requester, config_maps) = (requester(&api), target("configmaps"));
    let read = requester.get(&config_maps, &key("a", "b"), "").await;
    assert!(matches!(read, Err(Error::LimitExceeded(_))), "{read:?}");
    // The write was made, so it must not be reported as refused.
    let written = requester.create(&config_maps, "a", "{}".to_owned()).await;
    assert!(matches!(written, Err(Error::Timeout(_))), "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_charged_to_the_plugin_while_a_request_runs() {
    let account = HostBytes::new(4_000);
    let long = r#"{"metadata":{"labels":{"a":"LONG"}}}"#.replace("LONG", &"x".repeat(3_000));
    let api = FakeApi::new(move |request| match request.method {
        Method::POST => Reply::json(201, ANSWER),
        _ if request.path == "/api/v1" => core_v1(),
        _ => Reply::json(200, long.clone()),
    });
    let requester = requester(&api).charged_to(account.clone());
    let create = async |bytes: usize| {
        let body = format!("{{}}{}", " ".repeat(bytes));
        requester.create(&target("configmaps"), "a", body).await
    };
    create(3_000).await.unwrap();
    let refused = create(4_000).await;
    assert!(matches!(refused, Err(Error::LimitExceeded(_))), "{refused:?}");
    assert_eq!(api.requests().iter().filter(|it| it.method == Method::POST).count(), 1, "it was not sent");
    // While the host adds preconditions, there are two bodies.
    let body = format!("{{}}{}", " ".repeat(2_500));
    let key = key("a", "b");
    let (config_maps, both) = (target("configmaps"), both());
    let patched = requester.patch(&config_maps, &key, "", PatchKind::MergePatch, body, &both).await;
    assert!(matches!(patched, Err(Error::LimitExceeded(_))), "{patched:?}");
    // The response is charged too.
    requester.get(&target("configmaps"), &key, "").await.unwrap();
    let _most = account.charge(Use::Events, 2_000).unwrap();
    let answer = requester.get(&target("configmaps"), &key, "").await;
    assert!(
        matches!(&answer, Err(Error::Throttled(info)) if info.message.contains("for one plugin")),
        "{answer:?}"
    );
    assert_eq!(account.view().requests, 0);
}

#[tokio::test(start_paused = true)]
async fn promise_5_requests_of_a_deleted_account_are_forbidden() {
    let api = api();
    let identity = Identity::unfollowed("oarlock-plugins/hello".parse().unwrap());
    let requester = requester_as(&api, identity.clone());
    let configmaps = target("configmaps");
    requester.create(&configmaps, "a", "{}".to_owned()).await.unwrap();
    let n_requests = api.requests().len();
    for state in [IdentityState::Missing, IdentityState::Present, IdentityState::Replaced] {
        identity.set(state);
        if state == IdentityState::Present {
            requester.get(&configmaps, &key("a", "b"), "").await.unwrap();
            continue;
        }
        let written = requester.create(&configmaps, "a", "{}".to_owned()).await;
        assert!(matches!(written, Err(Error::Forbidden(_))), "{written:?}");
        let deleted = requester.delete(&configmaps, &key("a", "b"), Propagation::Orphan, None, &none()).await;
        assert!(matches!(deleted, Err(Error::Forbidden(_))), "{deleted:?}");
        let read = requester.get(&configmaps, &key("a", "b"), "").await.unwrap_err();
        let Error::Forbidden(message) = read else { panic!("{read:?}") };
        assert!(message.contains("the ServiceAccount oarlock-plugins/hello"), "{message}");
    }
    assert_eq!(api.requests().len(), n_requests + 1, "that of the account that exists");
}

#[tokio::test(start_paused = true)]
async fn the_version_that_a_write_demands_is_that_of_its_precondition_or_its_text() {
    let version = |version: &str| Before::Version(version.to_owned());
    let text = r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#;
    assert_eq!(version_before(text, &none()).await, version("7"));
    assert_eq!(version_before(text, &both()).await, version("41"), "the host writes it over the text's");
    assert_eq!(version_before(r#"{"metadata":{"name":"a"}}"#, &none()).await, version(""));
    assert_eq!(version_before("not JSON", &none()).await, version(""));
}
