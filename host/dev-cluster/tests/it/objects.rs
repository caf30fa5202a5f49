//! Objects: created, read, updated, deleted.

use crate::client::{MAPS, config_map, start, version};
use serde_json::json;

#[tokio::test]
async fn an_object_is_created_updated_and_deleted() {
    let (_cluster, client) = start().await;
    let created = client.create(MAPS, &config_map("a", "1")).await;
    let path = format!("{MAPS}/a");
    assert_eq!(client.get(&path).await, (200, created.clone()));
    assert_eq!(created["kind"], "ConfigMap");
    assert_eq!(created["metadata"]["namespace"], "default");

    let (code, again) = client.post(MAPS, &config_map("a", "1")).await;
    assert_eq!((code, again["reason"].as_str()), (409, Some("AlreadyExists")));

    let mut changed = created.clone();
    changed["data"]["v"] = "2".into();
    let (code, updated) = client.put(&path, &changed).await;
    assert_eq!(code, 200);
    assert_ne!(version(&updated), version(&created));
    let (code, stale) = client.put(&path, &changed).await;
    assert_eq!(code, 409);
    assert_eq!(
        stale["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to \
         the latest version and try again"
    );
    // A write without a change creates no new version.
    assert_eq!(client.put(&path, &updated).await, (200, updated.clone()));

    let (code, deleted) = client.delete(&path).await;
    assert_eq!((code, deleted["status"].as_str()), (200, Some("Success")));
    assert_eq!(deleted["details"]["uid"], created["metadata"]["uid"]);
    let (code, gone) = client.get(&path).await;
    assert_eq!(code, 404);
    assert_eq!(
        gone,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "configmaps \"a\" not found", "reason": "NotFound",
            "details": {"name": "a", "kind": "configmaps"}, "code": 404,
        })
    );
}

#[tokio::test]
async fn invalid_bodies_are_refused() {
    let (_cluster, client) = start().await;
    let summary =
        |(code, status): (u16, serde_json::Value)| format!("{code} {}", status["message"].as_str().unwrap());
    insta::assert_snapshot!(summary(client.post(MAPS, &json!({})).await), @r#"422 ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#);
    insta::assert_snapshot!(
        summary(client.post(MAPS, &json!({"metadata": {"name": "a", "namespace": "b"}})).await),
        @"400 the namespace of the provided object does not match the namespace sent on the request"
    );
    insta::assert_snapshot!(
        summary(client.post(MAPS, &json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}})).await),
        @r#"400 Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"#
    );
    insta::assert_snapshot!(
        summary(client.post(MAPS, &json!({"metadata": {"name": "a", "resourceVersion": "3"}})).await),
        @"500 resourceVersion should not be set on objects to be created"
    );
    insta::assert_snapshot!(
        summary(client.post("/api/v1/namespaces/none/configmaps", &config_map("a", "1")).await),
        @r#"404 namespaces "none" not found"#
    );
    client.create(MAPS, &config_map("a", "1")).await;
    insta::assert_snapshot!(
        summary(client.put(&format!("{MAPS}/a"), &config_map("b", "1")).await),
        @"400 the name of the object (b) does not match the name on the URL (a)"
    );
    let other = json!({"metadata": {"name": "a", "uid": "x"}});
    let (code, status) = client.put(&format!("{MAPS}/a"), &other).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
}

#[tokio::test]
async fn names_are_generated() {
    let (_cluster, client) = start().await;
    let created = client.create(MAPS, &json!({"metadata": {"generateName": "job-"}})).await;
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("job-") && name.len() == 9, "{name}");
}

#[tokio::test]
async fn a_deleted_object_waits_for_its_finalizers() {
    let (_cluster, client) = start().await;
    let path = format!("{MAPS}/a");
    client.create(MAPS, &json!({"metadata": {"name": "a", "finalizers": ["x.dev/hold"]}})).await;
    let (code, marked) = client.delete(&path).await;
    assert_eq!(code, 200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    // A second delete changes nothing.
    assert_eq!(client.delete(&path).await.1["metadata"], marked["metadata"]);
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&marked))).await;
    let (code, _) = client.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(code, 200);
    assert!(watch.next_summary().await.starts_with("DELETED a@"));
    assert_eq!(client.get(&path).await.0, 404);
}

