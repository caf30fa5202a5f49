//! `cargo xtask soak cluster`: faults of the host and of the cluster, many times each, on a real node.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Record;
use crate::lint::Lints;
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

/// The longest 99th percentile of the gaps, in seconds, of faults for which the documentation promises one.
const LIMITS: [(&str, f64); 1] = [("SIGTERM of the leader", 2.0)];

/// How many edits a second the fault that is named after them should reach.
const EDITS_PER_SECOND: f64 = 100.0;

/// The rounds of all faults, in the order of the run.
#[derive(Default)]
struct Rounds(Vec<(String, Times)>);

/// The rounds of one fault, with times in seconds.
#[derive(Default)]
struct Times {
    n_rounds: u64,
    /// The rounds that lost something, or in which a check failed.
    n_failed: u64,
    /// Copies that were missing, different or superfluous in the end.
    n_lost: u64,
    n_changes: u64,
    /// From the fault until an object that was created after it had a copy. Of a roll-out: the longest time
    /// from a change of an object until its copy had it.
    gaps: Vec<f64>,
    /// From the end of the fault until all was as before.
    recoveries: Vec<f64>,
    /// The longest time from the creation of an object until its copy.
    longest: Vec<f64>,
    /// Only of the fault that edits Plugins.
    edits_per_second: Vec<f64>,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { count, fault } = self;
        let record = Record::begin("soak-cluster.jsonl")?;
        let mut command = test::node::prepare(None, Lints::Skip)?;
        command.arg("faults_lose_nothing").env("OARLOCK_NODE_FAULTS", count.to_string());
        if let Some(fault) = &fault {
            command.env("OARLOCK_NODE_FAULT", fault);
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run the faults")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut rounds = Rounds::default();
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            match serde_json::from_str::<Value>(&line) {
                Ok(line) if line["fault"].is_string() => rounds.add(&line),
                _ => progress::say(line),
            }
        }
        let has_succeeded = child.wait()?.success();
        progress::say(rounds.table());
        for remark in rounds.remarks() {
            progress::say(remark);
        }
        let late = rounds.late();
        let passed = has_succeeded && late.is_empty();
        record.append(json!({"count": count, "passed": passed, "faults": rounds.to_json()}))?;
        if !late.is_empty() {
            bail!("{}", late.join("; "));
        }
        if !passed {
            bail!("the soak failed; see the output above");
        }
        Ok(())
    }
}

// === impl Rounds ===

impl Rounds {
    /// Adds one round: a line that the test prints.
    fn add(&mut self, line: &Value) {
        let name = line["fault"].as_str().unwrap_or_default();
        let index = self.0.iter().position(|(fault, _)| fault == name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), Times::default()));
            self.0.len() - 1
        });
        self.0[index].1.add(line);
    }

    fn to_json(&self) -> Vec<Value> {
        self.0.iter().map(|(name, times)| times.to_json(name)).collect()
    }

    /// Returns what was slower than it may be.
    fn late(&self) -> Vec<String> {
        let late = |(name, times): &(String, Times)| {
            let (_, limit) = LIMITS.into_iter().find(|(fault, _)| fault == name)?;
            let gap = percentile(&times.gaps, 99).filter(|gap| *gap > limit)?;
            Some(format!("{name}: the gap of {gap:.1} s (p99) is longer than {limit:.1} s"))
        };
        self.0.iter().filter_map(late).collect()
    }

    /// Returns what a reader of the table must know.
    fn remarks(&self) -> Vec<String> {
        let slow = |(name, times): &(String, Times)| {
            let slowest = percentile(&times.edits_per_second, 0)?;
            let fastest = percentile(&times.edits_per_second, 100)?;
            let is_reached = slowest >= EDITS_PER_SECOND;
            let rates = format!("{name}: {slowest:.0} to {fastest:.0} edits a second were accepted");
            Some(if is_reached { rates } else { format!("{rates}, not {EDITS_PER_SECOND:.0}") })
        };
        self.0.iter().filter_map(slow).collect()
    }

    fn table(&self) -> String {
        let mut table = format!(
            "{:<42} {:>6} {:>6} {:>8} {:>4} {:>9} {:>9} {:>12} {:>12} {:>9} {:>7}",
            "fault",
            "rounds",
            "failed",
            "changes",
            "lost",
            "gap p50",
            "gap p99",
            "recovery p50",
            "recovery p99",
            "longest",
            "edits/s"
        );
        for (name, times) in &self.0 {
            let seconds = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} s"));
            let rate = percentile(&times.edits_per_second, 0);
            let _ = write!(
                table,
                "\n{name:<42} {:>6} {:>6} {:>8} {:>4} {:>9} {:>9} {:>12} {:>12} {:>9} {:>7}",
                times.n_rounds,
                times.n_failed,
                times.n_changes,
                times.n_lost,
                seconds(percentile(&times.gaps, 50)),
                seconds(percentile(&times.gaps, 99)),
                seconds(percentile(&times.recoveries, 50)),
                seconds(percentile(&times.recoveries, 99)),
                seconds(percentile(&times.longest, 100)),
                rate.map_or("-".to_owned(), |rate| format!("{rate:.0}")),
            );
        }
        table
    }
}

// === impl Times ===

