//! A host that is killed and started again reaches the desired state.

use std::path::PathBuf;

use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::checkout;
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

const SOURCES: usize = 60;

/// Sources are created, changed and deleted while the host is killed, and while it does not run.
#[tokio::test(flavor = "multi_thread")]
async fn promise_3_a_killed_host_loses_nothing() -> anyhow::Result<()> {
    let server = DevCluster::start(Config::default()).await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
    for namespace in ["team-a", "team-b"] {
        cluster
            .request("POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": namespace}})))
            .await?;
    }
    let plugins: [PathBuf; 1] = [checkout().join("plugins/mirror")];
    let kubeconfig = cluster.provision(&plugins).await?;

    let mut host = cluster.run(&kubeconfig, &plugins)?;
    host.wait_for("mirror is synced", |printed| {
        printed.events("subscription-synced").find(|line| line["remaining"] == 0).map(|_| ())
    })
    .await?;
    for n in 0..SOURCES {
        create(&cluster, n).await?;
    }
    // The host is in the middle of its work: some copies exist, some do not.
    host.wait_for("the first copies", |printed| {
        (printed.events("guest-log").filter(|line| line["message"] == "copied").count() > 5).then_some(())
    })
    .await?;
    host.kill().await?;

    for n in 0..SOURCES {
        match n % 3 {
            0 => drop(cluster.request("DELETE", &path("default", n), None).await?),
            1 => drop(
                cluster
                    .request("PATCH", &path("default", n), Some(&json!({"data": {"n": "changed"}})))
                    .await?,
            ),
            _ => {}
        }
    }
    let _host = cluster.run(&kubeconfig, &plugins)?;
    wait_until("the copies that the sources ask for", async || match differences(&cluster).await {
        Ok(differences) if differences.is_empty() => Ok(()),
        Ok(differences) => Err(differences),
        Err(error) => Err(vec![format!("{error:#}")]),
    })
    .await
}

fn path(namespace: &str, n: usize) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/settings-{n}")
}

async fn create(cluster: &Cluster, n: usize) -> anyhow::Result<()> {
    let annotations = json!({"oarlock.dev/mirror-to": "team-a,team-b"});
    let metadata = json!({"name": format!("settings-{n}"), "annotations": annotations});
    let object = json!({"metadata": metadata, "data": {"n": n.to_string()}});
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&object)).await?;
    Ok(())
}

/// Returns the objects that differ from the state that the sources ask for.
async fn differences(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    for namespace in ["team-a", "team-b"] {
        let list =
            cluster.request("GET", &format!("/api/v1/namespaces/{namespace}/configmaps"), None).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        for n in 0..SOURCES {
            let found = items.iter().find(|item| item["metadata"]["name"] == format!("settings-{n}"));
            let expected = match n % 3 {
                0 => None,
                1 => Some(json!({"n": "changed"})),
                _ => Some(json!({"n": n.to_string()})),
            };
            if found.map(|item: &Value| &item["data"]) != expected.as_ref() {
                differences.push(format!("{namespace}/settings-{n}"));
            }
        }
    }
    Ok(differences)
}
