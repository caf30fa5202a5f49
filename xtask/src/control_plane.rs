//! `cargo xtask control-plane`: builds the real etcd and kube-apiserver for tests, benchmarks and `oarlock
//! dev --real`.
//!
//! The build takes minutes and is cached. A folder that `KUBEBUILDER_ASSETS` names is used instead, if it is
//! set.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::bench::process::Running;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;
use crate::toolchain::{cache, command};
use crate::{cargo, checkout, progress};

/// The version that the API server reports; without one, clients take it for a 0.0.
const VERSION: (&str, &str, &str) = ("1", "36", "v1.36.2");

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
            go_build(module, "./servers", &folder.join("servers"))?;
            for name in ["etcd", "kube-apiserver"] {
                symlink("servers", folder.join(name))?;
            }
            Ok(())
        })
    })
}

/// Returns the name of the servers in the cache.
fn entry_name(module: &Path) -> Result<String> {
    Ok(format!("control-plane-servers-{}", digest(module, &[&module.join("servers")])?))
}

fn go_build(module: &Path, package: &str, program: &Path) -> Result<()> {
    let (major, minor, version) = VERSION;
    let variable = "k8s.io/component-base/version";
    let ldflags = format!(
        "-s -w -X {variable}.gitVersion={version} -X {variable}.gitMajor={major} -X {variable}.gitMinor={minor}"
    );
    let mut go = Toolchain::find(SERVER_GO)?.go();
    go.current_dir(module).env("CGO_ENABLED", "0").args(["build", "-trimpath", "-ldflags", &ldflags, "-o"]);
    command::run(go.arg(program).arg(package))
}

/// Returns a digest of the sources in some folders of a module, and of its requirements.
fn digest(module: &Path, folders: &[&Path]) -> Result<String> {
    let mut files = vec![module.join("go.mod"), module.join("go.sum")];
    for folder in folders {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "go") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.strip_prefix(module)?.to_string_lossy().as_bytes());
        digest.update(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    digest.update(VERSION.2);
    Ok(digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
