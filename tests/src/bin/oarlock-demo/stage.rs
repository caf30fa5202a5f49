//! The host with the samples, the recorder, and requests to the API server as a user makes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::config::Kubeconfig;
use oarlock_tests::chain_check::Violation;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::{HostProcess, Printed, checkout};
use oarlock_tests::recorder::Recorder;
use serde_json::Value;
use tempfile::TempDir;

use crate::check;

/// The plugin whose component is swapped during the scene.
pub(crate) const SWAPPED: &str = "swapped";
pub(crate) const HELLOS: [&str; 5] = ["hello-rust", "hello-c", "hello-go", "hello-ts", "hello-python"];
/// The components that the Plugin object has, one after the other.
const VERSIONS: [&str; 3] = ["hello-rust", "hello-c", "traps"];

/// How long a wait may last without any new notification. Reached only when something is wrong.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    folder: TempDir,
    host: HostProcess,
    cluster: Cluster,
    recorders: BTreeMap<&'static str, Recorder>,
    /// How many notifications were shown to the user.
    n_shown: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) notifications: usize,
    pub(crate) writes: usize,
}

// === impl Stage ===

impl Stage {
    /// Starts `oarlock dev` with the samples, and waits until every plugin has synced.
    pub(crate) async fn start(fault_swallow: Option<u64>) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("oarlock-demo-").tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut arguments = vec!["dev".into(), "--kubeconfig".into(), kubeconfig.clone().into_os_string()];
        if let Some(nth) = fault_swallow {
            arguments.extend(["--fault-swallow".into(), nth.to_string().into()]);
        }
        arguments.extend(["--component-dir".into(), components(folder.path())?.into_os_string()]);
        for plugin in HELLOS.iter().chain(&["mirror"]) {
            arguments.push(checkout().join("plugins").join(plugin).into_os_string());
        }
        arguments.push(swapped(folder.path())?.into_os_string());
        println!("demo: starting `oarlock dev` with {} plugins", HELLOS.len() + 2);
        let begun = Instant::now();
        let mut host = HostProcess::start(arguments)?;
        let synced = |printed: &Printed| {
            let done = |line: &&Value| line["remaining"] == 0;
            (printed.events("subscription-synced").filter(done).count() == HELLOS.len() + 2).then_some(())
        };
        let refused = |printed: &Printed| printed.events("plugin-refused").next().map(ToString::to_string);
        let ready = |printed: &Printed| match refused(printed) {
            Some(line) => Some(Err(line)),
            None => synced(printed).map(Ok),
        };
        if let Err(line) = host.wait_for("every plugin has synced", ready).await? {
            bail!("a plugin was refused: {line}");
        }
        println!("demo: all plugins are ready after {:.1} s", begun.elapsed().as_secs_f32());
        let cluster = Cluster::connect(Kubeconfig::read_from(&kubeconfig)?).await?;
        let mut recorders = BTreeMap::new();
        for resource in ["configmaps", "secrets", "namespaces"] {
            let path = format!("/api/v1/{resource}");
            recorders.insert(resource, Recorder::start(cluster.client.clone(), &path).await?);
        }
        let n_shown = host.printed().received().len();
        Ok(Self { folder, host, cluster, recorders, n_shown })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Puts another component in the place of the swapped plugin's, in one step, as a deployment would.
    pub(crate) fn swap(&self, guest: &str) -> anyhow::Result<()> {
        let new = self.folder.path().join("new.wasm");
        std::fs::copy(built(guest), &new)?;
        Ok(std::fs::rename(new, self.folder.path().join("swapped.wasm"))?)
    }

