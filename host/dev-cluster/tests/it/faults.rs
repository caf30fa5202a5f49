//! Faults on demand: their effect, the requests that they apply to, and how often they apply.

use crate::client::{MAPS, config_map, start};
use http::Method;
use http_body_util::BodyExt;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use serde_json::json;
use tokio::time::Duration;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0";

fn on_watch() -> Match {
    Match::watch("configmaps")
}

#[tokio::test]
async fn a_fault_replaces_the_response() {
    let (cluster, client) = start().await;
    let faults = cluster.faults();
    let list = || Match::list("configmaps");
    faults.add(Fault::times(list(), Action::TooManyRequests { retry_after_seconds: 7 }, 1));
    let (code, headers, _) = client.whole(Method::GET, MAPS, "").await;
    assert_eq!((code, headers["retry-after"].to_str().unwrap()), (429, "7"));
    faults.add(Fault::times(list(), Action::InternalError, 1));
    assert_eq!(client.get(MAPS).await.0, 500);
    faults.add(Fault::times(list(), Action::Expired, 1));
    assert_eq!(client.get(MAPS).await.0, 410);
    let id =
        faults.add(Fault::new(Match { user_agent: Some("oarlock".into()), ..list() }, Action::RefuseLogin));
    assert_eq!(client.get(MAPS).await.0, 200);
    assert_eq!(client.with("user-agent", "oarlock/0.1").get(MAPS).await.0, 401);
    assert_eq!(faults.remove(id), 1);
    assert_eq!(client.with("user-agent", "oarlock/0.1").get(MAPS).await.0, 200);
}

#[tokio::test]
async fn a_fault_closes_watches_after_a_number_of_events() {
    let (cluster, client) = start().await;
    cluster.faults().add(Fault::times(on_watch(), Action::CloseWatch { after_events: 1 }, 1));
    client.create(MAPS, &config_map("a", "1")).await;
    client.create(MAPS, &config_map("b", "1")).await;
    let mut watch = client.watch(WATCH).await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
    assert_eq!(watch.next().await, None);
    let mut watch = client.watch(WATCH).await;
    watch.next_summary().await;
    assert!(watch.next_summary().await.starts_with("ADDED b@"));
}

#[tokio::test]
async fn open_watches_can_be_closed_and_expired() {
    let (cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let mut closed = client.watch(WATCH).await;
    closed.next_summary().await;
    cluster.faults().close_watches(on_watch());
    assert_eq!(closed.next().await, None);
    let mut expired = client.watch(WATCH).await;
    expired.next_summary().await;
    cluster.faults().expire_watches(on_watch());
    assert_eq!(expired.next().await.unwrap()["object"]["code"], 410);
    assert_eq!(expired.next().await, None);
}

#[tokio::test]
async fn a_half_open_watch_sends_no_further_events() {
    let (cluster, client) = start().await;
    cluster.faults().add(Fault::times(on_watch(), Action::HalfOpenWatch { after_events: 1 }, 1));
    client.create(MAPS, &config_map("a", "1")).await;
    let mut silent = client.watch(WATCH).await;
    assert!(silent.next_summary().await.starts_with("ADDED a@"));
    let mut healthy = client.watch(WATCH).await;
    healthy.next_summary().await;
    client.create(MAPS, &config_map("b", "1")).await;
    assert!(healthy.next_summary().await.starts_with("ADDED b@"));
    // The other watch received the event, so it is stored, but the half-open watch has no data.
    assert!(futures::FutureExt::now_or_never(silent.next()).is_none());
}

#[tokio::test]
async fn faults_repeat_omit_and_garble_events() {
    let (cluster, client) = start().await;
    for name in ["a", "b", "c"] {
        client.create(MAPS, &config_map(name, "1")).await;
    }
    let faults = cluster.faults();
    faults.add(Fault::times(on_watch(), Action::RepeatEvents, 1));
    let mut watch = client.watch(WATCH).await;
    assert_eq!(watch.next_summary().await, watch.next_summary().await);
    faults.add(Fault::times(on_watch(), Action::SwallowEvent { event: 1 }, 1));
    let mut watch = client.watch(WATCH).await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
    assert!(watch.next_summary().await.starts_with("ADDED c@"));
    faults.add(Fault::times(on_watch(), Action::Garbage { after_events: 1 }, 1));
    let mut watch = client.watch(WATCH).await;
    assert!(watch.next_summary().await.starts_with("ADDED a@"));
    let garbage = watch.next_line().await.unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&garbage).is_err());
    assert!(watch.next_summary().await.starts_with("ADDED b@"));
    faults.add(Fault::times(on_watch(), Action::Expired, 1));
    let mut watch = client.watch(WATCH).await;
    assert_eq!(watch.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test]
async fn faults_cut_and_slow_bodies() {
    let (cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let list = || Match::list("configmaps");
    cluster.faults().add(Fault::times(list(), Action::CutBody { after_bytes: 50 }, 1));
    let response = client.send(Method::GET, MAPS, "").await.unwrap();
    assert!(response.into_body().collect().await.is_err(), "broken off");
    cluster.faults().add(Fault::times(list(), Action::SlowBody { pause: Duration::from_millis(1) }, 1));
    assert_eq!(client.names(MAPS).await, ["a"]);
    cluster.faults().add(Fault::times(list(), Action::Garbage { after_events: 0 }, 1));
    let (code, _, body) = client.whole(Method::GET, MAPS, "").await;
    assert_eq!(code, 200);
    assert!(serde_json::from_slice::<serde_json::Value>(&body).is_err());
}

#[tokio::test]
async fn a_server_that_was_away_serves_again() {
    let (cluster, client) = start().await;
    client.create(MAPS, &json!({"metadata": {"name": "a"}})).await;
    let mut watch = client.watch(WATCH).await;
    watch.next_summary().await;
    cluster.faults().set_away(true);
    assert_eq!(watch.next().await, None);
    assert!(client.send(Method::GET, MAPS, "").await.is_err());
    cluster.faults().set_away(false);
    assert_eq!(client.names(MAPS).await, ["a"]);
}
