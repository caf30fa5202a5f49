//! Measures against a real API server: memory at rest, and the latency from a write to a handler.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::build::Programs;
use super::figures::Figures;
use super::plan::Record;
use super::process::{Core, Running, last_line, pinned};
use crate::toolchain::command;
use crate::{control_plane, progress};

const PODS: u64 = 10_000;
const WRITES: usize = 1_000;
/// The number of readings of each figure.
const ROUNDS: usize = 3;

/// The time, in nanoseconds, at which each version was returned to its writer or received by a handler.
#[derive(Deserialize)]
struct Times {
    #[serde(alias = "returned", alias = "heard")]
    times: BTreeMap<String, i64>,
}

/// Starts the control plane, fills it, and takes the readings.
pub(crate) fn measure(programs: &Programs, only: &[String], figures: &mut Figures) -> Result<()> {
    let is_wanted = |subject: &str| only.is_empty() || only.iter().any(|it| it == subject);
    let all = ["oarlock", "kube-rs-typed", "client-go-typed-json", "client-go-typed-protobuf"];
    let subjects: Vec<_> = all.into_iter().filter(|subject| is_wanted(subject)).collect();
    if subjects.is_empty() {
        return Ok(());
    }
    let plane = control_plane::start()?;
    let kubeconfig =
        plane.first_line["kubeconfig"].as_str().context("the control plane did not report its kubeconfig")?;
    progress::step("filling the real API server", || {
        let mut load = Command::new(&programs.peers);
        load.args(["load", "--kubeconfig", kubeconfig, "--pods", &PODS.to_string()]);
        command::run(&mut load)
    })?;
    for _ in 0..ROUNDS {
        for subject in &subjects {
            let record: Record =
                serde_json::from_value(last_line(&mut syncing(programs, subject, kubeconfig))?)?;
            progress::say(format!("{subject}, real API server: {}", record.summary()));
            let bytes = record.resident_synced.saturating_sub(record.resident_before) as f64;
            figures.note(subject, "bytes_per_object_real_api_server", bytes / record.objects.max(1) as f64);
        }
        for subject in subjects.iter().filter(|subject| !subject.starts_with("client-go")) {
            let (median, high) = latency(programs, subject, kubeconfig)?;
            progress::say(format!("{subject}, write to handler: p50 {median:.2} ms, p99 {high:.2} ms"));
            figures.note(subject, "write_to_handler_p50_ms", median);
            figures.note(subject, "write_to_handler_p99_ms", high);
        }
    }
    Ok(())
}

fn syncing(programs: &Programs, subject: &str, kubeconfig: &str) -> Command {
    let (program, arguments): (&Path, &[&str]) = match subject {
        "oarlock" => (&programs.oarlock, &["real"]),
        "kube-rs-typed" => (&programs.kube_rs, &[]),
        "client-go-typed-json" => (&programs.peers, &["client-go", "--as", "typed-json"]),
        _ => (&programs.peers, &["client-go", "--as", "typed-protobuf"]),
    };
    let mut command = pinned(program, Core::Subject);
    command.args(arguments).args(["--kubeconfig", kubeconfig, "--objects", &PODS.to_string()]);
    command
}

/// Returns p50 and p99 of the time between a write's response and the handler, in milliseconds. An event that
/// arrives before the response counts as 0.
fn latency(programs: &Programs, subject: &str, kubeconfig: &str) -> Result<(f64, f64)> {
    let writes = WRITES.to_string();
    let mut follow = if subject == "oarlock" {
        let mut follow = Command::new(&programs.oarlock);
        follow.args(["follow", "--writes", &writes]);
        follow
    } else {
        let mut follow = Command::new(&programs.kube_rs);
        follow.args(["--follow", &writes]);
        follow
    };
    let mut following = Running::start(follow.args(["--kubeconfig", kubeconfig]))?;
    let mut write = Command::new(&programs.peers);
    write.args(["write", "--kubeconfig", kubeconfig, "--writes", &writes, "--rate", "100"]);
    let returned: Times = serde_json::from_value(last_line(&mut write)?)?;
    let heard: Times = serde_json::from_value(following.next_line()?)?;
    let mut waits: Vec<_> = returned
        .times
        .iter()
        .filter_map(|(version, returned)| heard.times.get(version).map(|heard| (heard - returned).max(0)))
        .collect();
    waits.sort_unstable();
    let at = |part: f64| {
        let place = (waits.len() as f64 * part) as usize;
        waits.get(place.min(waits.len().saturating_sub(1))).map_or(f64::NAN, |wait| *wait as f64 / 1e6)
    };
    Ok((at(0.5), at(0.99)))
}
