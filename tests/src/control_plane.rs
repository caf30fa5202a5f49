//! The real etcd and kube-apiserver for tests: those that `KUBEBUILDER_ASSETS` names, or those that
//! `cargo xtask control-plane` builds.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use oarlock_control_plane::{Assets, Config, ControlPlane, Launcher};

use crate::host_process::{binary, checkout};

/// Starts a control plane, and builds its executables first if this machine has none. Returns when it is
/// ready. Skips the test if Go, in which they are written, is missing.
///
/// # Errors
///
/// When it cannot be built, or ends before it is ready.
pub async fn start() -> anyhow::Result<ControlPlane> {
    oarlock_built_guests::needs("control-plane");
    let assets = tokio::task::spawn_blocking(assets).await??;
    let launcher = Launcher { program: binary("oarlock")?, arguments: vec!["launch-server".into()] };
    let config = Config { assets: Assets::in_folder(&assets)?, launcher, port: 0 };
    Ok(ControlPlane::start(config, |_| ()).await?)
}

/// Returns the folder with the executables. xtask builds what is missing, and knows where.
fn assets() -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["xtask", "control-plane", "--path"])
        .current_dir(checkout())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo xtask control-plane")?;
    ensure!(output.status.success(), "cargo xtask control-plane: {}", output.status);
    let path = String::from_utf8(output.stdout).context("cargo xtask control-plane printed no text")?;
    Ok(path.trim_end_matches('\n').into())
}
