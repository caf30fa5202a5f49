//! Owners and what they own.

use crate::client::{Client, MAPS, start};
use oarlock_dev_cluster::{Config, DevCluster};
use serde_json::{Value, json};
use std::time::Duration;

async fn owner(client: &Client, name: &str) -> String {
    let created = client.create(MAPS, &json!({"metadata": {"name": name}})).await;
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn owned(name: &str, owners: &[(&str, &str)]) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|(name, uid)| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
        })
        .collect();
    json!({"metadata": {"name": name, "ownerReferences": references}})
}

/// Asks until the object is as it should be, and says what it was at last if it never is.
async fn until(client: &Client, name: &str, holds: impl Fn(u16, &Value) -> bool) {
    let path = format!("{MAPS}/{name}");
    let asked = async {
        loop {
            let (code, object) = client.get(&path).await;
            if holds(code, &object) {
                return;
            }
        }
    };
    if tokio::time::timeout(Duration::from_secs(60), asked).await.is_err() {
        panic!("{name} is {:?}", client.get(&path).await);
    }
}

async fn delete(client: &Client, name: &str, policy: &str) -> Value {
    let (code, answer) = client.delete(&format!("{MAPS}/{name}?propagationPolicy={policy}")).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

#[tokio::test]
async fn what_is_owned_goes_with_its_owner() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    let child = client.create(MAPS, &owned("child", &[("owner", &uid)])).await;
    let child = child["metadata"]["uid"].as_str().unwrap();
    client.create(MAPS, &owned("grandchild", &[("child", child)])).await;
    let other = owner(&client, "other").await;
    client.create(MAPS, &owned("shared", &[("owner", &uid), ("other", &other)])).await;
    delete(&client, "owner", "Background").await;
    until(&client, "grandchild", |code, _| code == 404).await;
    assert_eq!(client.get(&format!("{MAPS}/child")).await.0, 404);
    // What has another owner stays, and is owned by that alone.
    until(&client, "shared", |code, shared| {
        code == 200
            && shared["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn what_names_an_owner_that_is_not_there_goes() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    client.create(MAPS, &owned("stray", &[("owner", "another-uid")])).await;
    until(&client, "stray", |code, _| code == 404).await;
    // Of an owner of an unknown kind nothing can be said.
    let mut unknown = owned("unknown", &[("x", "y")]);
    unknown["metadata"]["ownerReferences"][0]["kind"] = "Boat".into();
    client.create(MAPS, &unknown).await;
    client.create(MAPS, &owned("kept", &[("owner", &uid)])).await;
    client.create(MAPS, &owned("last", &[("owner", "another-uid")])).await;
    until(&client, "last", |code, _| code == 404).await;
    assert_eq!(client.get(&format!("{MAPS}/unknown")).await.0, 200);
    assert_eq!(client.get(&format!("{MAPS}/kept")).await.0, 200);
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    let mut held = owned("held", &[("owner", &uid)]);
    held["metadata"]["finalizers"] = json!(["x.dev/hold"]);
    client.create(MAPS, &held).await;
    client.create(MAPS, &owned("free", &[("owner", &uid)])).await;
    let waiting = delete(&client, "owner", "Foreground").await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    until(&client, "free", |code, _| code == 404).await;
    until(&client, "held", |_, held| held["metadata"]["deletionTimestamp"].is_string()).await;
    assert_eq!(client.get(&format!("{MAPS}/owner")).await.0, 200);
    client.merge(&format!("{MAPS}/held"), &json!({"metadata": {"finalizers": null}})).await;
    until(&client, "owner", |code, _| code == 404).await;
}

#[tokio::test]
async fn orphans_stay_without_an_owner() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    client.create(MAPS, &owned("child", &[("owner", &uid)])).await;
    delete(&client, "owner", "Orphan").await;
    until(&client, "owner", |code, _| code == 404).await;
    let (code, child) = client.get(&format!("{MAPS}/child")).await;
    assert_eq!((code, child["metadata"].get("ownerReferences")), (200, None), "{child}");
}

#[tokio::test]
async fn without_the_collector_it_is_a_bare_api_server() {
    let cluster = DevCluster::start(Config { garbage_collection: false, ..Config::default() }).await.unwrap();
    let client = Client::new(&cluster, cluster.admin_token());
    let uid = owner(&client, "owner").await;
    client.create(MAPS, &owned("child", &[("owner", &uid)])).await;
    delete(&client, "owner", "Foreground").await;
    let (_, waiting) = client.get(&format!("{MAPS}/owner")).await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(client.get(&format!("{MAPS}/child")).await.0, 200);
}
