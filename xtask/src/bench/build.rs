//! The programs that are measured, and what they are measured against.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;
use crate::{cargo, checkout, progress};

/// Where they are, built for release.
pub(crate) struct Programs {
    /// Ours, and the transport alone.
    pub(crate) oarlock: PathBuf,
    pub(crate) kube_rs: PathBuf,
    /// The synthetic API server, the corpus, client-go.
    pub(crate) peers: PathBuf,
}

// === impl Programs ===

impl Programs {
    /// Builds all of them, kube-rs only if it is wanted.
    pub(crate) fn build(wants_kube_rs: bool) -> Result<Self> {
        let target = target()?;
        let peers = target.join("bench/bench-peers");
        progress::step("the synthetic API server and client-go", || build_peers(&peers))?;
        if wants_kube_rs {
            progress::step("kube-rs, for release", || {
                let mut cargo = cargo::cargo("build");
                cargo.current_dir(checkout::root().join("bench/kube-rs")).args(["--release", "--locked"]);
                cargo::run(cargo.env("CARGO_TARGET_DIR", target.join("bench/kube-rs")))
            })?;
        }
        let oarlock = Self::build_oarlock()?;
        Ok(Self { oarlock, kube_rs: target.join("bench/kube-rs/release/bench-kube-rs"), peers })
    }

    /// Builds our own alone.
    pub(crate) fn build_oarlock() -> Result<PathBuf> {
        progress::step("our informer, for release", || {
            cargo::run(cargo::cargo("build").args(["--release", "--package", "oarlock-bench"]))
        })?;
        Ok(target()?.join("release/oarlock-bench"))
    }

    /// Builds the synthetic API server alone.
    pub(crate) fn build_server() -> Result<PathBuf> {
        let peers = target()?.join("bench/bench-peers");
        progress::step("the synthetic API server", || build_peers(&peers))?;
        Ok(peers)
    }
}

fn build_peers(program: &Path) -> Result<()> {
    let mut go = Toolchain::find(SERVER_GO)?.go();
    go.current_dir(checkout::root().join("bench/peers")).env("CGO_ENABLED", "0");
    command::run(go.args(["build", "-trimpath", "-o"]).arg(program).arg("."))
}

/// Cargo's target directory, which this program stands in.
fn target() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).context("xtask is not in a target directory")?;
    Ok(target.to_owned())
}
