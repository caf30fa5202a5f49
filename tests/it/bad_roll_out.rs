//! A host that is restarted during a bad roll-out serves the last good version.

use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use oarlock_built_guests::component;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::HostProcess;
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

/// A plugin in a folder of its own, and the files of its host.
struct RollOut {
    cluster: Cluster,
    kubeconfig: PathBuf,
    plugin: PathBuf,
    state: PathBuf,
}

// === impl RollOut ===

impl RollOut {
    async fn new(server: &DevCluster) -> anyhow::Result<Self> {
        let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
        let (folder, state) = (cluster.path("plugin"), cluster.path("state"));
        std::fs::create_dir(&folder)?;
        let mut roll_out = Self { cluster, kubeconfig: PathBuf::new(), plugin: folder, state };
        roll_out.probation("3s")?;
        roll_out.component(&guest("hello-rust")?)?;
        roll_out.kubeconfig = roll_out.cluster.provision(std::slice::from_ref(&roll_out.plugin)).await?;
        Ok(roll_out)
    }

    /// Writes the plugin's file, with this time of probation.
    fn probation(&self, time: &str) -> anyhow::Result<()> {
        let file = json!({
            "name": "p",
            "component": "p.wasm",
            "serviceAccount": {"namespace": "default", "name": "p"},
            "probation": {"time": time, "maxLosses": 3},
            "limits": {"logLinesPerSecond": 10_000},
        });
        self.replace("plugin.yaml", file.to_string().as_bytes())
    }

    fn component(&self, bytes: &[u8]) -> anyhow::Result<()> {
        self.replace("p.wasm", bytes)
    }

    fn replace(&self, file: &str, bytes: &[u8]) -> anyhow::Result<()> {
        std::fs::write(self.plugin.join("p.new"), bytes)?;
        Ok(std::fs::rename(self.plugin.join("p.new"), self.plugin.join(file))?)
    }

    fn start(&self) -> anyhow::Result<HostProcess> {
        let flags =
            [("--kubeconfig", &self.kubeconfig), ("--plugins", &self.plugin), ("--state-dir", &self.state)];
        let arguments = flags.into_iter().flat_map(|(flag, path)| [Path::new(flag), path.as_path()]);
        let level = [Path::new("--level"), Path::new("debug")];
        HostProcess::start([Path::new("run")].into_iter().chain(arguments).chain(level))
    }

    async fn create(&self, name: &str) -> anyhow::Result<()> {
        let object = json!({"metadata": {"name": name, "labels": {"app": "hello"}}});
        self.cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&object)).await?;
        Ok(())
    }

    fn has_last_good(&self) -> bool {
        self.has_kept("good")
    }

    /// Returns whether the folder for state has a file about a version with this extension.
    fn has_kept(&self, extension: &str) -> bool {
        let entries = std::fs::read_dir(self.state.join("last-good/plugins")).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.path().extension().is_some_and(|it| it == extension))
    }
}

fn guest(name: &str) -> anyhow::Result<Vec<u8>> {
    Ok(std::fs::read(component(name))?)
}

/// Waits for an event of the plugin that satisfies the predicate.
async fn event(host: &mut HostProcess, event: &str, is_it: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    host.wait_for(event, |printed| printed.events(event).find(|line| is_it(line)).cloned()).await
}

