//! `cargo xtask tool`: tools of the ecosystem that tests use, from their Go modules.
//!
//! Each tool has one version here. It is built once, and kept in the cache of all checkouts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::Value;

use crate::progress;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::TOOL_GO;
use crate::toolchain::{cache, command};

/// Builds a tool that tests use, and prints its path.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The tool.
    #[arg(value_enum, value_name = "NAME")]
    tool: Tool,
}

/// A program of a Go module.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Tool {
    /// A client of registries for container images, and a registry in memory (`crane registry serve`).
    Crane,
    /// The renderer of charts.
    Helm,
    /// The renderer of kustomizations.
    Kustomize,
    /// No program, but a folder: the CustomResourceDefinitions of the Prometheus operator.
    PrometheusOperator,
}

// === impl Args ===

impl Args {
    #[expect(clippy::print_stdout, reason = "the command's output")]
    pub(crate) fn run(self) -> Result<()> {
        let Self { tool } = self;
        println!("{}", tool.build()?.display());
        Ok(())
    }
}

// === impl Tool ===

impl Tool {
    pub(crate) const ALL: [Self; 4] = [Self::Crane, Self::Helm, Self::Kustomize, Self::PrometheusOperator];

    /// Returns the path of the program, after a build if the cache has none.
    pub(crate) fn build(self) -> Result<PathBuf> {
        let (name, package, version) = self.module();
        if self == Self::PrometheusOperator {
            return cache::entry(&format!("{name}-{version}"), |folder| {
                progress::step(&format!("the definitions of {name} {version}"), || {
                    copy_definitions(package, version, folder)
                })
            });
        }
        let folder = cache::entry(&format!("{name}-{version}"), |folder| {
            progress::step(&format!("{name} {version} (a few minutes, once)"), || {
                let mut go = Toolchain::find(TOOL_GO)?.go();
                build_fast(&mut go, "install").env("GOBIN", folder);
                command::run(go.arg("-ldflags=-s -w").arg(format!("{package}@{version}")))
            })
        })?;
        Ok(folder.join(name))
    }

    /// Returns the program's name, its package, and the version of the module.
    const fn module(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Crane => ("crane", "github.com/google/go-containerregistry/cmd/crane", "v0.22.1"),
            // It has the version of client-go that `guest-sdk/go-controller-runtime` has: see `build_fast`.
            Self::Helm => ("helm", "helm.sh/helm/v4/cmd/helm", "v4.3.0"),
            Self::Kustomize => ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.8.1"),
            Self::PrometheusOperator => {
                let module = "github.com/prometheus-operator/prometheus-operator";
                ("prometheus-operator", module, "v0.85.0")
            }
        }
    }
}

/// Adds a subcommand that compiles without optimisation: a test runs a program for a moment, and its build
/// takes minutes. Go compiles a package once for all builds with the same options.
pub(crate) fn build_fast<'a>(go: &'a mut Command, subcommand: &str) -> &'a mut Command {
    go.env("CGO_ENABLED", "0").args([subcommand, "-trimpath", "-gcflags=all=-N -l"])
}

/// Downloads a module, and copies its CustomResourceDefinitions.
fn copy_definitions(module: &str, version: &str, to: &Path) -> Result<()> {
    let mut go = Toolchain::find(TOOL_GO)?.go();
    let module = format!("{module}@{version}");
    // In a folder without a module of its own.
    go.current_dir(to).args(["mod", "download", "-json", &module]);
    let downloaded: Value = serde_json::from_str(&command::output(&mut go)?)?;
    let folder = downloaded["Dir"].as_str().context("go mod download names no folder")?;
    for file in fs::read_dir(Path::new(folder).join("example/prometheus-operator-crd"))? {
        let file = file?;
        fs::write(to.join(file.file_name()), fs::read(file.path())?)?;
    }
    Ok(())
}
