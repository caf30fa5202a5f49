//! `cargo xtask soak cluster`: faults of the host and of the cluster, many times each, on a real node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{progress, test};

/// Injects each fault many times while objects change, checks that nothing was lost, and records the times.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often each fault is injected.
    #[arg(long, default_value_t = 10)]
    count: u64,
    /// Injects only the faults whose name contains this text, such as `leader` or `etcd`.
    #[arg(value_name = "FAULT")]
    fault: Option<String>,
}

/// The times of one fault, in seconds.
#[derive(Default)]
struct Times {
    /// From the fault until an object that was created after it had a copy.
    gaps: Vec<f64>,
    /// From the end of the fault until all was as before.
    recoveries: Vec<f64>,
    /// The longest time from the creation of an object until its copy.
    longest: Vec<f64>,
    n_changes: u64,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { count, fault } = self;
        let mut command = test::node::prepare(None)?;
        command.arg("faults_lose_nothing").env("OARLOCK_NODE_FAULTS", count.to_string());
        if let Some(fault) = &fault {
            command.env("OARLOCK_NODE_FAULT", fault);
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run the faults")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let (mut order, mut times) = (Vec::new(), BTreeMap::<String, Times>::new());
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            match serde_json::from_str::<Value>(&line) {
                Ok(line) if line["fault"].is_string() => {
                    let name = line["fault"].as_str().unwrap_or_default().to_owned();
                    if !order.contains(&name) {
                        order.push(name.clone());
                    }
                    times.entry(name).or_default().add(&line);
                }
                _ => progress::say(line),
            }
        }
        let passed = child.wait()?.success();
        progress::say(table(&order, &times));
        let faults: Vec<Value> =
            order.iter().filter_map(|name| Some(times.get(name)?.to_json(name))).collect();
        super::record("soak-cluster.jsonl", json!({"count": count, "passed": passed, "faults": faults}))?;
        if !passed {
            bail!("the soak failed; see the output above");
        }
        Ok(())
    }
}

// === impl Times ===

impl Times {
    fn add(&mut self, line: &Value) {
        self.gaps.extend(line["gap_seconds"].as_f64());
        self.recoveries.extend(line["recovery_seconds"].as_f64());
        self.longest.extend(line["longest_seconds"].as_f64());
        self.n_changes += line["changes"].as_u64().unwrap_or_default();
    }

    fn to_json(&self, name: &str) -> Value {
        json!({
            "fault": name,
            "times": self.gaps.len(),
            "changes": self.n_changes,
            "lost": 0,
            "gap_p50_seconds": percentile(&self.gaps, 50),
            "gap_p99_seconds": percentile(&self.gaps, 99),
            "recovery_p50_seconds": percentile(&self.recoveries, 50),
            "recovery_p99_seconds": percentile(&self.recoveries, 99),
            "longest_seconds": percentile(&self.longest, 100),
        })
    }
}

/// Returns the smallest value that is not below this percentage of the values.
fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(|seconds| (seconds * 1000.0).round() / 1000.0)
}

/// Formats the times. A fault that lost something ended the run, so it has fewer times than it should.
fn table(order: &[String], times: &BTreeMap<String, Times>) -> String {
    let mut table = format!(
        "{:<42} {:>5} {:>8} {:>4} {:>9} {:>9} {:>12} {:>12} {:>9}",
        "fault", "times", "changes", "lost", "gap p50", "gap p99", "recovery p50", "recovery p99", "longest"
    );
    for name in order {
        let Some(of) = times.get(name) else { continue };
        let seconds = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} s"));
        let _ = write!(
            table,
            "\n{name:<42} {:>5} {:>8} {:>4} {:>9} {:>9} {:>12} {:>12} {:>9}",
            of.gaps.len(),
            of.n_changes,
            0,
            seconds(percentile(&of.gaps, 50)),
            seconds(percentile(&of.gaps, 99)),
            seconds(percentile(&of.recoveries, 50)),
            seconds(percentile(&of.recoveries, 99)),
            seconds(percentile(&of.longest, 100)),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), Some(5.0));
        assert_eq!(percentile(&values, 99), Some(10.0));
        assert_eq!(percentile(&[3.0], 50), Some(3.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn the_table_has_a_row_for_each_fault_in_the_order_of_the_run() {
        let mut times = BTreeMap::<String, Times>::new();
        for (name, gap) in [("kill -9 of the leader", 15.04), ("kill -9 of etcd", 2.0)] {
            let line = json!({"gap_seconds": gap, "recovery_seconds": gap + 0.5, "longest_seconds": gap + 1.0, "changes": 7});
            times.entry(name.to_owned()).or_default().add(&line);
        }
        let order = ["kill -9 of the leader", "kill -9 of etcd"].map(str::to_owned);
        let table = table(&order, &times);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .skip(1)
            .map(|row| row.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect())
            .collect();
        assert_eq!(
            rows[0],
            ["kill -9 of the leader", "1", "7", "0", "15.0 s", "15.0 s", "15.5 s", "15.5 s", "16.0 s"]
        );
        assert_eq!(rows[1], ["kill -9 of etcd", "1", "7", "0", "2.0 s", "2.0 s", "2.5 s", "2.5 s", "3.0 s"]);
    }
}