/// Waits until a version with this digest serves and received this object.
async fn serves(host: &mut HostProcess, digest: &Value, object: &str) -> anyhow::Result<()> {
    let loaded = event(host, "plugin-loaded", |line| line["digest"] == *digest).await?;
    let key = format!("default/{object}");
    host.wait_for("the object", |printed| {
        let mut reported = printed.notifications.iter().map(|it| &it.notification);
        reported.find(|it| loaded["generation"] == it.generation && it.key == key).map(|_| ())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_host_that_is_restarted_during_a_bad_roll_out_serves_the_last_good_version()
-> anyhow::Result<()> {
    let server = DevCluster::start(Config::default()).await?;
    let roll_out = RollOut::new(&server).await?;
    roll_out.create("healthy").await?;
    let mut host = roll_out.start()?;
    let good = event(&mut host, "plugin-loaded", |_| true).await?["digest"].clone();
    serves(&mut host, &good, "healthy").await?;
    wait_until("the last good version", async || match roll_out.has_last_good() {
        true => Ok(()),
        false => Err("it is not kept"),
    })
    .await?;
    host.kill().await?;

    // Broken versions: no component, half of one, one that cannot describe itself.
    let half = guest("hello-c")?;
    let broken = [b"no component".to_vec(), half[..half.len() / 2].to_vec(), guest("panics-in-describe")?];
    for component in broken {
        roll_out.component(&component)?;
        let mut host = roll_out.start()?;
        event(&mut host, "plugin-refused", |_| true).await?;
        event(&mut host, "plugin-last-good", |line| line["digest"] == good).await?;
        serves(&mut host, &good, "healthy").await?;
        host.kill().await?;
    }

    // A version that loses instances, but the host is killed before it goes back.
    roll_out.component(&guest("hello-rust")?)?;
    let mut host = roll_out.start()?;
    serves(&mut host, &good, "healthy").await?;
    roll_out.create("panic").await?;
    // It is lost often enough within this time, also on a slow machine.
    roll_out.probation("600s")?;
    roll_out.component(&guest("traps")?)?;
    event(&mut host, "instance-lost", |_| true).await?;
    host.kill().await?;
    for name in ["overflow", "overrun"] {
        roll_out.create(name).await?;
    }
    // The next host has no version before it in memory, but on disk.
    let mut host = roll_out.start()?;
    let back = event(&mut host, "plugin-rolled-back", |_| true).await?;
    assert_eq!(back["to-digest"], good);
    serves(&mut host, &good, "overrun").await?;
    host.kill().await?;
    // This version is not tried again.
    let mut host = roll_out.start()?;
    let refused = event(&mut host, "plugin-refused", |_| true).await?;
    assert!(refused["message"].as_str().is_some_and(|it| it.contains("was rolled back")), "{refused}");
    event(&mut host, "plugin-last-good", |line| line["digest"] == good).await?;
    serves(&mut host, &good, "overrun").await?;
    let printed = host.printed();
    assert_eq!(printed.events("instance-lost").count(), 0);

    // A version that is repaired serves, also after another restart.
    roll_out.component(&guest("hello-c")?)?;
    let repaired = event(&mut host, "plugin-loaded", |line| line["digest"] != good).await?["digest"].clone();
    host.kill().await?;
    let mut host = roll_out.start()?;
    serves(&mut host, &repaired, "healthy").await?;
    host.kill().await?;
    server.shut_down().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_version_on_probation_serves_after_a_restart_while_the_newest_one_is_in_quarantine()
-> anyhow::Result<()> {
    let server = DevCluster::start(Config::default()).await?;
    let roll_out = RollOut::new(&server).await?;
    // No version passes.
    roll_out.probation("600s")?;
    for name in ["healthy", "panic", "overflow", "overrun"] {
        roll_out.create(name).await?;
    }
    let mut host = roll_out.start()?;
    let first = event(&mut host, "plugin-loaded", |_| true).await?["digest"].clone();
    serves(&mut host, &first, "healthy").await?;
    wait_until("the version on probation", async || match roll_out.has_kept("candidate") {
        true => Ok(()),
        false => Err("it is not kept"),
    })
    .await?;
    roll_out.component(&guest("traps")?)?;
    let back = event(&mut host, "plugin-rolled-back", |_| true).await?;
    assert_eq!(back["to-digest"], first);
    serves(&mut host, &first, "overrun").await?;
    host.kill().await?;
    let mut host = roll_out.start()?;
    event(&mut host, "plugin-refused", |_| true).await?;
    let loaded = event(&mut host, "plugin-last-good", |line| line["digest"] == first).await?;
    assert_eq!(loaded["has-passed"], false);
    serves(&mut host, &first, "healthy").await?;
    host.kill().await?;
    server.shut_down().await;
    Ok(())
}
