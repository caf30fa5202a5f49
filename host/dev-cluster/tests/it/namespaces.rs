//! The lifecycle of namespaces.

use crate::client::{config_map, start};
use serde_json::json;

#[tokio::test]
async fn a_namespace_gets_its_default_account_and_is_deleted_with_its_objects() {
    let (_cluster, client) = start().await;
    let created = client.create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    assert_eq!(client.names("/api/v1/namespaces/n/serviceaccounts").await, ["default"]);
    let maps = "/api/v1/namespaces/n/configmaps";
    client.create(maps, &config_map("a", "1")).await;
    let mut watch = client.watch("/api/v1/configmaps?watch=1&resourceVersion=0").await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
    let (code, going) = client.delete("/api/v1/namespaces/n").await;
    assert_eq!((code, going["status"]["phase"].as_str()), (200, Some("Terminating")));
    assert!(watch.next_summary().await.starts_with("DELETED a@"));
    assert_eq!(client.get("/api/v1/namespaces/n").await.0, 404);
}

#[tokio::test]
async fn a_namespace_waits_for_the_finalizers_of_its_objects() {
    let (_cluster, client) = start().await;
    client.create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    let maps = "/api/v1/namespaces/n/configmaps";
    client.create(maps, &json!({"metadata": {"name": "a", "finalizers": ["x.dev/hold"]}})).await;
    client.delete("/api/v1/namespaces/n").await;
    let (code, refused) = client.post(maps, &config_map("b", "1")).await;
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "configmaps \"b\" is forbidden: unable to create new content in namespace n because it is being terminated"
    );
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(client.get("/api/v1/namespaces/n").await.1["status"]["phase"], "Terminating");
    client.merge(&format!("{maps}/a"), &json!({"metadata": {"finalizers": []}})).await;
    assert_eq!(client.get("/api/v1/namespaces/n").await.0, 404);
}

#[tokio::test]
async fn protected_namespaces_cannot_be_deleted() {
    let (_cluster, client) = start().await;
    assert_eq!(
        client.names("/api/v1/namespaces").await,
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    let (code, refused) = client.delete("/api/v1/namespaces/default").await;
    assert_eq!(code, 403);
    assert_eq!(refused["message"], "namespaces \"default\" is forbidden: this namespace may not be deleted");
}
