//! A real etcd and a real kube-apiserver on loopback, with RBAC on.
//!
//! `cargo xtask control-plane` builds them (or finds those that `KUBEBUILDER_ASSETS` names); `tests/control-plane` starts
//! them and says when they answer. There is no controller manager: deleted namespaces stay Terminating, owner references
//! are not collected, and new namespaces have no ServiceAccount "default".

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::watch;

/// A running control plane. It ends when this is dropped, and when this process ends in whatever way.
#[derive(Debug)]
pub struct ControlPlane {
    // Its standard input closing is what ends the launcher.
    launcher: Child,
    stdin: Mutex<ChildStdin>,
    said: watch::Receiver<Arc<Vec<Line>>>,
    ready: Ready,
}

/// Where it is and how to get in.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// `https://127.0.0.1:PORT`.
    pub url: String,
    /// The file with the certificate of the authority that signed the server's.
    pub ca: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The administrator's token.
    pub token: String,
    /// What the API server says of itself, such as `v1.36.2`.
    pub version: String,
    /// What kube-apiserver wrote.
    pub log: PathBuf,
}

/// What the launcher says, a line each.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready(Ready),
    Stopped,
    Error { message: String },
}

/// What `cargo xtask control-plane` prints.
#[derive(Debug, Deserialize)]
struct Programs {
    launcher: PathBuf,
    assets: PathBuf,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts one, building it first if this machine has none yet, and returns when it answers.
    ///
    /// # Errors
    ///
    /// When it cannot be built or ends before it answers; its last words are on standard error.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(None).await
    }

    /// Starts one that keeps etcd's data in a folder.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start`].
    pub async fn start_on(data: &Path) -> anyhow::Result<Self> {
        Self::start_with(Some(data)).await
    }

    async fn start_with(data: Option<&Path>) -> anyhow::Result<Self> {
        let Programs { launcher, assets } = tokio::task::spawn_blocking(programs).await??;
        let mut command = Command::new(&launcher);
        command.arg("--assets").arg(assets);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        let mut launcher = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", launcher.display()))?;
        let stdin = launcher.stdin.take().context("stdin is piped")?;
        let stdout = launcher.stdout.take().context("stdout is piped")?;
        let (sender, said) = watch::channel(Arc::new(Vec::new()));
        // A thread, for what is shared by tests must not belong to the runtime of one of them.
        std::thread::Builder::new().name("control-plane".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str(&line) {
                    sender.send_modify(|said| Arc::make_mut(said).push(line));
                }
            }
        })?;
        let mut said_first = said.clone();
        let first = next(&mut said_first, 0).await;
        match first.context("the control plane ended before it was ready: see above")? {
            Line::Ready(ready) => Ok(Self { launcher, stdin: Mutex::new(stdin), said, ready }),
            other => bail!("expected to hear that it is ready, heard {other:?}"),
        }
    }

    /// Returns where it is and how to get in.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Returns the administrator's kubeconfig.
    ///
    /// # Errors
    ///
    /// When the file is gone.
    pub fn kubeconfig(&self) -> anyhow::Result<Kubeconfig> {
        let path = &self.ready.kubeconfig;
        Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Returns the launcher's process id.
    pub fn id(&self) -> u32 {
        self.launcher.id()
    }

    /// Kills the API server and starts it again: same port, same etcd. Returns when it answers.
    ///
    /// # Errors
    ///
    /// When it does not come back.
    pub async fn restart_api_server(&self) -> anyhow::Result<()> {
        self.tell("restart").await
    }

    /// Kills the API server. etcd goes on.
    ///
    /// # Errors
    ///
    /// When the launcher is gone.
    pub async fn stop_api_server(&self) -> anyhow::Result<()> {
        self.tell("stop").await
    }

    /// Starts the API server that [`ControlPlane::stop_api_server`] killed. Returns when it answers.
    ///
    /// # Errors
    ///
    /// When it does not come back.
    pub async fn start_api_server(&self) -> anyhow::Result<()> {
        self.tell("start").await
    }

    async fn tell(&self, what: &str) -> anyhow::Result<()> {
        let mut said = self.said.clone();
        let n_said = said.borrow_and_update().len();
        writeln!(self.stdin.lock(), "{what}").context("the control plane is gone")?;
        match next(&mut said, n_said).await.context("the control plane ended")? {
            Line::Ready(_) | Line::Stopped => Ok(()),
            Line::Error { message } => bail!("{message}"),
        }
    }
}

/// Waits for the line at `index`; `None` when the launcher ends first.
async fn next(said: &mut watch::Receiver<Arc<Vec<Line>>>, index: usize) -> Option<Line> {
    let said = said.wait_for(|said| said.len() > index).await.ok()?;
    said.get(index).cloned()
}

/// Has xtask build what is not built yet; it knows where things are kept.
fn programs() -> anyhow::Result<Programs> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "xtask", "--", "control-plane"])
        .current_dir(crate::host_process::checkout())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo xtask control-plane")?;
    ensure!(output.status.success(), "cargo xtask control-plane: {}", output.status);
    serde_json::from_slice(&output.stdout).context("cargo xtask control-plane printed something else")
}
