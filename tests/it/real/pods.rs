//! Ten thousand Pods, a counting plugin, and an API server that is restarted in the middle.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use oarlock_tests::PATIENCE;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane::ControlPlane;
use oarlock_tests::host_process::{HostProcess, checkout};
use oarlock_tests::judge::{Watcher, judge};
use oarlock_tests::recorder::Recorder;
use oarlock_tests::told::{Kind, Told};
use serde_json::{Value, json};

const PODS: usize = 10_000;
const UPDATES: usize = 1_000;
const DELETES: usize = 500;
/// Requests under way at once.
const HANDS: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn promise_2_and_3_over_ten_thousand_pods_and_a_restarted_api_server() -> anyhow::Result<()> {
    let control_plane = ControlPlane::start().await?;
    let cluster = Cluster::connect(control_plane.kubeconfig()?).await?;
    each(0..PODS, |n| create(&cluster, n)).await?;
    let recorder = Recorder::start(cluster.client.clone(), "/api/v1/pods").await?;
    let plugins = [checkout().join("plugins/census")];
    let kubeconfig = cluster.provision(&plugins).await?;
    let mut host = cluster.run(&kubeconfig, &plugins)?;

    host.wait_for("census is synced", |printed| {
        printed.events("subscription-synced").find(|line| line["remaining"] == 0).map(|_| ())
    })
    .await?;
    let told = host.printed().told();
    assert_eq!(told.len(), PODS, "exactly one initial add each");
    assert!(told.iter().all(|told| told.kind == Kind::Add { initial: true }));

    each(0..UPDATES, |n| label(&cluster, n, "changed")).await?;
    each(UPDATES..UPDATES + DELETES, |n| delete(&cluster, n)).await?;
    settle(&host, &recorder).await?;
    let told = host.printed().told();
    let count = |kind| told.iter().filter(|told| told.kind == kind).count();
    // A Pod that is deleted is updated first: its grace period is written into it.
    assert_eq!((count(Kind::Update), count(Kind::Delete)), (UPDATES + DELETES, DELETES));

    // More of the same, and in the middle of it the API server goes and comes back. No watch of ours outlives that either, so
    // from here on the plugin's word is held against itself and against a fresh list.
    drop(recorder);
    each(0..UPDATES / 2, |n| label(&cluster, n, "before")).await?;
    control_plane.restart_api_server().await?;
    each(0..UPDATES / 2, |n| label(&cluster, n, "after")).await?;
    each(PODS - DELETES..PODS, |n| delete(&cluster, n)).await?;
    each(PODS..PODS + DELETES, |n| create(&cluster, n)).await?;
    let listed = fresh_list(&cluster).await?;
    while end_state(&host.printed().told()) != listed {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn each<F>(range: std::ops::Range<usize>, request: impl Fn(usize) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    stream::iter(range.map(request)).buffer_unordered(HANDS).try_collect().await
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

/// Waits until all that the recorder saw was told, in order.
async fn settle(host: &HostProcess, recorder: &Recorder) -> anyhow::Result<()> {
    let watcher = Watcher { plugin: "census", subscription: "objects", matches: &|_| true, stateless: false };
    let begun = std::time::Instant::now();
    loop {
        let (told, history) = (host.printed().told(), recorder.history()?);
        let faults = judge(&watcher, &history, &told);
        // What has not been told yet is a matter of time, what was told wrongly is not.
        let wrong: Vec<_> = faults.iter().filter(|fault| !fault.contains(": ended at ")).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        if faults.is_empty() {
            return Ok(());
        }
        anyhow::ensure!(begun.elapsed() < PATIENCE, "after {PATIENCE:?} this was not told: {faults:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Returns the resourceVersion of each object as the guest last knew it, provided that what it was told of each is a chain.
fn end_state(told: &[Told]) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    for told in told {
        let (key, version) = (told.key.clone(), told.resource_version.clone());
        let (before, continues) = match told.kind {
            Kind::Add { .. } => (objects.insert(key, version), None),
            Kind::Update => (objects.insert(key, version), told.old_resource_version.clone()),
            Kind::Delete => {
                let before = objects.remove(&key);
                assert!(before.is_some(), "a delete of what it did not know: {told:?}");
                continue;
            }
        };
        assert_eq!(before, continues, "{told:?}");
    }
    objects
}

async fn fresh_list(cluster: &Cluster) -> anyhow::Result<BTreeMap<String, String>> {
    let list = cluster.request("GET", "/api/v1/pods", None).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let version = |item: &Value| item["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    Ok(items.iter().map(|item| (oarlock_tests::recorder::key(item), version(item))).collect())
}
