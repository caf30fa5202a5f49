//! Watches: resumed, filtered, with bookmarks, expired.

use crate::client::{Client, MAPS, config_map, start, version};
use oarlock_dev_cluster::{Config, DevCluster};
use serde_json::json;
use tokio::time::Duration;

#[tokio::test]
async fn a_watch_resumes_at_its_version() {
    let (_cluster, client) = start().await;
    let a = client.create(MAPS, &config_map("a", "1")).await;
    let b = client.create(MAPS, &config_map("b", "1")).await;
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&a))).await;
    assert_eq!(watch.next_summary().await, format!("ADDED b@{}", version(&b)));
    let (_, changed) = client.merge(&format!("{MAPS}/a"), &json!({"data": {"v": "2"}})).await;
    assert_eq!(watch.next_summary().await, format!("MODIFIED a@{}", version(&changed)));
    client.delete(&format!("{MAPS}/b")).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("DELETED"), &json!("ConfigMap")));
    assert!(version(&event["object"]).parse::<u64>().unwrap() > version(&changed).parse().unwrap());
    assert_eq!(event["object"]["data"]["v"], "1");
}

#[tokio::test]
async fn a_watch_adds_and_deletes_objects_as_they_match_the_selector() {
    let (_cluster, client) = start().await;
    let labelled = |value: &str| json!({"metadata": {"labels": {"on": value}}});
    client.create(MAPS, &config_map("a", "1")).await;
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion=0&labelSelector=on%3Dyes")).await;
    let path = format!("{MAPS}/a");
    let (_, on) = client.merge(&path, &labelled("yes")).await;
    assert_eq!(watch.next_summary().await, format!("ADDED a@{}", version(&on)));
    let (_, off) = client.merge(&path, &labelled("no")).await;
    let event = watch.next().await.unwrap();
    assert_eq!((event["type"].as_str(), version(&event["object"])), (Some("DELETED"), version(&off)));
    assert_eq!(event["object"]["metadata"]["labels"]["on"], "yes", "as it last matched");
    client.merge(&path, &json!({"data": {"v": "3"}})).await;
    client.merge(&path, &labelled("yes")).await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let (cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    client.create(MAPS, &config_map("b", "1")).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = client.watch(&format!("{MAPS}?{query}")).await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
    assert!(watch.next_summary().await.starts_with("ADDED b@"));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(version(&bookmark["object"]), cluster.revision().to_string());
    client.create(MAPS, &config_map("c", "1")).await;
    assert!(watch.next_summary().await.starts_with("ADDED c@"));
    // Without initial events, the watch starts with new events.
    let none = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut watch = client.watch(&format!("{MAPS}?{none}")).await;
    client.create(MAPS, &config_map("d", "1")).await;
    assert!(watch.next_summary().await.starts_with("ADDED d@"));
}

#[tokio::test]
async fn bookmarks_carry_the_newest_version() {
    let config = Config { bookmark_interval: Duration::from_millis(20), ..Config::default() };
    let cluster = DevCluster::start(config).await.unwrap();
    let client = Client::new(&cluster, cluster.admin_token());
    client.create(MAPS, &config_map("a", "1")).await;
    let version = cluster.revision();
    let mut watch =
        client.watch(&format!("{MAPS}?watch=1&resourceVersion={version}&allowWatchBookmarks=true")).await;
    // A write of another resource increments the revision.
    client.create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    watch.wait_for(&format!("BOOKMARK @{}", cluster.revision())).await;
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_gets_an_error_event() {
    let (cluster, client) = start().await;
    let a = client.create(MAPS, &config_map("a", "1")).await;
    client.create(MAPS, &config_map("b", "1")).await;
    cluster.forget_history();
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&a))).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!((&event["object"]["code"], &event["object"]["reason"]), (&json!(410), &json!("Expired")));
    let message = format!("too old resource version: {} ({})", version(&a), cluster.revision());
    assert_eq!(event["object"]["message"], message);
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_version_beyond_the_history_limit_is_expired() {
    let config = Config { history_limit: 3, ..Config::default() };
    let cluster = DevCluster::start(config).await.unwrap();
    let client = Client::new(&cluster, cluster.admin_token());
    let a = client.create(MAPS, &config_map("a", "1")).await;
    for value in ["2", "3", "4", "5"] {
        client.merge(&format!("{MAPS}/a"), &json!({"data": {"v": value}})).await;
    }
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&a))).await;
    assert!(watch.next_summary().await.starts_with("ERROR"));
}

#[tokio::test]
async fn a_watch_ends_after_its_timeout() {
    let (_cluster, client) = start().await;
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion=0&timeoutSeconds=1")).await;
    assert_eq!(watch.next().await, None);
}

/// A timeout beyond the range of the server's clock does not end the watch.
#[tokio::test]
async fn a_watch_accepts_the_longest_timeout() {
    let (_cluster, client) = start().await;
    let mut watch =
        client.watch(&format!("{MAPS}?watch=1&resourceVersion=0&timeoutSeconds={}", i64::MAX)).await;
    client.create(MAPS, &config_map("a", "1")).await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
}

#[tokio::test]
async fn a_watch_as_tables_defines_its_columns_once() {
    let (_cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let client = client.with("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion=0")).await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["columnDefinitions"][1]["name"], "Data");
    assert_eq!(first["object"]["rows"][0]["cells"][1], 1);
    client.create(MAPS, &config_map("b", "1")).await;
    let second = watch.next().await.unwrap();
    assert_eq!(second["object"]["columnDefinitions"], json!(null));
    assert_eq!(second["object"]["rows"][0]["object"]["metadata"]["name"], "b");
}
