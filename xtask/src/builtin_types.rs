//! `cargo xtask builtin-types`: generates the table of Kubernetes' built-in types for the embedded API
//! server.

use anyhow::{Context, Result};

use crate::checkout;
use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;

/// Generates the table of built-in types for the embedded API server.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Writes nothing, and fails if the table is out of date.
    #[arg(long)]
    check: bool,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { check } = self;
        let toolchain = Toolchain::find(SERVER_GO)?;
        let go = || {
            let mut go = toolchain.go();
            go.current_dir(checkout::root().join("tests/control-plane")).env("CGO_ENABLED", "0");
            go
        };
        command::run(go().args(["mod", "download", "k8s.io/kubernetes"]))?;
        let kubernetes = command::output(go().args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]))
            .context("cannot find the module k8s.io/kubernetes")?;
        let mut generate = go();
        generate.args(["run", "-trimpath", "./schema", "-kubernetes", kubernetes.trim()]);
        if check {
            generate.arg("-check");
        }
        command::run(generate.arg(checkout::root().join("host/dev-cluster/src/schema/builtin.txt")))
    }
}
