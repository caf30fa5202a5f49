//! The pause of notifications while a plugin is swapped.

use std::time::Duration;

use anyhow::Result;
use oarlock_measure::Control;
use serde_json::json;

use super::Bench;
use super::host::{PluginFile, pause};
use super::runs::{PODS, distinct, in_seconds};
use crate::bench::figures::Figures;
use crate::bench::plan::Server;
use crate::progress;

/// Events a second.
const RATE: u64 = 5_000;

/// The time between two swaps.
const INTERVAL: Duration = Duration::from_millis(400);

/// The time for which events flow for each swap: the interval, and the time until the new version serves.
const FLOW: Duration = Duration::from_millis(600);

/// The version before the first event.
const FIRST_VERSION: u64 = 1_000_000;

/// Measures the longest latency of a notification around each swap, at a steady rate of events: of a
/// stateless plugin, which takes over, and of one with state, which gets every object again.
pub(super) fn swaps(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let n_swaps: u64 = if bench.is_quick { 10 } else { 50 };
    let seconds = 4 + n_swaps * u64::try_from(FLOW.as_millis())? / 1_000;
    let server = bench.server(PODS, RATE * seconds)?;
    for (is_stateless, mode) in [(true, ""), (false, "_replay")] {
        let Pauses { without, mut pauses } = measure(bench, &server, n_swaps, is_stateless)?;
        let shown: Vec<_> = pauses.iter().map(|pause| format!("{pause:.1}")).collect();
        progress::say(format!("  the pauses in order, in ms: {}", shown.join(" ")));
        pauses.sort_by(f64::total_cmp);
        let rank = (pauses.len() * 99).div_ceil(100).saturating_sub(1);
        Bench::note(figures, &format!("swap_pause{mode}_p50_ms"), pauses[pauses.len() / 2]);
        Bench::note(figures, &format!("swap_pause{mode}_p99_ms"), pauses[rank]);
        Bench::note(figures, &format!("latency_longest_ms_without_swap{mode}"), without);
    }
    Ok(())
}

/// The longest latencies, in milliseconds.
struct Pauses {
    /// Before the first swap.
    without: f64,
    /// Around each swap.
    pauses: Vec<f64>,
}

fn measure(bench: &Bench, server: &Server, n_swaps: u64, is_stateless: bool) -> Result<Pauses> {
    let control = Control::new(server.url())?;
    let plan = control.prepare("pods", "json", None)?;
    let first = plan.last_resource_version.parse::<u64>().unwrap_or(FIRST_VERSION) - plan.events;
    let at_ms = in_seconds(20)?;
    let schedule = json!({"atMs": at_ms, "rate": RATE, "firstVersion": first});
    // Each swap loads the other one of two components, whose code is stored before the events.
    let guest = Bench::component("measured");
    let copy = |n| distinct(&bench.paths.folder, &guest, n);
    let components = [copy(2_000)?, copy(2_001)?];
    let version = |n: u64| {
        let config = json!({"stateless": is_stateless, "schedule": schedule, "version": n});
        PluginFile::new("swapped", &components[usize::from(n % 2 == 1)], config)
    };
    drop(bench.start(server, &[version(1)])?);
    let mut host = bench.start(server, &[version(0)])?;
    control.post(&format!("start?rate={RATE}&at={at_ms}"))?;
    pause(Duration::from_millis(at_ms.saturating_sub(in_seconds(0)?)) + Duration::from_secs(1));
    let longest = |host: &super::host::Host| -> Result<f64> {
        let samples = host.samples("oarlock_guest_latency_longest_ms")?;
        Ok(samples.values().copied().fold(0.0, f64::max))
    };
    let without = longest(&host)?;
    let mut pauses = Vec::new();
    for n in 1..=n_swaps {
        host.write(&version(n))?;
        host.wait_for("the swap", |line| line["event"] == "plugin-loaded")?;
        pause(INTERVAL);
        // The new instance has a histogram of its own, which begins with the notifications that waited.
        pauses.push(longest(&host)?);
    }
    Ok(Pauses { without, pauses })
}
