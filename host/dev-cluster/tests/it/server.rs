//! Starting and stopping a server.

use crate::client::{MAPS, config_map, start};
use http::Method;
use oarlock_dev_cluster::{Config, DevCluster, Error};

#[tokio::test]
async fn the_error_names_a_port_in_use() {
    let (cluster, _) = start().await;
    let config = Config { addr: cluster.addr(), ..Config::default() };
    let error = DevCluster::start(config).await.unwrap_err();
    assert!(matches!(error, Error::AddressInUse(addr) if addr == cluster.addr()));
    let port = cluster.addr().port();
    assert_eq!(
        error.to_string(),
        format!("port {port} of 127.0.0.1 is in use: choose another port, or 0 for a free one")
    );
}

#[tokio::test]
async fn shutting_down_ends_connections_and_frees_the_port() {
    let (cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion=0")).await;
    watch.next_summary().await;
    let addr = cluster.addr();
    cluster.shut_down().await;
    assert_eq!(watch.next().await, None);
    assert!(client.send(Method::GET, MAPS, "").await.is_err());
    let again = DevCluster::start(Config { addr, ..Config::default() }).await.unwrap();
    assert_eq!(again.addr(), addr);
}

#[tokio::test]
async fn the_kubeconfig_has_server_token_and_context() {
    let (cluster, _) = start().await;
    let config: serde_json::Value = serde_norway::from_str(&cluster.kubeconfig()).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], cluster.url());
    assert_eq!(config["users"][0]["user"]["token"], cluster.admin_token());
    assert_eq!(config["current-context"], "oarlock-dev");
}
