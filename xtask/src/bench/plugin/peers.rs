//! What else handles the same events in the same run: shared informers of client-go, and the transport alone.

use std::path::Path;

use anyhow::{Context, Result};
use oarlock_measure::Control;
use serde_json::json;

use super::Bench;
use super::runs::{PODS, measured};
use crate::bench::figures::Figures;
use crate::bench::plan::{Record, Server};
use crate::bench::process::{Core, last_line, pinned};
use crate::progress;

const CONTROLLERS: u64 = 100;

/// The events of this comparison. Each of the 100 processes of client-go handles all of them.
const EVENTS: u64 = 5_000;

/// The names of both in the figures.
pub(super) const CLIENT_GO: &str = "client-go-typed-json";
pub(super) const TRANSPORT: &str = "transport";

/// Runs a shared informer of client-go with so many handlers, which handle the events: with a rate of 0 as
/// fast as the process reads them, else so many a second.
fn client_go(bench: &Bench, server: &Server, handlers: u64, events: u64, rate: u64) -> Result<Record> {
    let more = ["--as", "typed-json", "--handlers", &handlers.to_string()];
    run(&bench.programs.peers, "client-go", &more, server, events, rate)
}

/// Runs a program that reads the events and drops them.
fn transport(bench: &Bench, server: &Server, events: u64, rate: u64) -> Result<Record> {
    run(&bench.programs.oarlock, "transport", &[], server, events, rate)
}

fn run(
    program: &Path,
    subject: &str,
    more: &[&str],
    server: &Server,
    events: u64,
    rate: u64,
) -> Result<Record> {
    let mut command = pinned(program, Core::Subject);
    command.arg(subject).args(more).args(["--server", server.url()]);
    command.args(["--events", &events.to_string(), "--rate", &rate.to_string()]);
    let line = last_line(&mut command).context(subject.to_owned())?;
    serde_json::from_value(line).context(subject.to_owned())
}

fn us_per_event(record: &Record) -> f64 {
    record.events_cpu_seconds * 1e6 / record.events as f64
}

/// Measures what the peers take for events that come as fast as they read them.
pub(super) fn path(bench: &Bench, server: &Server, events: u64, figures: &mut Figures) -> Result<()> {
    // client-go takes some thirty times as long.
    let few = events / 10;
    let one = client_go(bench, server, 1, few, 0)?;
    let eleven = client_go(bench, server, 11, few, 0)?;
    let transport = transport(bench, server, events, 0)?;
    for (subject, metric, value) in [
        (CLIENT_GO, "whole_path_events_per_cpu_second", 1e6 / us_per_event(&one)),
        (CLIENT_GO, "further_plugin_us_per_event", (us_per_event(&eleven) - us_per_event(&one)) / 10.0),
        (TRANSPORT, "unmatched_events_per_cpu_second", 1e6 / us_per_event(&transport)),
    ] {
        note(figures, subject, metric, value);
    }
    Ok(())
}

/// Measures what the peers take for events at a steady rate.
pub(super) fn paced(
    bench: &Bench,
    server: &Server,
    events: u64,
    rate: u64,
    figures: &mut Figures,
) -> Result<()> {
    for n in [1, 10] {
        let record = client_go(bench, server, n, events, rate)?;
        note(figures, CLIENT_GO, &format!("paced_event_us_{n}_plugins"), us_per_event(&record));
    }
    let record = transport(bench, server, events, rate)?;
    note(figures, TRANSPORT, "paced_event_us_0_plugins", us_per_event(&record));
    Ok(())
}

fn note(figures: &mut Figures, subject: &str, metric: &str, value: f64) {
    progress::say(format!("  {subject}: {metric}: {value:.3}"));
    figures.note(subject, metric, value);
}

/// 100 controllers as processes of client-go, compared with 100 plugins in one host.
///
/// Every controller caches and watches all Pods, and does nothing with an update.
///
/// 100 processes of client-go do not fit into the memory of most machines: one is measured, and counts 100
/// times. Its resident memory is reduced by the pages of its program, which the processes would share.
pub(super) fn controllers(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(PODS, EVENTS)?;
    let control = Control::new(server.url())?;
    for _ in 0..bench.rounds {
        let record = client_go(bench, &server, 1, EVENTS, 0)?;
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
            (CLIENT_GO, "mib_100_controllers", mib(peer_bytes)),
            ("oarlock", "cpu_s_sync_100_controllers", synced_cpu.as_secs_f64()),
            (CLIENT_GO, "cpu_s_sync_100_controllers", record.sync_cpu_seconds * CONTROLLERS as f64),
            ("oarlock", "cpu_s_events_100_controllers", cpu.as_secs_f64()),
            (CLIENT_GO, "cpu_s_events_100_controllers", peer_cpu),
            ("oarlock", "memory_ratio_100_controllers", peer_bytes as f64 / bytes as f64),
            ("oarlock", "cpu_ratio_100_controllers", peer_cpu / cpu.as_secs_f64()),
        ] {
            figures.note(subject, metric, value);
        }
    }
    Ok(())
}
