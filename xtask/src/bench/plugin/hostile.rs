//! The latency of good plugins beside hostile ones.
//!
//! The program `oarlock-hostile` of `tests/` runs the host on one core, and the API server with the writer of
//! the changes on the other.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Bench;
use crate::bench::figures::Figures;
use crate::bench::process::{Core, last_line, pinned};
use crate::{cargo, checkout, guests, progress};

/// The guests that the program uses.
const GUESTS: [&str; 2] = ["hello-rust", "hostile"];

/// The time between two changes, in milliseconds: good plugins alone leave the host mostly idle.
const PACE_MS: u64 = 10;

/// Measures the p99 of good plugins without and beside 25 hostile ones.
pub(super) fn hostile(bench: &Bench, figures: &mut Figures) -> Result<()> {
    guests::build(&GUESTS.map(str::to_owned))?;
    progress::step("the hostile suite, for release", || cargo::build_some(&["oarlock-hostile"], true))?;
    let program = checkout::target()?.join("release/oarlock-hostile");
    let changes: u64 = if bench.is_quick { 1_000 } else { 3_000 };
    for _ in 0..bench.rounds {
        let mut command = pinned(&program, Core::Server);
        command.arg("--host").arg(&bench.paths.oarlock);
        command.args(["--changes", &changes.to_string(), "--pace-ms", &PACE_MS.to_string()]);
        if let Some(cpu) = Core::Subject.cpu() {
            command.args(["--host-cpus", cpu]);
        }
        let outcome = last_line(&mut command)?;
        for (metric, pointer) in [
            ("hostile_p99_ratio", "/hostile_p99_ratio"),
            ("latency_p50_ms_without_hostile", "/alone/p50_ms"),
            ("latency_p99_ms_without_hostile", "/alone/p99_ms"),
            ("latency_p50_ms_beside_hostile", "/beside/p50_ms"),
            ("latency_p99_ms_beside_hostile", "/beside/p99_ms"),
        ] {
            let value = outcome.pointer(pointer).and_then(Value::as_f64);
            let value = value.with_context(|| format!("oarlock-hostile printed no {pointer}"))?;
            Bench::note(figures, metric, value);
        }
    }
    Ok(())
}
