//! Ten thousand Pods, a plugin that logs every notification, and an API server that is restarted meanwhile.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use kube::config::Kubeconfig;
use oarlock_tests::chain_check::{Subscription, Violation, ViolationKind, check};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane;
use oarlock_tests::host_process::{HostProcess, checkout};
use oarlock_tests::received::{Kind, ReceivedNotification};
use oarlock_tests::recorder::Recorder;
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

const PODS: usize = 10_000;
const UPDATES: usize = 1_000;
const DELETES: usize = 500;
/// How many requests are under way at once.
const CONCURRENCY: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn promise_2_and_3_hold_for_ten_thousand_pods_and_a_restarted_api_server() -> anyhow::Result<()> {
    let mut control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    each(0..PODS, |n| create(&cluster, n)).await?;
    let recorder = Recorder::start(cluster.client.clone(), "/api/v1/pods").await?;
    let plugins = [checkout().join("plugins/census")];
    let kubeconfig = cluster.provision(&plugins).await?;
    let mut host = cluster.run(&kubeconfig, &plugins)?;

    host.until_synced().await?;
    let received = host.printed().received();
    assert_eq!(received.len(), PODS, "one initial add for each Pod");
    assert!(received.iter().all(|received| received.kind == Kind::Add { initial: true }));

    each(0..UPDATES, |n| label(&cluster, n, "changed")).await?;
    each(UPDATES..UPDATES + DELETES, |n| delete(&cluster, n)).await?;
    settle(&host, &recorder).await?;
    let received = host.printed().received();
    let count = |kind| received.iter().filter(|received| received.kind == kind).count();
    // The API server updates a Pod before it deletes it: it writes the grace period into the Pod.
    assert_eq!((count(Kind::Update), count(Kind::Delete)), (UPDATES + DELETES, DELETES));

    // The API server restarts in the middle of the next changes. The recorder's watch does not survive that,
    // so from here on the notifications are checked against one another and against a new list.
    drop(recorder);
    each(0..UPDATES / 2, |n| label(&cluster, n, "before")).await?;
    control_plane.restart_api_server().await?;
    each(0..UPDATES / 2, |n| label(&cluster, n, "after")).await?;
    each(PODS - DELETES..PODS, |n| delete(&cluster, n)).await?;
    each(PODS..PODS + DELETES, |n| create(&cluster, n)).await?;
    let listed = fresh_list(&cluster).await?;
    wait_until("the state of the new list", async || {
        let known = end_state(&host.printed().received());
        let differs = |key: &&String| known.get(*key) != listed.get(*key);
        let wrong: Vec<_> = known.keys().chain(listed.keys()).filter(differs).cloned().collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    })
    .await
}

async fn each<F>(range: std::ops::Range<usize>, request: impl Fn(usize) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    stream::iter(range.map(request)).buffer_unordered(CONCURRENCY).try_collect().await
}

fn path(n: usize) -> String {
    format!("/api/v1/namespaces/default/pods/pod-{n}")
}

async fn create(cluster: &Cluster, n: usize) -> anyhow::Result<()> {
    let container = json!({"name": "main", "image": format!("example/app:{n}")});
    let metadata = json!({"name": format!("pod-{n}"), "labels": {"app": format!("app-{}", n % 100)}});
    let pod = json!({"metadata": metadata, "spec": {"containers": [container], "automountServiceAccountToken": false}});
    cluster.request("POST", "/api/v1/namespaces/default/pods", Some(&pod)).await?;
    Ok(())
}

async fn label(cluster: &Cluster, n: usize, state: &str) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"labels": {"state": state}}});
    cluster.request("PATCH", &path(n), Some(&patch)).await?;
    Ok(())
}

async fn delete(cluster: &Cluster, n: usize) -> anyhow::Result<()> {
    let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    cluster.request("DELETE", &path(n), Some(&now)).await?;
    Ok(())
}

/// Waits until the plugin has received the recorded history, in order.
async fn settle(host: &HostProcess, recorder: &Recorder) -> anyhow::Result<()> {
    let any = |_: &Value| true;
    let subscription = Subscription { plugin: "census", name: "objects", matches: &any, stateless: false };
    wait_until("the notifications of the recorded history", async || {
        let received = host.printed().received();
        let history = recorder.history().map_err(|error| vec![format!("{error:#}")])?;
        let violations = check(&subscription, &history, &received);
        // The recorder's watch may be behind the informer's. Its history is then too short for a check.
        let is_behind =
            violations.iter().any(|violation| matches!(violation.kind, ViolationKind::UnknownVersion { .. }));
        let wrong: Vec<_> = violations.iter().filter(|violation| !violation.may_resolve()).collect();
        assert!(is_behind || wrong.is_empty(), "{wrong:#?}");
        if violations.is_empty() {
            Ok(())
        } else {
            Err(violations.iter().map(Violation::to_string).collect::<Vec<_>>())
        }
    })
    .await
}

/// Returns the resourceVersion of each object as the guest knows it. The notifications of each object must be
/// a chain.
fn end_state(received: &[ReceivedNotification]) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    for received in received {
        let (key, version) = (received.key.clone(), received.resource_version.clone());
        let (known, old) = match received.kind {
            Kind::Add { .. } => (objects.insert(key, version), None),
            Kind::Update => (objects.insert(key, version), received.old_resource_version.clone()),
            Kind::Delete => {
                let known = objects.remove(&key);
                assert!(known.is_some(), "a delete of an object that the plugin did not know: {received:?}");
                continue;
            }
        };
        assert_eq!(known, old, "{received:?}");
    }
    objects
}

async fn fresh_list(cluster: &Cluster) -> anyhow::Result<BTreeMap<String, String>> {
    let list = cluster.request("GET", "/api/v1/pods", None).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let version = |item: &Value| item["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    Ok(items.iter().map(|item| (oarlock_tests::recorder::key(item), version(item))).collect())
}
