//! `cargo xtask demo`: builds the host and the guests, and runs the demo (`tests/src/bin/oarlock-demo`).

mod cluster;

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};
use oarlock_built_guests::OF_THE_DEMO;

use crate::{cargo, checkout, guests, progress};

/// Runs real plugins on real events, and checks that no event was lost.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Exits after the demo instead of running until Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Installs the host in a Kubernetes cluster of one real node, applies a Plugin, and kills the leader.
    /// Needs root.
    #[arg(long, conflicts_with = "fault_swallow")]
    cluster: bool,
    /// Makes the host drop the n-th notification; the demo must detect this.
    #[arg(long, hide = true, value_name = "N")]
    fault_swallow: Option<u64>,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { once, cluster, fault_swallow } = self;
        if cluster {
            return cluster::run(once);
        }
        let (guests, host) = thread::scope(|scope| {
            let guests = scope.spawn(|| guests::build(&OF_THE_DEMO.map(String::from)));
            let host = progress::step("the host (some minutes on a fresh checkout)", cargo::build_programs);
            (guests.join(), host)
        });
        host?;
        guests.map_err(|_| anyhow::anyhow!("the build of the guests panicked"))??;
        let mut demo = Command::new(checkout::program("oarlock-demo")?);
        if once {
            demo.arg("--once");
        }
        if let Some(nth) = fault_swallow {
            demo.args(["--fault-swallow", &nth.to_string()]);
        }
        // The demo replaces this process: it handles Ctrl-C and sets the exit code.
        Err(demo.exec()).context("cannot start the demo")
    }
}
