//! Lists: selectors, pages, versions.

use crate::client::{MAPS, config_map, names, start, version};
use serde_json::{Value, json};

#[tokio::test]
async fn pages_of_a_list_show_one_version() {
    let (cluster, client) = start().await;
    for name in ["a", "b", "c", "d", "e"] {
        client.create(MAPS, &config_map(name, "1")).await;
    }
    let (_, first) = client.get(&format!("{MAPS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    assert!(first["items"][0].get("kind").is_none(), "items of a list carry no kind");
    // The pages that follow do not show these changes.
    client.delete(&format!("{MAPS}/c")).await;
    client.create(MAPS, &config_map("bb", "1")).await;
    client.merge(&format!("{MAPS}/d"), &json!({"data": {"v": "2"}})).await;
    let next =
        |page: &Value| format!("{MAPS}?limit=2&continue={}", page["metadata"]["continue"].as_str().unwrap());
    let (_, second) = client.get(&next(&first)).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["data"]["v"], "1");
    assert_eq!(version(&second), version(&first));

    cluster.forget_history();
    let (code, expired) = client.get(&next(&second)).await;
    assert_eq!((code, expired["reason"].as_str()), (410, Some("Expired")));
    let (code, rest) = client.get(&next(&expired)).await;
    assert_eq!((code, names(&rest)), (200, vec!["e".to_owned()]));
    assert!(rest["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn a_list_returns_the_requested_version() {
    let (cluster, client) = start().await;
    let old = version(&client.create(MAPS, &config_map("a", "1")).await);
    client.create(MAPS, &config_map("b", "1")).await;
    let exact = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    assert_eq!(client.names(&exact).await, ["a"]);
    assert_eq!(client.names(&format!("{MAPS}?resourceVersion={old}")).await, ["a", "b"]);
    assert_eq!(client.names(&format!("{MAPS}?resourceVersion={old}&limit=5")).await, ["a"]);
    assert_eq!(client.names(&format!("{MAPS}?resourceVersion=0&limit=1")).await, ["a", "b"]);
    let (code, future) = client.get(&format!("{MAPS}?resourceVersion={}", cluster.revision() + 100)).await;
    assert_eq!((code, &future["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
    let (code, invalid) = client.get(&format!("{MAPS}?resourceVersion=x")).await;
    assert_eq!((code, invalid["reason"].as_str()), (400, Some("BadRequest")));
    cluster.forget_history();
    let (code, expired) = client.get(&exact).await;
    assert_eq!((code, expired["reason"].as_str()), (410, Some("Expired")));
}

#[tokio::test]
async fn a_list_returns_the_selected_objects() {
    let (_cluster, client) = start().await;
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        client.create(MAPS, &json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }
    assert_eq!(client.names(&format!("{MAPS}?labelSelector=app%3Dweb")).await, ["a", "c"]);
    assert_eq!(client.names(&format!("{MAPS}?labelSelector=app+notin+(web)")).await, ["b"]);
    assert_eq!(client.names(&format!("{MAPS}?fieldSelector=metadata.name!%3Da")).await, ["b", "c"]);
    let (code, unknown) = client.get(&format!("{MAPS}?fieldSelector=data.x%3D1")).await;
    assert_eq!(code, 400);
    assert_eq!(
        unknown["message"],
        "\"data.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}});
    client.create("/api/v1/namespaces/default/secrets", &secret).await;
    assert_eq!(client.names("/api/v1/secrets?fieldSelector=type%3DOpaque").await, ["s"]);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let (_cluster, client) = start().await;
    for (name, app) in [("a", "web"), ("b", "db")] {
        client.create(MAPS, &json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }
    let (code, deleted) = client.delete(&format!("{MAPS}?labelSelector=app%3Dweb")).await;
    assert_eq!((code, names(&deleted)), (200, vec!["a".to_owned()]));
    assert_eq!(client.names(MAPS).await, ["b"]);
    assert_eq!(client.delete("/api/v1/configmaps").await.0, 405);
}
