//! A host that is killed and started again reaches the desired state.

use std::path::PathBuf;

use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::copies;
use oarlock_tests::host_process::checkout;

const SOURCES: usize = 60;

/// Sources are created, changed and deleted while the host is killed, and while it does not run.
#[tokio::test(flavor = "multi_thread")]
async fn promise_3_a_killed_host_loses_nothing() -> anyhow::Result<()> {
    let server = DevCluster::start(Config::default()).await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
    copies::create_namespaces(&cluster).await?;
    let plugins: [PathBuf; 1] = [checkout().join("plugins/mirror")];
    let kubeconfig = cluster.provision(&plugins).await?;

    let mut host = cluster.run(&kubeconfig, &plugins)?;
    host.until_synced().await?;
    for n in 0..SOURCES {
        copies::create(&cluster, n).await?;
    }
    // The host is in the middle of its work: some copies exist, some do not.
    host.wait_for("the first copies", |printed| {
        (printed.events("guest-log").filter(|line| line["message"] == "copied").count() > 5).then_some(())
    })
    .await?;
    host.kill().await?;

    for n in 0..SOURCES {
        match n % 3 {
            0 => copies::delete(&cluster, n).await?,
            1 => copies::change(&cluster, n, "changed").await?,
            _ => {}
        }
    }
    let _host = cluster.run(&kubeconfig, &plugins)?;
    copies::until_right(&cluster).await
}
