//! `cargo xtask monitoring-check`: builds the program that checks alert rules and dashboards with the parsers
//! of Prometheus, for a test.

use std::path::PathBuf;

use anyhow::Result;
use oarlock_node::kubernetes;

use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;
use crate::toolchain::{cache, command};
use crate::{checkout, progress};

/// Builds the program, and prints its path.
#[expect(clippy::print_stdout, reason = "the command's output")]
pub(crate) fn run() -> Result<()> {
    println!("{}", build()?.display());
    Ok(())
}

/// Returns the path of the program, after a build if the cache has none.
fn build() -> Result<PathBuf> {
    let module = checkout::root().join("tests/monitoring");
    let name = format!("monitoring-check-{}", kubernetes::digest(&module, std::slice::from_ref(&module))?);
    let folder = cache::entry(&name, |folder| {
        progress::step("the check of alert rules and dashboards", || {
            let mut go = Toolchain::find(SERVER_GO)?.go();
            go.current_dir(&module).env("CGO_ENABLED", "0");
            go.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]);
            command::run(go.arg(folder.join("monitoring")).arg("."))
        })
    })?;
    Ok(folder.join("monitoring"))
}
