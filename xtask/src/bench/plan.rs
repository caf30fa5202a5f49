//! The plan of the benchmark: the subjects, their variants, and the servers.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::build::Programs;
use super::process::{Core, Running, last_line, pinned};

/// Runs against the same server.
pub(crate) struct Stage {
    pub(crate) server: Vec<String>,
    pub(crate) runs: Vec<Run>,
    /// Runs that take too long to be repeated, and whose figures vary little.
    pub(crate) is_once: bool,
}

/// One process of one subject.
pub(crate) struct Run {
    /// The name of the subject in the figures.
    pub(crate) subject: &'static str,
    pub(crate) variant: Variant,
    arguments: Vec<String>,
}

/// The variant of a run, which determines its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    Plain,
    TenHandlers,
    Metadata,
    ManagedFields,
    Pods100000,
    Pods200000,
    Small1000000,
    Transport,
}

/// The result of a run; see `bench/measure`.
#[derive(Debug, Deserialize)]
pub(crate) struct Record {
    pub(crate) objects: u64,
    pub(crate) events: u64,
    pub(crate) resident_before: u64,
    pub(crate) resident_peak: u64,
    pub(crate) resident_synced: u64,
    pub(crate) resident_after: u64,
    pub(crate) sync_cpu_seconds: f64,
    pub(crate) events_cpu_seconds: f64,
    pub(crate) catching_up_cpu_seconds: f64,
    #[serde(default)]
    pub(crate) more: BTreeMap<String, f64>,
}

/// The synthetic API server.
pub(crate) struct Server(Running);

/// Returns all subjects, ours first.
pub(crate) fn subjects() -> Vec<&'static str> {
    let peers =
        ["client-go-typed-json", "client-go-typed-protobuf", "client-go-dynamic", "client-go-metadata"];
    let others = ["kube-rs-typed", "kube-rs-dynamic", "kube-rs-metadata", "transport"];
    ["oarlock"].into_iter().chain(peers).chain(others).collect()
}

/// Returns the stages in order.
pub(crate) fn stages(quick: bool) -> Vec<Stage> {
    // Subjects that take 20 to 250 times as long per event get fewer events, since the figure is a rate.
    let (many, few, fewest) = if quick { (100_000, 30_000, 8_000) } else { (200_000, 80_000, 25_000) };
    let run = |subject, variant, arguments: &str, events: Option<u64>| {
        let arguments = arguments.split_whitespace().map(str::to_owned);
        let events = events.into_iter().flat_map(|events| ["--events".to_owned(), events.to_string()]);
        Run { subject, variant, arguments: arguments.chain(events).collect() }
    };
    use Variant::{
        ManagedFields, Metadata, Plain, Pods100000, Pods200000, Small1000000, TenHandlers, Transport,
    };
    let mut stages = vec![Stage {
        server: server(10_000, many, 0),
        is_once: false,
        runs: vec![
            run("oarlock", Plain, "informer --reads", None),
            run("oarlock", TenHandlers, "informer --handlers 10", None),
            run("oarlock", Metadata, "informer --kept metadata", None),
            run("oarlock", ManagedFields, "informer --kept everything", None),
            run("client-go-typed-json", Plain, "client-go --as typed-json", Some(fewest)),
            run("client-go-typed-json", TenHandlers, "client-go --as typed-json --handlers 10", Some(fewest)),
            run("client-go-typed-protobuf", Plain, "client-go --as typed-protobuf", Some(few)),
            run("client-go-dynamic", Plain, "client-go --as dynamic", Some(fewest)),
            run("client-go-metadata", Metadata, "client-go --as metadata", Some(many)),
            run("kube-rs-typed", Plain, "--as typed", Some(few)),
            run("kube-rs-dynamic", Plain, "--as dynamic", Some(few)),
            run("kube-rs-metadata", Metadata, "--as metadata", Some(few)),
            run("transport", Transport, "transport", None),
        ],
    }];
    stages.push(Stage {
        server: server(100_000, 0, 0),
        is_once: true,
        runs: vec![run("oarlock", Pods100000, "informer --no-events --reads --relist", None)],
    });
    if !quick {
        stages.push(Stage {
            server: server(200_000, 0, 0),
            is_once: true,
            runs: vec![run("oarlock", Pods200000, "informer --no-events", None)],
        });
        stages.push(Stage {
            server: server(0, 0, 1_000_000),
            is_once: true,
            runs: vec![run("oarlock", Small1000000, "informer --no-events --resource configmaps", None)],
        });
    }
    stages
}

fn server(pods: u64, events: u64, small: u64) -> Vec<String> {
    [("--pods", pods), ("--events", events), ("--small", small)]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
}

// === impl Run ===

impl Run {
    /// Runs the process to its end.
    pub(crate) fn take(&self, programs: &Programs, url: &str) -> Result<Record> {
        let program = match self.subject {
            "oarlock" | "transport" => &programs.oarlock,
            subject if subject.starts_with("kube-rs") => &programs.kube_rs,
            _ => &programs.peers,
        };
        let mut command = pinned(program, Core::Subject);
        command.args(&self.arguments).args(["--server", url]);
        let line = last_line(&mut command).with_context(|| self.title())?;
        serde_json::from_value(line).with_context(|| self.title())
    }

    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.subject, self.arguments.join(" "))
    }
}

// === impl Record ===

impl Record {
    /// Returns a summary for the progress line.
    pub(crate) fn summary(&self) -> String {
        let per_object = self.resident_after.saturating_sub(self.resident_before) / self.objects.max(1);
        let rate = self.events as f64 / self.events_cpu_seconds.max(1e-9);
        let sync = self.sync_cpu_seconds;
        format!("{per_object} B an object, sync {sync:.2} s, {rate:.0} events per CPU second")
    }
}

// === impl Server ===

impl Server {
    pub(crate) fn start(programs: &Programs, arguments: &[String]) -> Result<Self> {
        let mut command = pinned(&programs.peers, Core::Server);
        Running::start(command.arg("server").args(arguments)).map(Self)
    }

    pub(crate) fn url(&self) -> &str {
        self.0.first_line["url"].as_str().unwrap_or_default()
    }
}
