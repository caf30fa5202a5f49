//! `cargo xtask tool`: tools of the ecosystem that tests use, built from their Go modules.
//!
//! Each tool has one version here. It is built once, and kept in the cache of all checkouts.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

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
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Tool {
    /// A client of registries for container images, and a registry in memory (`crane registry serve`).
    Crane,
    /// The renderer of charts.
    Helm,
    /// The renderer of kustomizations.
    Kustomize,
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
    pub(crate) const ALL: [Self; 3] = [Self::Crane, Self::Helm, Self::Kustomize];

    /// Returns the path of the program, after a build if the cache has none.
    pub(crate) fn build(self) -> Result<PathBuf> {
        let (name, package, version) = self.module();
        let folder = cache::entry(&format!("{name}-{version}"), |folder| {
            progress::step(&format!("{name} {version} (a few minutes, once)"), || {
                let mut go = Toolchain::find(TOOL_GO)?.go();
                go.env("CGO_ENABLED", "0").env("GOBIN", folder);
                command::run(
                    go.args(["install", "-trimpath", "-ldflags=-s -w"]).arg(format!("{package}@{version}")),
                )
            })
        })?;
        Ok(folder.join(name))
    }

    /// Returns the program's name, its package, and the version of the module.
    const fn module(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Crane => ("crane", "github.com/google/go-containerregistry/cmd/crane", "v0.22.1"),
            Self::Helm => ("helm", "helm.sh/helm/v4/cmd/helm", "v4.3.1"),
            Self::Kustomize => ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.8.1"),
        }
    }
}
