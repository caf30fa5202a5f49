//! Hosts in a leader election: the standby takes over, nothing is lost, and one host writes at a time.

use std::path::PathBuf;

use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::copies;
use oarlock_tests::host_process::{HostProcess, Printed, checkout};

/// An API server, and what starts hosts with the plugin `mirror`.
struct Scene {
    _server: DevCluster,
    cluster: Cluster,
    plugins: [PathBuf; 1],
    kubeconfig: PathBuf,
}

impl Scene {
    async fn new() -> anyhow::Result<Self> {
        let server = DevCluster::start(Config::default()).await?;
        let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
        copies::create_namespaces(&cluster).await?;
        let plugins = [checkout().join("plugins/mirror")];
        let kubeconfig = cluster.provision(&plugins).await?;
        Ok(Self { _server: server, cluster, plugins, kubeconfig })
    }

    /// Starts a host, and waits until it has loaded the plugin.
    async fn host(&self) -> anyhow::Result<HostProcess> {
        let mut host = self.cluster.run_candidate(&self.kubeconfig, &self.plugins)?;
        host.wait_for("mirror is loaded", |printed| printed.events("plugin-loaded").next().map(|_| ()))
            .await?;
        Ok(host)
    }

    /// Starts a host, and waits until it leads and all initial adds are delivered.
    async fn leader(&self) -> anyhow::Result<HostProcess> {
        let mut host = self.host().await?;
        host.until_synced().await?;
        Ok(host)
    }

    async fn until_right(&self) -> anyhow::Result<()> {
        copies::until_right(&self.cluster).await
    }
}

/// Returns how many writes the plugin has logged.
fn n_writes(printed: &Printed) -> usize {
    printed.events("guest-log").filter(|line| line["message"] == "copied").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_3_a_standby_takes_over_from_a_killed_leader_and_nothing_is_lost() -> anyhow::Result<()> {
    let scene = Scene::new().await?;
    let leader = scene.leader().await?;
    let mut standby = scene.host().await?;
    for n in 0..30 {
        copies::create(&scene.cluster, n).await?;
    }
    // Before the kill: a slow machine may need longer for the next requests than the Lease lasts.
    assert_eq!(standby.printed().events("guest-log").count(), 0, "a standby calls no plugin");
    // The leader is in the middle of its work.
    leader.kill().await?;
    for n in 0..10 {
        copies::delete(&scene.cluster, n).await?;
        copies::change(&scene.cluster, n + 10, "changed").await?;
    }
    standby.until_synced().await?;
    scene.until_right().await
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_3_hosts_that_are_replaced_one_after_the_other_under_load_lose_nothing() -> anyhow::Result<()>
{
    let scene = Scene::new().await?;
    let mut leader = scene.leader().await?;
    for round in 0..3 {
        let mut standby = scene.host().await?;
        for n in round * 20..round * 20 + 20 {
            copies::create(&scene.cluster, n).await?;
        }
        let (status, printed) = leader.terminate().await?;
        assert!(status.success(), "{}", printed.tail());
        assert_eq!(printed.events("host-drained").count(), 1, "{}", printed.tail());
        copies::change(&scene.cluster, round * 20, "changed").await?;
        copies::delete(&scene.cluster, round * 20 + 1).await?;
        standby.until_synced().await?;
        leader = standby;
    }
    scene.until_right().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_stopped_and_continues_writes_nothing_and_ends() -> anyhow::Result<()> {
    let scene = Scene::new().await?;
    let leader = scene.leader().await?;
    let mut standby = scene.host().await?;
    copies::create(&scene.cluster, 0).await?;
    scene.until_right().await?;
    let mut leader = leader;
    let has_logged = |printed: &Printed| (n_writes(printed) == copies::TARGETS.len()).then_some(());
    leader.wait_for("it logs what it has done", has_logged).await?;
    leader.signal("STOP").await?;
    let before = n_writes(&leader.printed());
    standby.until_synced().await?;
    for n in 1..20 {
        copies::create(&scene.cluster, n).await?;
    }
    scene.until_right().await?;
    for n in 0..20 {
        copies::change(&scene.cluster, n, "later").await?;
    }
    leader.signal("CONT").await?;
    let (status, printed) = leader.ended().await?;
    assert!(!status.success(), "it lost the Lease");
    assert_eq!(printed.events("leadership-lost").count(), 1, "{}", printed.tail());
    assert_eq!(n_writes(&printed), before, "{}", printed.tail());
    scene.until_right().await
}
