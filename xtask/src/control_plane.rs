//! `cargo xtask control-plane`: builds the real etcd and kube-apiserver for tests, benchmarks and `oarlock
//! dev --real`.
//!
//! The build takes minutes and is cached. A folder that `KUBEBUILDER_ASSETS` names is used instead, if it is
//! set.

use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use oarlock_node::kubernetes;

use crate::bench::process::Running;
use crate::toolchain::cache;
use crate::{cargo, checkout, progress};

/// Builds the real etcd and kube-apiserver, and prints the command that names their folder.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Prints the folder alone, instead of an `export` command.
    #[arg(long)]
    path: bool,
}

// === impl Args ===

impl Args {
    #[expect(clippy::print_stdout, reason = "the command's output")]
    pub(crate) fn run(self) -> Result<()> {
        let Self { path } = self;
        let assets = build()?;
        if path {
            println!("{}", assets.display());
        } else {
            println!("export KUBEBUILDER_ASSETS='{}'", assets.display());
        }
        Ok(())
    }
}

/// Returns the folder with `etcd` and `kube-apiserver`, after a build if the cache has none.
pub(crate) fn build() -> Result<PathBuf> {
    match env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) => Ok(PathBuf::from(assets)),
        None => servers(&checkout::root().join("tests/control-plane")),
    }
}

/// Returns whether nothing has to be built.
pub(crate) fn is_built() -> Result<bool> {
    let entry = cache::existing_entry(&entry_name(&checkout::root().join("tests/control-plane"))?)?;
    Ok(env::var_os("KUBEBUILDER_ASSETS").is_some() || entry.is_some())
}

/// Starts the servers. They are ready when this returns, and end when the returned value is dropped.
pub(crate) fn start() -> Result<Running> {
    let assets = build()?;
    let program = env::current_exe()?;
    let target = program.parent().and_then(Path::parent).context("xtask is not in a target directory")?;
    progress::step("the program that starts the real API server", || cargo::build_example("control_plane"))?;
    progress::step("starting the real API server", || {
        Running::start(Command::new(target.join("debug/examples/control_plane")).arg(assets))
    })
}

/// Builds one executable, which is etcd or kube-apiserver, depending on the name by which it is called.
fn servers(module: &Path) -> Result<PathBuf> {
    cache::entry(&entry_name(module)?, |folder| {
        progress::step("etcd and kube-apiserver (some minutes, once)", || {
            kubernetes::build(module, "./servers", &folder.join("servers"))?;
            for name in ["etcd", "kube-apiserver"] {
                symlink("servers", folder.join(name))?;
            }
            Ok(())
        })
    })
}

/// Returns the name of the servers in the cache.
fn entry_name(module: &Path) -> Result<String> {
    Ok(format!("control-plane-servers-{}", kubernetes::digest(module, &[module.join("servers")])?))
}
