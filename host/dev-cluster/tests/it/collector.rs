//! Owner references and garbage collection.

use crate::client::{Client, MAPS, start};
use oarlock_dev_cluster::{Config, DevCluster};
use serde_json::{Value, json};

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

/// Reads a ConfigMap until it is as expected.
async fn until(client: &Client, name: &str, what: &str, holds: impl Fn(u16, &Value) -> bool) {
    client.get_until(&format!("{MAPS}/{name}"), what, holds).await;
}

async fn until_deleted(client: &Client, name: &str) {
    until(client, name, &format!("the deletion of {name}"), |code, _| code == 404).await;
}

async fn delete(client: &Client, name: &str, policy: &str) -> Value {
    let (code, answer) = client.delete(&format!("{MAPS}/{name}?propagationPolicy={policy}")).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

#[tokio::test]
async fn dependents_are_deleted_with_their_last_owner() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    let child = client.create(MAPS, &owned("child", &[("owner", &uid)])).await;
    let child = child["metadata"]["uid"].as_str().unwrap();
    client.create(MAPS, &owned("grandchild", &[("child", child)])).await;
    let other = owner(&client, "other").await;
    client.create(MAPS, &owned("shared", &[("owner", &uid), ("other", &other)])).await;
    delete(&client, "owner", "Background").await;
    until_deleted(&client, "grandchild").await;
    assert_eq!(client.get(&format!("{MAPS}/child")).await.0, 404);
    // The dependent with another owner remains, with one owner reference.
    until(&client, "shared", "the removal of one owner", |code, shared| {
        code == 200
            && shared["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn an_object_whose_owner_does_not_exist_is_deleted() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    client.create(MAPS, &owned("stray", &[("owner", "another-uid")])).await;
    until_deleted(&client, "stray").await;
    // An owner of an unknown kind is treated as existing.
    let mut unknown = owned("unknown", &[("x", "y")]);
    unknown["metadata"]["ownerReferences"][0]["kind"] = "Boat".into();
    client.create(MAPS, &unknown).await;
    client.create(MAPS, &owned("kept", &[("owner", &uid)])).await;
    client.create(MAPS, &owned("last", &[("owner", "another-uid")])).await;
    until_deleted(&client, "last").await;
    assert_eq!(client.get(&format!("{MAPS}/unknown")).await.0, 200);
    assert_eq!(client.get(&format!("{MAPS}/kept")).await.0, 200);
}

#[tokio::test]
async fn foreground_deletion_deletes_the_owner_last() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    let mut held = owned("held", &[("owner", &uid)]);
    held["metadata"]["finalizers"] = json!(["x.dev/hold"]);
    client.create(MAPS, &held).await;
    client.create(MAPS, &owned("free", &[("owner", &uid)])).await;
    let waiting = delete(&client, "owner", "Foreground").await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    until_deleted(&client, "free").await;
    until(&client, "held", "the deletionTimestamp", |_, held| {
        held["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    assert_eq!(client.get(&format!("{MAPS}/owner")).await.0, 200);
    client.merge(&format!("{MAPS}/held"), &json!({"metadata": {"finalizers": null}})).await;
    until_deleted(&client, "owner").await;
}

#[tokio::test]
async fn orphaned_dependents_remain_without_owner_references() {
    let (_cluster, client) = start().await;
    let uid = owner(&client, "owner").await;
    client.create(MAPS, &owned("child", &[("owner", &uid)])).await;
    delete(&client, "owner", "Orphan").await;
    until_deleted(&client, "owner").await;
    let (code, child) = client.get(&format!("{MAPS}/child")).await;
    assert_eq!((code, child["metadata"].get("ownerReferences")), (200, None), "{child}");
}

#[tokio::test]
async fn without_garbage_collection_the_server_is_a_bare_api_server() {
    let cluster = DevCluster::start(Config { garbage_collection: false, ..Config::default() }).await.unwrap();
    let client = Client::new(&cluster, cluster.admin_token());
    let uid = owner(&client, "owner").await;
    client.create(MAPS, &owned("child", &[("owner", &uid)])).await;
    delete(&client, "owner", "Foreground").await;
    let (_, waiting) = client.get(&format!("{MAPS}/owner")).await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(client.get(&format!("{MAPS}/child")).await.0, 200);
}
