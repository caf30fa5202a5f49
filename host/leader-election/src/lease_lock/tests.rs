use std::sync::Arc;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use oarlock_fake_api::{FakeApi, Reply};
use serde_json::{Value, json};

use super::*;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/host";

/// An API server with one Lease at most, which checks resourceVersions.
fn api(lease: Option<Value>) -> FakeApi {
    let stored = Mutex::new(lease);
    FakeApi::new(move |request| {
        let mut stored = stored.lock();
        let body = || serde_json::from_str::<Value>(&request.body).unwrap();
        match (request.method.as_str(), &mut *stored) {
            ("GET", None) | ("PUT", None) => Reply::status(404, "NotFound", "no lease"),
            ("GET", Some(lease)) => Reply::json(200, lease.to_string()),
            ("POST", Some(_)) => Reply::status(409, "AlreadyExists", "lease exists"),
            ("POST", none) => {
                let mut lease = body();
                lease["metadata"]["resourceVersion"] = json!("1");
                Reply::json(201, none.insert(lease).to_string())
            }
            ("PUT", Some(lease)) => {
                let mut new = body();
                if new["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
                    return Reply::status(409, "Conflict", "changed");
                }
                let version: u64 = lease["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                new["metadata"]["resourceVersion"] = json!((version + 1).to_string());
                *lease = new;
                Reply::json(200, lease.to_string())
            }
            other => panic!("{other:?}"),
        }
    })
}

fn lease(spec: Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "host", "resourceVersion": "1"},
        "spec": spec,
    })
}

fn lock(api: &FakeApi) -> LeaseLock {
    LeaseLock::new(api.client(), "kube-system", "host", "me")
}

