//! Builds the measured programs and their server.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;
use crate::{cargo, checkout, image, progress};

/// The paths of the programs, all built for release.
pub(crate) struct Programs {
    /// Our informer, and its transport alone.
    pub(crate) oarlock: PathBuf,
    /// The host.
    pub(crate) host: PathBuf,
    pub(crate) kube_rs: PathBuf,
    /// The synthetic API server, the corpus generator, and client-go.
    pub(crate) peers: PathBuf,
}

// === impl Programs ===

impl Programs {
    /// Builds all programs, kube-rs only if it is wanted.
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
        let kube_rs = target.join("bench/kube-rs/release/bench-kube-rs");
        Ok(Self { oarlock, host: target.join("release/oarlock"), kube_rs, peers })
    }

    /// Builds the synthetic API server with client-go, the transport alone, and the host, unless a binary of
    /// it is given.
    pub(crate) fn build_for_plugins(host: Option<PathBuf>) -> Result<Self> {
        let target = target()?;
        let peers = Self::build_server()?;
        let oarlock = Self::build_oarlock()?;
        let host = match host {
            Some(host) => host.canonicalize().with_context(|| format!("cannot find {}", host.display()))?,
            None => progress::step("the host, as in an image", image::release_binary)?,
        };
        let kube_rs = target.join("bench/kube-rs/release/bench-kube-rs");
        Ok(Self { oarlock, host, kube_rs, peers })
    }

    /// Builds the host and the writer of objects, unless binaries of them are in a folder that is given.
    pub(crate) fn build_for_languages(folder: Option<&Path>) -> Result<(PathBuf, PathBuf)> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => {
                progress::step("the host, for release", || {
                    cargo::build_some(&["oarlock", "oarlock-bench"], true)
                })?;
                target()?.join("release")
            }
        };
        Ok((folder.join("oarlock"), folder.join("oarlock-bench")))
    }

    /// Builds only our programs.
    pub(crate) fn build_oarlock() -> Result<PathBuf> {
        progress::step("our informer, for release", || cargo::build_some(&["oarlock-bench"], true))?;
        Ok(target()?.join("release/oarlock-bench"))
    }

    /// Builds only the synthetic API server.
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

/// Returns cargo's target directory, which contains this program.
fn target() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).context("xtask is not in a target directory")?;
    Ok(target.to_owned())
}
