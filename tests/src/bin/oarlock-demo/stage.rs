//! The host with the samples, the recorder, and a user's hands on the API server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::Client;
use oarlock_tests::host_process::{HostProcess, Printed, checkout};
use oarlock_tests::recorder::Recorder;
use oarlock_tests::told::Told;
use serde_json::Value;
use tempfile::TempDir;

use crate::verdict;

/// The plugin whose component is swapped during the scene.
pub(crate) const CHANGELING: &str = "changeling";
pub(crate) const HELLOS: [&str; 5] = ["hello-rust", "hello-c", "hello-go", "hello-ts", "hello-python"];

/// How long nothing may be told while something is still awaited. Reached only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    folder: TempDir,
    host: HostProcess,
    client: Client,
    recorders: BTreeMap<&'static str, Recorder>,
    /// How many of the guests' words the audience has heard.
    heard: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) notifications: usize,
    pub(crate) writes: usize,
}

// === impl Stage ===

impl Stage {
    /// Starts `oarlock dev` with the samples, and waits until every plugin has seen what there is.
    pub(crate) async fn set(fault_swallow: Option<u64>) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("oarlock-demo-").tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut arguments = vec!["dev".into(), "--kubeconfig".into(), kubeconfig.clone().into_os_string()];
        if let Some(nth) = fault_swallow {
            arguments.extend(["--fault-swallow".into(), nth.to_string().into()]);
        }
        for plugin in HELLOS.iter().chain(&["mirror"]) {
            arguments.push(checkout().join("plugins").join(plugin).into_os_string());
        }
        arguments.push(changeling(folder.path())?.into_os_string());
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
        if let Err(line) = host.wait_for("every plugin was ready", ready).await? {
            bail!("a plugin was refused: {line}");
        }
        println!("demo: all plugins are ready after {:.1} s", begun.elapsed().as_secs_f32());
        let client = client(&kubeconfig).await?;
        let mut recorders = BTreeMap::new();
        for resource in ["configmaps", "secrets", "namespaces"] {
            let path = format!("/api/v1/{resource}");
            recorders.insert(resource, Recorder::start(client.clone(), &path).await?);
        }
        let heard = host.printed().told().len();
        Ok(Self { folder, host, client, recorders, heard })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Puts another component in the place of the changeling's, as a deployment would: in one step.
    pub(crate) fn swap(&self, guest: &str) -> anyhow::Result<()> {
        let new = self.folder.path().join("new.wasm");
        std::fs::copy(built(guest), &new)?;
        Ok(std::fs::rename(new, self.folder.path().join("changeling.wasm"))?)
    }

    /// Makes a request as the cluster's administrator.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(|body| serde_json::to_vec(&body)).transpose()?.unwrap_or_default();
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        let text = self.client.request_text(request.body(body)?).await;
        Ok(serde_json::from_str(&text.with_context(|| format!("{method} {path}"))?)?)
    }

    /// Waits until `done` of the API server's answers, then until everything that happened was told.
    pub(crate) async fn settle(
        &mut self,
        what: &str,
        done: impl AsyncFn(&Self) -> bool,
    ) -> anyhow::Result<()> {
        let (mut n_told, mut since) = (0, Instant::now());
        loop {
            let n_now = self.host.printed().told().len();
            if n_now > n_told {
                (n_told, since) = (n_now, Instant::now());
            }
            let reached = done(self).await;
            let faults = self.faults()?;
            if reached && faults.is_empty() {
                break;
            }
            if since.elapsed() > PATIENCE {
                for fault in &faults {
                    println!("  lost: {fault}");
                }
                if !reached {
                    println!("  never: {what}");
                    println!("{}", self.host.printed().tail());
                }
                bail!("{} lost while waiting for: {what}", faults.len());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.tell();
        Ok(())
    }

    /// Waits for a line of the host.
    pub(crate) async fn hear<T>(
        &mut self,
        what: &str,
        found: impl Fn(&Printed) -> Option<T>,
    ) -> anyhow::Result<T> {
        let heard = tokio::time::timeout(PATIENCE, self.host.wait_for(what, found)).await;
        heard.with_context(|| format!("nothing was heard of: {what}"))?
    }

    /// Says in plain lines what the plugins said since the last time.
    fn tell(&mut self) {
        let told = self.host.printed().told();
        let news = &told[self.heard..];
        let mut by_notification: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
        for told in news {
            let what = format!("{:?}", told.kind).to_lowercase();
            let what = what.split(' ').next().unwrap_or_default().to_owned();
            let plugins = by_notification.entry((told.key.clone(), what)).or_default();
            if !plugins.contains(&told.plugin.as_str()) {
                plugins.push(&told.plugin);
            }
        }
        for ((key, what), plugins) in &by_notification {
            println!("      {what:<6} {key:<24} → {}", plugins.join(", "));
        }
        self.heard = told.len();
    }

    pub(crate) fn tally(&self) -> Tally {
        let printed = self.host.printed();
        let is_write = |line: &&Value| {
            line["plugin"] == "mirror"
                && ["copied", "updated", "deleted"].iter().any(|word| line["message"] == *word)
        };
        Tally {
            notifications: printed.told().len(),
            writes: printed.events("guest-log").filter(is_write).count(),
        }
    }

    fn faults(&self) -> anyhow::Result<Vec<String>> {
        let told: Vec<Told> = self.host.printed().told();
        let mut histories = BTreeMap::new();
        for (resource, recorder) in &self.recorders {
            histories.insert(*resource, recorder.history()?);
        }
        Ok(verdict::faults(&histories, &told))
    }

    /// Ends the host as Ctrl-C does; it must end cleanly.
    pub(crate) async fn strike(self) -> anyhow::Result<()> {
        let (status, printed) = self.host.interrupt().await?;
        if !status.success() {
            bail!("oarlock dev ended with {status}:\n{}", printed.tail());
        }
        Ok(())
    }
}

/// Writes the file of a plugin that begins as one component and will be another.
fn changeling(folder: &Path) -> anyhow::Result<PathBuf> {
    std::fs::copy(built("hello-rust"), folder.join("changeling.wasm"))?;
    let file = folder.join("changeling.yaml");
    let yaml = "name: changeling\ncomponent: changeling.wasm\nserviceAccount: {namespace: default, name: changeling}\nlimits: {logLinesPerSecond: 10000}\n";
    std::fs::write(&file, yaml)?;
    Ok(file)
}

fn built(guest: &str) -> PathBuf {
    checkout().join("target/guests").join(format!("{guest}.wasm"))
}

async fn client(kubeconfig: &Path) -> anyhow::Result<Client> {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    Ok(Client::try_from(config)?)
}