fn record() -> Record {
    Record::from_spec(&LeaseSpec {
        holder_identity: Some("me".to_owned()),
        lease_duration_seconds: Some(15),
        lease_transitions: Some(2),
        preferred_holder: Some("you".to_owned()),
        strategy: Some("OldestEmulationVersion".to_owned()),
        ..serde_json::from_value(json!({
            "acquireTime": "2026-01-02T03:04:05.678901Z", "renewTime": "2026-01-02T03:05:06.789012Z",
        }))
        .unwrap()
    })
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

// Conformance: 40.1
#[tokio::test(start_paused = true)]
async fn get_of_a_missing_lease_is_not_found() {
    assert!(matches!(lock(&api(None)).get().await, Err(LockError::NotFound)));
}

// Conformance: 40.2
#[tokio::test(start_paused = true)]
async fn get_returns_what_was_created() {
    let api = api(None);
    let lock = lock(&api);
    lock.create(&record()).await.unwrap();
    let fetched = lock.get().await.unwrap();
    assert_eq!(fetched.record, record());
    assert_eq!(fetched.record.preferred_holder, "you");
    assert_eq!(fetched.record.strategy, "OldestEmulationVersion");
    assert_eq!(serde_json::from_slice::<Record>(&fetched.raw).unwrap(), record());
    let requests = api.requests();
    assert_eq!(requests[0].path, PATH.strip_suffix("/host").unwrap());
    assert_eq!((requests[1].method.as_str(), requests[1].path.as_str()), ("GET", PATH));
}

// Conformance: 40.3
#[tokio::test(start_paused = true)]
async fn a_lock_records_one_event_with_identity_and_message_le_15() {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let events = recorded.clone();
    let api = api(Some(lease(json!({}))));
    let lock = lock(&api).with_recorder(move |lease, reason, message| {
        events.lock().push((lease, reason.to_owned(), message.to_owned()));
    });
    lock.get().await.unwrap();
    lock.record_event("became leader");
    let events = recorded.lock();
    let [(regarding, reason, message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((reason.as_str(), message.as_str()), ("LeaderElection", "me became leader"));
    assert_eq!(regarding.kind.as_deref(), Some("Lease"));
    assert_eq!(
        (regarding.namespace.as_deref(), regarding.name.as_deref()),
        (Some("kube-system"), Some("host"))
    );
    assert_eq!(regarding.resource_version.as_deref(), Some("1"));
}

// Conformance: 40.4
#[test]
fn a_lock_without_a_recorder_records_nothing_le_15() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _guard = runtime.enter();
    lock(&api(None)).record_event("became leader");
}

// Conformance: 40.5
#[tokio::test(start_paused = true)]
async fn a_second_create_fails_with_already_exists() {
    let lock = lock(&api(None));
    lock.create(&record()).await.unwrap();
    assert!(matches!(lock.create(&record()).await, Err(LockError::AlreadyExists(_))));
}

// Conformance: 40.6
#[tokio::test(start_paused = true)]
async fn an_update_before_get_or_create_is_an_error() {
    let api = api(Some(lease(json!({}))));
    let error = lock(&api).update(&record()).await.unwrap_err();
    assert_eq!(error.to_string(), "lease not initialized, call get or create first");
    assert!(api.requests().is_empty());
}

// Conformance: 40.7
#[tokio::test(start_paused = true)]
async fn describe_returns_namespace_and_name() {
    assert_eq!(lock(&api(None)).describe(), "kube-system/host");
}

// Conformance: 40.9
#[tokio::test(start_paused = true)]
async fn update_sets_labels_on_a_lease_without_any() {
    let api = api(Some(lease(json!({}))));
    let lock = lock(&api).with_labels(labels(&[("app", "oarlock")]));
    lock.get().await.unwrap();
    lock.update(&record()).await.unwrap();
    let body: Value = serde_json::from_str(&api.requests()[1].body).unwrap();
    assert_eq!(body["metadata"]["labels"], json!({"app": "oarlock"}));
}

// Conformance: 40.10
#[tokio::test(start_paused = true)]
async fn update_keeps_the_other_labels_of_the_lease() {
    let mut stored = lease(json!({}));
    stored["metadata"]["labels"] = json!({"team": "a", "app": "other"});
    let update = async |lock: LeaseLock, api: FakeApi| {
        lock.get().await.unwrap();
        lock.update(&record()).await.unwrap();
        serde_json::from_str::<Value>(&api.requests()[1].body).unwrap()["metadata"]["labels"].clone()
    };
    let with_none = api(Some(stored.clone()));
    let left = update(lock(&with_none), with_none.clone()).await;
    assert_eq!(left, json!({"team": "a", "app": "other"}));
    let with_one = api(Some(stored));
    let lock = lock(&with_one).with_labels(labels(&[("app", "oarlock")]));
    let left = update(lock, with_one.clone()).await;
    assert_eq!(
        left,
        json!({"team": "a", "app": "oarlock"}),
        "LL-02: only the configured keys are overwritten"
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_of_an_old_version_is_a_conflict() {
    let api = api(Some(lease(json!({}))));
    let (one, two) = (lock(&api), lock(&api));
    one.get().await.unwrap();
    two.get().await.unwrap();
    two.update(&record()).await.unwrap();
    assert!(matches!(one.update(&record()).await, Err(LockError::Conflict(_))));
    two.update(&record()).await.unwrap();
    one.get().await.unwrap();
    one.update(&record()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_bad_answer_has_its_error() {
    let get = async |reply: Reply| {
        let api = FakeApi::new(move |_| reply.clone());
        lock(&api).get().await
    };
    // Missing fields are empty: no holder, no duration.
    let bare = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}});
    let empty = get(Reply::json(200, bare.to_string())).await.unwrap();
    assert_eq!(empty.record, Record::default());
    for bad in ["", "no JSON", "{\"spec\": 7}", "{\"spec\": {\"leaseDurationSeconds\": \"long\"}}", "[]"] {
        let error = get(Reply::json(200, bad)).await.unwrap_err();
        assert!(matches!(error, LockError::Malformed(_)), "{bad:?}: {error:?}");
    }
    let garbled = lease(json!({"holderIdentity": "x", "renewTime": "yesterday"})).to_string();
    assert!(matches!(get(Reply::json(200, garbled)).await, Err(LockError::Malformed(_))));
    let error = get(Reply::status(403, "Forbidden", "leases is forbidden")).await.unwrap_err();
    assert!(matches!(error, LockError::Refused(_)));
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert!(source.is_some_and(|source| source.contains("leases is forbidden")), "{error:?}");
    assert!(matches!(get(Reply::status(500, "InternalError", "m")).await, Err(LockError::Refused(_))));
    // A proxy that knows no such path is not the API server that knows no such Lease.
    assert!(matches!(get(Reply::json(404, "not found")).await, Err(LockError::Refused(_))));
}