impl Times {
    fn add(&mut self, line: &Value) {
        self.n_rounds += 1;
        self.n_failed += u64::from(line["passed"] != true);
        self.n_lost += line["lost"].as_u64().unwrap_or_default();
        self.n_changes += line["changes"].as_u64().unwrap_or_default();
        self.gaps.extend(line["gap_seconds"].as_f64());
        self.recoveries.extend(line["recovery_seconds"].as_f64());
        self.longest.extend(line["longest_seconds"].as_f64());
        self.edits_per_second.extend(line["edits_per_second"].as_f64());
    }

    fn to_json(&self, name: &str) -> Value {
        let mut json = json!({
            "fault": name,
            "passed": self.n_failed == 0,
            "times": self.n_rounds,
            "failed": self.n_failed,
            "changes": self.n_changes,
            "lost": self.n_lost,
            "gap_p50_seconds": percentile(&self.gaps, 50),
            "gap_p99_seconds": percentile(&self.gaps, 99),
            "recovery_p50_seconds": percentile(&self.recoveries, 50),
            "recovery_p99_seconds": percentile(&self.recoveries, 99),
            "longest_seconds": percentile(&self.longest, 100),
        });
        if let Some(slowest) = percentile(&self.edits_per_second, 0) {
            json["edits_per_second_min"] = slowest.into();
            json["edits_per_second_p50"] = percentile(&self.edits_per_second, 50).into();
        }
        json
    }
}

/// Returns the smallest value that is not below this percentage of the values.
fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(|value| (value * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(lines: &[Value]) -> Rounds {
        let mut rounds = Rounds::default();
        lines.iter().for_each(|line| rounds.add(line));
        rounds
    }

    fn round(fault: &str, gap: f64) -> Value {
        json!({
            "fault": fault,
            "passed": true,
            "lost": 0,
            "changes": 7,
            "gap_seconds": gap,
            "recovery_seconds": gap + 0.5,
            "longest_seconds": gap + 1.0,
            "edits_per_second": null,
        })
    }

    fn rows(rounds: &Rounds) -> Vec<Vec<String>> {
        let cells = |row: &str| {
            row.split("  ").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        rounds.table().lines().skip(1).map(cells).collect()
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(percentile(&values, 0), Some(1.0));
        assert_eq!(percentile(&values, 50), Some(5.0));
        assert_eq!(percentile(&values, 99), Some(10.0));
        assert_eq!(percentile(&[3.0], 50), Some(3.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn the_table_has_a_row_for_each_fault_in_the_order_of_the_run() {
        let rounds = rounds(&[round("kill -9 of the leader", 15.04), round("kill -9 of etcd", 2.0)]);
        let rows = rows(&rounds);
        assert_eq!(
            rows[0],
            [
                "kill -9 of the leader",
                "1",
                "0",
                "7",
                "0",
                "15.0 s",
                "15.0 s",
                "15.5 s",
                "15.5 s",
                "16.0 s",
                "-"
            ]
        );
        assert_eq!(
            rows[1],
            ["kill -9 of etcd", "1", "0", "7", "0", "2.0 s", "2.0 s", "2.5 s", "2.5 s", "3.0 s", "-"]
        );
    }

    #[test]
    fn a_round_that_failed_is_in_the_table_and_in_the_record() {
        let mut lost = round("kill -9 of etcd", 2.0);
        (lost["passed"], lost["lost"]) = (false.into(), 3.into());
        let failed = json!({"fault": "registry down", "passed": false, "error": "waited 600s"});
        let rounds = rounds(&[round("kill -9 of etcd", 2.0), lost, failed]);
        let rows = rows(&rounds);
        assert_eq!(rows[0][..5], ["kill -9 of etcd", "2", "1", "14", "3"]);
        assert_eq!(rows[1], ["registry down", "1", "1", "0", "0", "-", "-", "-", "-", "-", "-"]);
        for (fault, n_lost) in rounds.to_json().iter().zip([3, 0]) {
            assert_eq!(
                (&fault["passed"], &fault["failed"], &fault["lost"]),
                (&json!(false), &json!(1), &json!(n_lost))
            );
        }
    }

    #[test]
    fn a_slow_takeover_after_sigterm_is_named() {
        let late =
            |gap: f64| rounds(&[round("SIGTERM of the leader", gap), round("kill -9 of etcd", 9.0)]).late();
        assert_eq!(late(1.9), Vec::<String>::new());
        assert_eq!(late(2.4), ["SIGTERM of the leader: the gap of 2.4 s (p99) is longer than 2.0 s"]);
        let faults = include_str!("../../../tests/node/cluster/faults.rs");
        for (fault, _) in LIMITS {
            assert!(faults.contains(&format!("\"{fault}\"")), "no fault has the name {fault:?}");
        }
    }

    #[test]
    fn the_slowest_edits_are_in_the_table() {
        let edits = |rate: f64| {
            let mut line = round("Plugins edited 100 times a second", 0.1);
            line["edits_per_second"] = rate.into();
            line
        };
        let slow = rounds(&[edits(100.2), edits(83.4)]);
        assert_eq!(rows(&slow)[0].last().map(String::as_str), Some("83"));
        assert_eq!(
            slow.remarks(),
            ["Plugins edited 100 times a second: 83 to 100 edits a second were accepted, not 100"]
        );
        assert_eq!(slow.to_json()[0]["edits_per_second_min"], 83.4);
    }
}
