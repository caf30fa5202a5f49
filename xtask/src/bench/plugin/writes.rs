//! The rate of slow writes of a plugin with many lanes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_measure::Control;
use serde_json::{Value, json};

use super::Bench;
use super::host::pause;
use super::runs::{PODS, measured};
use crate::bench::figures::Figures;
use crate::bench::plan::Server;

/// The lanes of the plugin, and the time that the server takes for a write.
const LANES: u64 = 16;
const WRITE: &str = "5ms";

/// Events a second: more than the lanes can write.
const RATE: u64 = 5_000;

/// Measures the writes per second of a stateless plugin that writes once per event.
pub(super) fn writes(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let seconds = if bench.is_quick { 3 } else { 10 };
    let (pods, events) = (PODS.to_string(), (RATE * (seconds + 3)).to_string());
    let arguments = ["--pods", &pods, "--events", &events, "--write-delay", WRITE];
    let server = Server::start(&bench.programs, &arguments.map(str::to_owned))?;
    let control = Control::new(server.url())?;
    let file = measured("writes", json!({"work": "write", "stateless": true}))
        .with("concurrency", LANES.into())
        .with("limits", json!({"requestsPerSecond": 10_000}));
    let written = || -> Result<f64> {
        let page: Value = control.get("/control/writes")?;
        page["writes"].as_f64().context("the server counts no writes")
    };
    for _ in 0..bench.rounds {
        control.prepare("pods", "json", None)?;
        let mut host = bench.start(&server, std::slice::from_ref(&file))?;
        control.post(&format!("start?rate={RATE}"))?;
        pause(Duration::from_secs(1));
        let (began, cpu, before) = (Instant::now(), host.cpu()?, written()?);
        pause(Duration::from_secs(seconds));
        let (took, cpu, writes) = (began.elapsed(), host.cpu()? - cpu, written()? - before);
        ensure!(writes > 0.0, "the plugin writes nothing");
        Bench::note(figures, "writes_per_second_16_lanes", writes / took.as_secs_f64());
        Bench::note(figures, "cpu_us_per_write_16_lanes", cpu.as_secs_f64() * 1e6 / writes);
    }
    Ok(())
}
