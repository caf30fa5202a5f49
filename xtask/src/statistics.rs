//! `cargo xtask statistics`: makes the zstd statistics with which every dictionary of the informer begins.
//!
//! The Pods of the benchmark are the samples: `bench-peers corpus` makes the same ones each time.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bench::build::Programs;
use crate::{cargo, checkout, progress};

const FILE: &str = "host/informer/src/object/dictionary/statistics.bin";

/// Makes the zstd statistics with which every dictionary of the informer begins.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Writes nothing, and fails if the file is out of date.
    #[arg(long)]
    check: bool,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { check } = self;
        let peers = Programs::build_server()?;
        let target = peers.with_file_name("statistics");
        progress::step("the trainer of statistics", || {
            let mut cargo = cargo::cargo("build");
            cargo.current_dir(checkout::root().join("bench/statistics")).args(["--release", "--locked"]);
            cargo::run(cargo.env("CARGO_TARGET_DIR", &target))
        })?;
        let mut corpus = Command::new(&peers)
            .arg("corpus")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run the generator of Pods")?;
        let pods = corpus.stdout.take().context("stdout is piped")?;
        let mut trainer = Command::new(target.join("release/bench-statistics"));
        trainer.arg(FILE).args(check.then_some("--check")).current_dir(checkout::root()).stdin(pods);
        let status = trainer.status().context("cannot run the trainer")?;
        ensure!(corpus.wait()?.success(), "the generator of Pods failed");
        ensure!(status.success(), "the trainer failed");
        Ok(())
    }
}
