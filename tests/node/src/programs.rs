//! The executables of a node, each built or downloaded once, into the cache that all checkouts share.
//!
//! Kubernetes, etcd and kubectl are one executable, built from the module `kubernetes/` beside this crate. It
//! is not the one of `tests/control-plane`: that one has only etcd and kube-apiserver, and most tests need no
//! more. containerd is built from its own module; runc and the CNI plugins are Debian's. crane, which tests
//! use without a node too, is what `cargo xtask tool` builds.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarlock_guest_build::progress;
use oarlock_guest_build::toolchain::go::Toolchain;
use oarlock_guest_build::toolchain::versions::SERVER_GO;
use oarlock_guest_build::toolchain::{cache, command, debian};

use crate::kubernetes;

/// The names by which the executable of Kubernetes is called.
const KUBERNETES: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];

/// containerd, with the parts that need a C library left out.
const CONTAINERD: GoTools = GoTools {
    name: "containerd",
    version: "v2.3.7",
    packages: &[
        "github.com/containerd/containerd/v2/cmd/containerd",
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        "github.com/containerd/containerd/v2/cmd/ctr",
    ],
    tags: "no_btrfs no_devmapper no_zfs no_tracing",
};

/// The Debian packages, which are downloaded and unpacked, not installed.
const DEBIAN: [&str; 2] = ["runc", "containernetworking-plugins"];

/// The Debian package with the library that gives a process another clock.
const CLOCK: &str = "libfaketime";

/// The executables.
#[derive(Clone, Debug)]
pub struct Programs {
    kubernetes: PathBuf,
    containerd: PathBuf,
    crane: PathBuf,
    debian: PathBuf,
}

/// Programs that `go install` builds.
struct GoTools {
    name: &'static str,
    version: &'static str,
    packages: &'static [&'static str],
    tags: &'static str,
}

// === impl Programs ===

impl Programs {
    /// Builds and downloads what the cache does not have. `crane` is the path of that program.
    pub(crate) fn build(crane: &Path) -> Result<Self> {
        let module = module();
        let name = kubernetes_entry(&module)?;
        let kubernetes = cache::entry(&name, |folder| {
            progress::step("Kubernetes for a node (up to 10 minutes, once)", || {
                kubernetes::build(&module, ".", &folder.join("kubernetes"))?;
                for name in KUBERNETES {
                    symlink("kubernetes", folder.join(name))?;
                }
                kubernetes::build(&module, "./init", &folder.join("init"))?;
                std::fs::hard_link(folder.join("init"), folder.join("pause"))
                    .context("cannot link pause to init")
            })
        })?;
        let containerd = CONTAINERD.build()?;
        let debian = cache::entry(&debian_entry(), |folder| {
            progress::step(&format!("downloading {}", DEBIAN.join(" and ")), || {
                debian::unpack_with_dependencies(&DEBIAN.map(str::to_owned), folder)
            })
        })?;
        let crane = crane.parent().context("crane is in a folder")?.to_owned();
        Ok(Self { kubernetes, containerd, crane, debian })
    }

    /// Returns whether the cache has everything.
    pub(crate) fn are_built() -> Result<bool> {
        for name in [kubernetes_entry(&module())?, CONTAINERD.entry(), debian_entry()] {
            if cache::existing_entry(&name)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the folder with kubectl, which also works outside of the node.
    #[must_use]
    pub fn kubectl(&self) -> PathBuf {
        self.kubernetes.join("kubectl")
    }

    pub(crate) fn init(&self) -> PathBuf {
        self.kubernetes.join("init")
    }

    pub(crate) fn pause(&self) -> PathBuf {
        self.kubernetes.join("pause")
    }

    pub(crate) fn runc(&self) -> PathBuf {
        self.debian.join("usr/sbin/runc")
    }

    pub(crate) fn cni(&self) -> PathBuf {
        self.debian.join("usr/lib/cni")
    }

    /// Returns the folders with the libraries of the Debian packages that the machine lacks.
    pub(crate) fn libraries(&self) -> Result<String> {
        debian::library_folders(&self.debian)
    }

    /// Returns the value of PATH in the node: these executables first, then the machine's.
    pub(crate) fn path(&self) -> String {
        let own =
            [&self.kubernetes, &self.containerd, &self.crane].map(|folder| folder.display().to_string());
        format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", own.join(":"))
    }
}

// === impl GoTools ===

impl GoTools {
    fn entry(&self) -> String {
        format!("node-{}-{}", self.name, self.version)
    }

    fn build(&self) -> Result<PathBuf> {
        let Self { name, version, packages, tags } = self;
        cache::entry(&self.entry(), |folder| {
            progress::step(&format!("{name} (some minutes, once)"), || {
                let mut go = Toolchain::find(SERVER_GO)?.go();
                go.current_dir(folder).env("CGO_ENABLED", "0").env("GOBIN", folder);
                go.args(["install", "-trimpath", "-ldflags", "-s -w", "-tags", tags]);
                go.args(packages.iter().map(|package| format!("{package}@{version}")));
                command::run(&mut go)
            })
        })
    }
}

/// Returns the library that, preloaded into a program, gives it the clock of `FAKETIME_TIMESTAMP_FILE`.
/// Downloads it if the cache does not have it.
///
/// # Errors
///
/// When the download fails.
pub fn clock_library() -> Result<PathBuf> {
    let entry = cache::entry(&format!("node-debian-{CLOCK}"), |folder| {
        progress::step(&format!("downloading {CLOCK}"), || {
            debian::unpack_with_dependencies(&[CLOCK.to_owned()], folder)
        })
    })?;
    let folders = debian::library_folders(&entry)?;
    let mut libraries = folders.split(':').map(|folder| Path::new(folder).join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.is_file()).with_context(|| format!("{CLOCK} has no library"))
}

fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes")
}

fn kubernetes_entry(module: &Path) -> Result<String> {
    let digest = kubernetes::digest(module, &[module.to_owned(), module.join("init")])?;
    Ok(format!("node-kubernetes-{digest}"))
}

fn debian_entry() -> String {
    format!("node-debian-{}", DEBIAN.join("-"))
}
