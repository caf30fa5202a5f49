//! Memory and latency with 1, 10, 100 and 1,000 plugins that work.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use oarlock_measure::Control;
use serde_json::{Value, json};

use super::Bench;
use super::host::{Host, pause};
use super::runs::{PODS, in_seconds, measured};
use crate::bench::figures::Figures;

/// Events a second, of all Pods together.
const RATE: u64 = 500;

/// The label whose values divide the Pods among the plugins.
const LABEL: &str = "pod-template-hash";

/// The time for the start of so many plugins, in seconds. The events begin after it.
const START: [(usize, u64); 4] = [(1, 15), (10, 15), (100, 30), (1_000, 120)];

/// Each plugin watches a share of the Pods, reads the cache at each update, and writes after every twentieth.
pub(super) fn scale(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let seconds = if bench.is_quick { 10 } else { 20 };
    let server = bench.server(PODS, RATE * seconds)?;
    let control = Control::new(server.url())?;
    let plan = control.prepare("pods", "json", None)?;
    let values = label_values(&control)?;
    for (n, start_seconds) in START {
        control.post("reset")?;
        let before_first = plan.last_resource_version.parse::<u64>()? - plan.events;
        let at_ms = in_seconds(start_seconds)?;
        let schedule = json!({"atMs": at_ms, "rate": RATE, "firstVersion": before_first});
        let file = |idx: usize| {
            let own: Vec<_> =
                values.iter().skip(idx % values.len()).step_by(n.min(values.len())).cloned().collect();
            let selector = format!("{LABEL} in ({})", own.join(","));
            // A selector has at most 4 KiB.
            let selector = if n == 1 { String::new() } else { selector };
            let config =
                json!({"selector": selector, "work": "mirror", "stateless": true, "schedule": schedule});
            measured(format!("mirrors-{idx}"), config)
        };
        let files: Vec<_> = (0..n).map(file).collect();
        let mut host = bench.start(&server, &files)?;
        let start_cpu = host.cpu()?;
        let at_rest = host.resident()?;
        let (handled_before, _) = host.handled()?;
        control.post(&format!("start?rate={RATE}&at={at_ms}"))?;
        let left = at_ms.checked_sub(in_seconds(0)?);
        pause(Duration::from_millis(left.context("the plugins did not start in the time for it")?));
        let before = host.cpu()?;
        pause(Duration::from_millis(seconds * 1_000 + 1_000));
        let cpu = host.cpu()? - before;
        let handled = host.handled()?.0 - handled_before;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let us_per = |count: u64| cpu.as_secs_f64() * 1e6 / count as f64;
        for (metric, value) in [
            ("start_cpu_s", start_cpu.as_secs_f64()),
            ("peak_mib", mib(host.peak()?)),
            ("rss_mib_at_rest", mib(at_rest)),
            ("rss_mib", mib(host.resident()?)),
            ("latency_p50_ms", quantile(&host, 0.5)?),
            ("latency_p99_ms", quantile(&host, 0.99)?),
            ("cpu_us_per_event", us_per(plan.events)),
            ("cpu_us_per_notification", us_per(handled)),
        ] {
            Bench::note(figures, &format!("{metric}_{n}_plugins"), value);
        }
    }
    Ok(())
}

/// Returns the upper bound of the bucket with this quantile of all plugins' latencies.
fn quantile(host: &Host, q: f64) -> Result<f64> {
    let samples = host.samples("oarlock_guest_latency")?;
    let mut buckets: Vec<(f64, f64)> = samples
        .iter()
        .filter_map(|(labels, count)| {
            let (_, bound) = labels.split_once("up_to_ms=\"")?;
            Some((bound.split('"').next()?.parse().ok()?, *count))
        })
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = buckets.iter().map(|(_, count)| count).sum();
    let mut seen = 0.0;
    let reached = |(_, count): &&(f64, f64)| {
        seen += count;
        seen >= q * total
    };
    Ok(buckets.iter().find(reached).context("no plugin reported a latency")?.0)
}

/// Returns the values of the label that divides the Pods.
fn label_values(control: &Control) -> Result<Vec<String>> {
    let pods: Value = control.get("/api/v1/pods")?;
    let items = pods["items"].as_array().context("the list has items")?;
    let values: BTreeSet<_> =
        items.iter().filter_map(|pod| pod["metadata"]["labels"][LABEL].as_str().map(str::to_owned)).collect();
    Ok(values.into_iter().collect())
}
