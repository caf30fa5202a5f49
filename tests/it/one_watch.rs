//! Plugins that subscribe to one resource share one watch, counted at the API server.

use kube::config::Kubeconfig;
use oarlock_built_guests::needs;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::checkout;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn promise_1_three_plugins_share_one_watch_at_the_server() -> anyhow::Result<()> {
    let server = DevCluster::start(Config::default()).await?;
    // A fault that is injected zero times counts the requests that it matches.
    let counter = Fault::times(Match::watch("configmaps"), Action::Expired, 0);
    let watches = server.faults().add(counter);
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
    let names = ["hello-rust", "hello-c", "hello-go"];
    names.iter().for_each(|name| needs(name));
    let plugins = names.map(|name| checkout().join("plugins").join(name));
    let kubeconfig = cluster.provision(&plugins).await?;
    let mut host = cluster.run(&kubeconfig, &plugins)?;
    host.wait_for("every plugin has synced", |printed| {
        let synced = printed.events("subscription-synced").filter(|line| line["remaining"] == 0);
        (synced.count() == names.len()).then_some(())
    })
    .await?;
    let object = json!({"metadata": {"name": "shared", "labels": {"app": "hello"}}});
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&object)).await?;
    host.wait_for("a notification of every plugin", |printed| {
        let received = printed.received();
        let has_received =
            |name: &&str| received.iter().any(|it| it.plugin == *name && it.key == "default/shared");
        names.iter().all(has_received).then_some(())
    })
    .await?;
    assert_eq!(server.faults().matched(watches), 1);
    server.shut_down().await;
    Ok(())
}
