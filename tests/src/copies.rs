//! ConfigMaps that the plugin `mirror` copies, and whether the copies are right: the work of tests that stop
//! and replace hosts.

pub mod history;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::wait::wait_until;

/// The namespaces into which the sources are copied.
pub const TARGETS: [&str; 2] = ["team-a", "team-b"];

/// Creates the namespaces.
///
/// # Errors
///
/// Those of the API server.
pub async fn create_namespaces(cluster: &Cluster) -> anyhow::Result<()> {
    for namespace in TARGETS {
        let body = json!({"metadata": {"name": namespace}});
        cluster.request("POST", "/api/v1/namespaces", Some(&body)).await?;
    }
    Ok(())
}

/// Creates a source.
///
/// # Errors
///
/// Those of the API server.
pub async fn create(cluster: &Cluster, n: usize) -> anyhow::Result<()> {
    let annotations = json!({"oarlock.dev/mirror-to": TARGETS.join(",")});
    let metadata = json!({"name": format!("settings-{n}"), "annotations": annotations});
    let object = json!({"metadata": metadata, "data": {"n": n.to_string()}});
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&object)).await?;
    Ok(())
}

/// Changes a source.
///
/// # Errors
///
/// Those of the API server.
pub async fn change(cluster: &Cluster, n: usize, text: &str) -> anyhow::Result<()> {
    let patch = json!({"data": {"n": text}});
    cluster.request("PATCH", &path("default", n), Some(&patch)).await?;
    Ok(())
}

/// Deletes a source.
///
/// # Errors
///
/// Those of the API server.
pub async fn delete(cluster: &Cluster, n: usize) -> anyhow::Result<()> {
    cluster.request("DELETE", &path("default", n), None).await?;
    Ok(())
}

/// Returns whether the copies of a source have this text.
///
/// # Errors
///
/// Those of the API server, but for a copy that does not exist.
pub async fn is_copied(cluster: &Cluster, n: usize, text: &str) -> anyhow::Result<bool> {
    for namespace in TARGETS {
        match cluster.request("GET", &path(namespace, n), None).await {
            Ok(copy) if copy["data"]["n"] == text => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Compares the copies with the sources that exist, and returns the names of those that differ.
///
/// # Errors
///
/// Those of the API server.
pub async fn differences(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let sources = list(cluster, "default").await?;
    let mut differences = Vec::new();
    for namespace in TARGETS {
        let mut copies = list(cluster, namespace).await?;
        for (name, data) in &sources {
            let index = copies.iter().position(|(copy, _)| copy == name);
            match index.map(|index| copies.swap_remove(index).1) {
                Some(copied) if copied == *data => {}
                Some(_) => differences.push(format!("{namespace}/{name} has another text")),
                None => differences.push(format!("{namespace}/{name} is missing")),
            }
        }
        differences.extend(copies.iter().map(|(name, _)| format!("{namespace}/{name} has no source")));
    }
    Ok(differences)
}

/// Waits until the copies are those that the sources ask for.
///
/// # Errors
///
/// When they are not at the deadline of waits, with the differences.
pub async fn until_right(cluster: &Cluster) -> anyhow::Result<()> {
    wait_until("the copies that the sources ask for", async || match differences(cluster).await {
        Ok(differences) if differences.is_empty() => Ok(()),
        Ok(differences) => Err(differences),
        Err(error) => Err(vec![format!("{error:#}")]),
    })
    .await
}

async fn list(cluster: &Cluster, namespace: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let list = cluster.request("GET", &format!("/api/v1/namespaces/{namespace}/configmaps"), None).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let named = items.into_iter().map(|it| (it["metadata"]["name"].clone(), it["data"].clone()));
    let named = named.filter_map(|(name, data)| Some((name.as_str()?.to_owned(), data)));
    Ok(named.filter(|(name, _)| name.starts_with("settings-")).collect())
}

fn path(namespace: &str, n: usize) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/settings-{n}")
}
