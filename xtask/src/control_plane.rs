//! `cargo xtask control-plane`: builds the real etcd and kube-apiserver for tests.
//!
//! The launcher builds in a second, the servers in minutes; they are separate programs, so that a change of
//! the launcher does not rebuild the servers. If `KUBEBUILDER_ASSETS` is set, its servers are used.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::bench::process::Running;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;
use crate::toolchain::{cache, command};
use crate::{checkout, progress};

/// The version that the server reports; without it clients see version 0.0.
const VERSION: (&str, &str, &str) = ("1", "36", "v1.36.2");

/// Builds the real etcd and kube-apiserver for the tests, and prints their paths.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// The programs of the control plane.
pub(crate) struct ControlPlane {
    launcher: PathBuf,
    /// A folder with `etcd` and `kube-apiserver`.
    assets: PathBuf,
}

// === impl Args ===

impl Args {
    #[expect(clippy::print_stdout, reason = "the paths are the output of this command")]
    pub(crate) fn run(self) -> Result<()> {
        let Self {} = self;
        let ControlPlane { launcher, assets } = build()?;
        println!("{}", json!({"launcher": launcher, "assets": assets}));
        Ok(())
    }
}

/// Builds the programs that are not in the cache.
pub(crate) fn build() -> Result<ControlPlane> {
    let module = checkout::root().join("tests/control-plane");
    let launcher = cache::entry(&format!("control-plane-{}", digest(&module, &[&module])?), |folder| {
        progress::step("the control plane's launcher", || {
            go_build(&module, ".", &folder.join("control-plane"))
        })
    })?;
    let assets = match env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) => PathBuf::from(assets),
        None => servers(&module)?,
    };
    Ok(ControlPlane { launcher: launcher.join("control-plane"), assets })
}

/// Starts the control plane, and waits until it reports its address. Dropping the returned value ends it.
pub(crate) fn start() -> Result<Running> {
    let ControlPlane { launcher, assets } = build()?;
    progress::step("starting the real API server", || {
        Running::start(Command::new(launcher).arg("--assets").arg(assets))
    })
}

/// Builds one executable, which is etcd or kube-apiserver depending on its name.
fn servers(module: &Path) -> Result<PathBuf> {
    let digest = digest(module, &[&module.join("servers")])?;
    cache::entry(&format!("control-plane-servers-{digest}"), |folder| {
        progress::step("etcd and kube-apiserver (some minutes, once)", || {
            go_build(module, "./servers", &folder.join("servers"))?;
            for name in ["etcd", "kube-apiserver"] {
                symlink("servers", folder.join(name))?;
            }
            Ok(())
        })
    })
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

/// Returns a digest of the module's requirements and of the sources in these folders, so that a change
/// rebuilds them.
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