    /// Makes a request as the cluster's administrator.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        self.cluster.request(method, path, body.as_ref()).await
    }

    /// Returns the cluster, with an administrator's client.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Waits until `done`, and until the guests have received the whole history.
    pub(crate) async fn settle(
        &mut self,
        what: &str,
        done: impl AsyncFn(&Self) -> bool,
    ) -> anyhow::Result<()> {
        let (mut n_received, mut since) = (0, Instant::now());
        loop {
            let n_now = self.host.printed().received().len();
            if n_now > n_received {
                (n_received, since) = (n_now, Instant::now());
            }
            let reached = done(self).await;
            let violations = self.violations()?;
            if reached && violations.is_empty() {
                break;
            }
            if since.elapsed() > IDLE_LIMIT {
                for violation in &violations {
                    println!("  lost: {violation}");
                }
                if !reached {
                    println!("  not reached: {what}");
                    println!("{}", self.host.printed().tail());
                }
                bail!("{} lost while waiting for: {what}", violations.len());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.show_new();
        Ok(())
    }

    /// Waits for a line of the host's output.
    pub(crate) async fn wait_for<T>(
        &mut self,
        what: &str,
        found: impl Fn(&Printed) -> Option<T>,
    ) -> anyhow::Result<T> {
        let found = tokio::time::timeout(IDLE_LIMIT, self.host.wait_for(what, found)).await;
        found.with_context(|| format!("the host did not print: {what}"))?
    }

    /// Prints the notifications that arrived since the last call.
    fn show_new(&mut self) {
        let received = self.host.printed().received();
        let mut by_notification: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
        for notification in &received[self.n_shown..] {
            let what = format!("{:?}", notification.kind).to_lowercase();
            let what = what.split(' ').next().unwrap_or_default().to_owned();
            let plugins = by_notification.entry((notification.key.clone(), what)).or_default();
            if !plugins.contains(&notification.plugin.as_str()) {
                plugins.push(&notification.plugin);
            }
        }
        for ((key, what), plugins) in &by_notification {
            println!("      {what:<6} {key:<24} → {}", plugins.join(", "));
        }
        self.n_shown = received.len();
    }

    pub(crate) fn tally(&self) -> Tally {
        let printed = self.host.printed();
        let is_write = |line: &&Value| {
            line["plugin"] == "mirror"
                && ["copied", "updated", "deleted"].iter().any(|word| line["message"] == *word)
        };
        Tally {
            notifications: printed.received().len(),
            writes: printed.events("guest-log").filter(is_write).count(),
        }
    }

    fn violations(&self) -> anyhow::Result<Vec<Violation>> {
        let received = self.host.printed().received();
        let mut histories = BTreeMap::new();
        for (resource, recorder) in &self.recorders {
            histories.insert(*resource, recorder.history()?);
        }
        Ok(check::violations(&histories, &received))
    }

    /// Ends the host as Ctrl-C does. It must end cleanly.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let (status, printed) = self.host.interrupt().await?;
        if !status.success() {
            bail!("oarlock dev ended with {status}:\n{}", printed.tail());
        }
        Ok(())
    }
}

/// Writes the file of the plugin whose component is swapped.
fn swapped(folder: &Path) -> anyhow::Result<PathBuf> {
    std::fs::copy(built("hello-rust"), folder.join("swapped.wasm"))?;
    let file = folder.join("swapped.yaml");
    let yaml = "name: swapped\ncomponent: swapped.wasm\nserviceAccount: {namespace: default, name: swapped}\nlimits: {logLinesPerSecond: 10000}\n";
    std::fs::write(&file, yaml)?;
    Ok(file)
}

/// Makes the folder of components that Plugin objects name, and one file that is no component.
fn components(folder: &Path) -> anyhow::Result<PathBuf> {
    let components = folder.join("components");
    std::fs::create_dir(&components)?;
    for guest in VERSIONS {
        std::fs::copy(built(guest), components.join(format!("{guest}.wasm")))?;
    }
    std::fs::write(components.join("text.wasm"), "no component")?;
    Ok(components)
}

fn built(guest: &str) -> PathBuf {
    checkout().join("target/guests").join(format!("{guest}.wasm"))
}