#[tokio::test]
async fn a_delete_checks_its_preconditions() {
    let (_cluster, client) = start().await;
    let created = client.create(MAPS, &config_map("a", "1")).await;
    let delete = |options: serde_json::Value| {
        let client = client.with("content-type", "application/json");
        async move {
            let (code, _, body) =
                client.whole(http::Method::DELETE, &format!("{MAPS}/a"), &options.to_string()).await;
            (code, String::from_utf8(body.to_vec()).unwrap())
        }
    };
    let (code, body) = delete(json!({"preconditions": {"uid": "x"}})).await;
    assert_eq!(code, 409, "{body}");
    assert!(body.contains("the UID in the precondition (x) does not match"), "{body}");
    let (code, body) = delete(json!({"preconditions": {"resourceVersion": "1"}})).await;
    assert_eq!(code, 409, "{body}");
    let version = version(&created);
    assert_eq!(delete(json!({"preconditions": {"resourceVersion": version}})).await.0, 200);
}

#[tokio::test]
async fn a_delete_of_a_collection_checks_its_preconditions() {
    let (_cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let json = client.with("content-type", "application/json");
    let options = json!({"preconditions": {"uid": "x"}}).to_string();
    let (code, _, body) = json.whole(http::Method::DELETE, MAPS, &options).await;
    assert_eq!(code, 409, "{body:?}");
    assert_eq!(client.get(&format!("{MAPS}/a")).await.0, 200);
}

#[tokio::test]
async fn the_generation_counts_changes_of_the_spec_only() {
    let (_cluster, client) = start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({
        "metadata": {"name": "d"}, "status": {"replicas": 7},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    let created = client.create(path, &deployment).await;
    assert_eq!((&created["metadata"]["generation"], &created["status"]), (&json!(1), &json!({})));
    let path = format!("{path}/d");
    let (_, labelled) =
        client.merge(&path, &json!({"metadata": {"labels": {"x": "y"}}, "status": {"replicas": 3}})).await;
    assert_eq!((&labelled["metadata"]["generation"], &labelled["status"]), (&json!(1), &json!({})));
    let (_, scaled) = client.merge(&path, &json!({"spec": {"replicas": 3}})).await;
    assert_eq!(scaled["metadata"]["generation"], 2);
    let status = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}});
    let (code, updated) = client.merge(&format!("{path}/status"), &status).await;
    assert_eq!(
        (code, &updated["status"]["replicas"], &updated["spec"]["replicas"]),
        (200, &json!(3), &json!(3))
    );
    assert_eq!(updated["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_deleted_pod_on_a_node_has_a_grace_period() {
    let (_cluster, client) = start().await;
    let path = "/api/v1/namespaces/default/pods";
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.create(path, &pod("free")).await;
    let (code, gone) = client.delete(&format!("{path}/free")).await;
    assert_eq!(
        (code, &gone["kind"], &gone["metadata"]["deletionGracePeriodSeconds"]),
        (200, &json!("Pod"), &json!(0))
    );
    assert_eq!(client.get(&format!("{path}/free")).await.0, 404);

    let mut bound = pod("bound");
    bound["spec"]["nodeName"] = "n1".into();
    client.create(path, &bound).await;
    let (_, waiting) = client.delete(&format!("{path}/bound")).await;
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(client.get(&format!("{path}/bound")).await.0, 200);
    client.delete(&format!("{path}/bound?gracePeriodSeconds=0")).await;
    assert_eq!(client.get(&format!("{path}/bound")).await.0, 404);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let (cluster, client) = start().await;
    let before = cluster.revision();
    let (code, _) = client.post(&format!("{MAPS}?dryRun=All"), &config_map("a", "1")).await;
    assert_eq!(code, 201);
    assert_eq!(client.get(&format!("{MAPS}/a")).await.0, 404);
    assert_eq!(cluster.revision(), before);
}

#[tokio::test]
async fn events_are_served_in_two_groups() {
    let (_cluster, client) = start().await;
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Because", "message": "it happened", "type": "Normal",
    });
    client.create("/api/v1/namespaces/default/events", &event).await;
    let (_, new) = client.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await;
    assert_eq!((&new["apiVersion"], &new["note"]), (&json!("events.k8s.io/v1"), &json!("it happened")));
    assert_eq!(new["regarding"]["name"], "p");
    let by_object = "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp,reason%3DBecause";
    assert_eq!(client.names(by_object).await, ["e"]);
    assert_eq!(
        client.names("/api/v1/events?fieldSelector=involvedObject.name%3Dq").await,
        Vec::<String>::new()
    );
}
