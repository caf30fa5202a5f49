//! Custom resources, which are served from the creation of their definition until its deletion.

use crate::client::{start, version};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHIPS: &str = "/apis/sea.dev/v1/namespaces/default/ships";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.sea.dev"},
        "spec": {
            "group": "sea.dev", "scope": "Namespaced", "names": {"plural": "ships", "kind": "Ship"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["oars"], "properties": {
                        "oars": {"type": "integer"}, "color": {"type": "string", "default": "red"},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn ship(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "sea.dev/v1", "kind": "Ship", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let (_cluster, client) = start().await;
    assert_eq!(client.get(SHIPS).await.0, 404);
    client.create(DEFINITIONS, &definition()).await;
    let (_, established) = client.get(&format!("{DEFINITIONS}/ships.sea.dev")).await;
    let conditions = established["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True"));

    let created = client.create(SHIPS, &ship("argo", json!({"oars": 50, "sails": 2}))).await;
    assert_eq!(created["spec"], json!({"oars": 50, "color": "red"}), "pruned and defaulted");
    assert_eq!(created["metadata"]["generation"], 1);
    let (code, invalid) = client.post(SHIPS, &ship("bad", json!({}))).await;
    assert_eq!(
        (code, invalid["message"].as_str()),
        (422, Some("Ship.sea.dev \"bad\" is invalid: spec.oars: Required value"))
    );
    let (code, unversioned) = client.put(&format!("{SHIPS}/argo"), &ship("argo", json!({"oars": 1}))).await;
    assert_eq!((code, unversioned["reason"].as_str()), (422, Some("Invalid")));

    let (_, list) = client.get(SHIPS).await;
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("ShipList"), &json!("Ship")));
    assert_eq!(client.names(&format!("{SHIPS}?fieldSelector=spec.color%3Dred")).await, ["argo"]);
    assert_eq!(client.names(&format!("{SHIPS}?fieldSelector=spec.color%3Dblue")).await, Vec::<String>::new());
    let (_, groups) = client.get("/apis").await;
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "sea.dev"));
}

#[tokio::test]
async fn instances_are_deleted_with_their_definition() {
    let (_cluster, client) = start().await;
    client.create(DEFINITIONS, &definition()).await;
    let argo = client.create(SHIPS, &ship("argo", json!({"oars": 50}))).await;
    let mut watch = client.watch(&format!("{SHIPS}?watch=1&resourceVersion={}", version(&argo))).await;
    client.delete(&format!("{DEFINITIONS}/ships.sea.dev")).await;
    assert!(watch.next_summary().await.starts_with("DELETED argo@"));
    assert_eq!(watch.next().await, None);
    assert_eq!(client.get(SHIPS).await.0, 404);

    // A new definition with the same name has no history.
    client.create(DEFINITIONS, &definition()).await;
    assert_eq!(client.names(SHIPS).await, Vec::<String>::new());
    let mut watch = client.watch(&format!("{SHIPS}?watch=1&resourceVersion={}", version(&argo))).await;
    assert!(watch.next_summary().await.starts_with("ERROR"));
}

#[tokio::test]
async fn a_definition_waits_for_its_last_instance() {
    let (_cluster, client) = start().await;
    client.create(DEFINITIONS, &definition()).await;
    let mut held = ship("argo", json!({"oars": 50}));
    held["metadata"]["finalizers"] = json!(["x.dev/hold"]);
    client.create(SHIPS, &held).await;
    let path = format!("{DEFINITIONS}/ships.sea.dev");
    let (code, going) = client.delete(&path).await;
    assert_eq!((code, going["metadata"]["deletionTimestamp"].is_string()), (200, true));
    assert_eq!(client.names(SHIPS).await, ["argo"], "served as long as something is held");
    client.merge(&format!("{SHIPS}/argo"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(client.get(&path).await.0, 404);
    assert_eq!(client.get(SHIPS).await.0, 404);
}

#[tokio::test]
async fn a_definition_with_a_used_name_is_not_served() {
    let (_cluster, client) = start().await;
    client.create(DEFINITIONS, &definition()).await;
    let mut other = definition();
    other["metadata"]["name"] = "vessels.sea.dev".into();
    other["spec"]["names"] = json!({"plural": "vessels", "kind": "Ship"});
    client.create(DEFINITIONS, &other).await;
    let (_, refused) = client.get(&format!("{DEFINITIONS}/vessels.sea.dev")).await;
    let condition = &refused["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("KindConflict")));
    assert_eq!(client.get("/apis/sea.dev/v1/namespaces/default/vessels").await.0, 404);
}

#[tokio::test]
async fn a_watch_ends_when_its_version_or_the_storage_version_changes() {
    let (_cluster, client) = start().await;
    let mut two = definition();
    let mut v2 = two["spec"]["versions"][0].clone();
    (v2["name"], v2["storage"]) = (json!("v2"), json!(false));
    two["spec"]["versions"].as_array_mut().unwrap().push(v2);
    client.create(DEFINITIONS, &two).await;
    client.create(SHIPS, &ship("argo", json!({"oars": 50}))).await;
    let path = format!("{DEFINITIONS}/ships.sea.dev");
    let mut watch = client.watch(&format!("{SHIPS}?watch=1&resourceVersion=0")).await;
    assert!(watch.next_summary().await.starts_with("ADDED argo@"));

    two["spec"]["versions"][0]["storage"] = false.into();
    two["spec"]["versions"][1]["storage"] = true.into();
    client.merge(&path, &json!({"spec": two["spec"]})).await;
    assert_eq!(watch.next().await, None);
    let mut watch = client.watch(&format!("{SHIPS}?watch=1&resourceVersion=0")).await;
    assert!(watch.next_summary().await.starts_with("ADDED argo@"));

    two["spec"]["versions"][0]["served"] = false.into();
    client.merge(&path, &json!({"spec": two["spec"]})).await;
    assert_eq!(watch.next().await, None);
    assert_eq!(client.get(SHIPS).await.0, 404);
    assert_eq!(client.names("/apis/sea.dev/v2/namespaces/default/ships").await, ["argo"]);
}
