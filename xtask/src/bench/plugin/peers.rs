//! 100 controllers as processes of client-go, compared with 100 plugins in one host.

use anyhow::Result;
use oarlock_measure::Control;
use serde_json::json;

use super::Bench;
use super::runs::{PODS, measured};
use crate::bench::figures::Figures;
use crate::bench::plan::Record;
use crate::bench::process::{Core, last_line, pinned};
use crate::progress;

const CONTROLLERS: u64 = 100;

/// The events of this comparison. Each of the 100 processes of client-go handles all of them.
const EVENTS: u64 = 5_000;

/// Every controller caches and watches all Pods, and does nothing with an update.
///
/// 100 processes of client-go do not fit into the memory of most machines: one is measured, and counts 100
/// times. Its resident memory is reduced by the pages of its program, which the processes would share.
pub(super) fn controllers(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(PODS, EVENTS)?;
    let control = Control::new(server.url())?;
    for _ in 0..bench.rounds {
        let mut command = pinned(&bench.programs.peers, Core::Subject);
        command.args([
            "client-go",
            "--as",
            "typed-json",
            "--events",
            &EVENTS.to_string(),
            "--server",
            server.url(),
        ]);
        let record: Record = serde_json::from_value(last_line(&mut command)?)?;
        let program = std::fs::metadata(&bench.programs.peers)?.len();
        let peer_bytes =
            record.resident_after.saturating_sub(program.min(record.resident_before)) * CONTROLLERS;
        let peer_cpu = record.events_cpu_seconds * CONTROLLERS as f64;

        let plan = control.prepare("pods", "json", Some(EVENTS))?;
        let config = json!({});
        let files: Vec<_> =
            (0..CONTROLLERS).map(|n| measured(format!("controller-{n}"), config.clone())).collect();
        let mut host = bench.start(&server, &files)?;
        let synced_cpu = host.cpu()? + host.children_cpu()?;
        control.post("start")?;
        host.settle()?;
        let cpu = host.cpu()? + host.children_cpu()? - synced_cpu;
        let bytes = host.resident()?;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        progress::say(format!(
            "  {CONTROLLERS} controllers, {} events: one host {:.0} MiB, {:.1} CPU s; client-go {:.0} MiB, {peer_cpu:.1} CPU s",
            plan.events,
            mib(bytes),
            cpu.as_secs_f64(),
            mib(peer_bytes),
        ));
        for (subject, metric, value) in [
            ("oarlock", "mib_100_controllers", mib(bytes)),
            ("client-go-typed-json", "mib_100_controllers", mib(peer_bytes)),
            ("oarlock", "cpu_s_sync_100_controllers", synced_cpu.as_secs_f64()),
            (
                "client-go-typed-json",
                "cpu_s_sync_100_controllers",
                record.sync_cpu_seconds * CONTROLLERS as f64,
            ),
            ("oarlock", "cpu_s_events_100_controllers", cpu.as_secs_f64()),
            ("client-go-typed-json", "cpu_s_events_100_controllers", peer_cpu),
            ("oarlock", "memory_ratio_100_controllers", peer_bytes as f64 / bytes as f64),
            ("oarlock", "cpu_ratio_100_controllers", peer_cpu / cpu.as_secs_f64()),
        ] {
            figures.note(subject, metric, value);
        }
    }
    Ok(())
}
