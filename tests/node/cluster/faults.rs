//! Faults of the host and of what it needs, each injected while objects change. In the end there is a copy of
//! each object, and no other: what a fresh computation would make.

mod clock;
mod crash_loops;
mod definition;
mod edits;
mod processes;
mod registry;
mod scene;
mod token;
mod writers;

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Pod};
use crate::load::{Load, Report};

use registry::RegistryFault;
use scene::{Scene, Stage};

/// The variable with the number of times that each fault is injected. Then each prints a line of JSON.
const COUNT: &str = "OARLOCK_NODE_FAULTS";

/// The variable that selects the faults whose name contains one of its values, which commas separate.
const SELECTED: &str = "OARLOCK_NODE_FAULT";

/// A fault.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL of the leader.
    Leader,
    /// SIGTERM of the leader.
    Terminated,
    /// SIGKILL of the standby.
    Standby,
    /// SIGKILL of both hosts at once.
    Both,
    /// A rolling update of both hosts.
    RollOut,
    /// The installation of the version before, and the upgrade from it to this one.
    Upgrade,
    /// SIGKILL of the API server, which starts again at once.
    ApiServer,
    /// SIGKILL of etcd, which starts again at once.
    Etcd,
    /// SIGKILL of the API server, which starts again when the leader has given up its Lease.
    Outage,
    /// No packet of the leader reaches the API server.
    Partition,
    /// Every token of a ServiceAccount becomes invalid, and the kubelet writes new ones.
    Token,
    /// The CustomResourceDefinition of a watched resource is deleted and made again.
    Definition,
    /// Ten Plugins lose their instance in each call.
    CrashLoops,
    /// The specs of ten Plugins change 100 times a second in all.
    Edits,
    /// The clock of the leader jumps an hour ahead, and back.
    Clock,
    /// The Plugin gets a new version from a registry while this happens.
    Registry(RegistryFault),
}

/// A fault that has begun: what it has to end, and the moment from which the gap counts.
struct Begun<'a> {
    cluster: &'a mut Cluster,
    stage: &'a mut Stage,
    load: &'a Load,
    leader: Pod,
    standby: Pod,
}

/// What one fault did.
struct Outcome {
    /// From the fault until an object that was created after it had a copy. Of a roll-out: the longest time
    /// from a change of an object until its copy had it.
    gap: Duration,
    /// From the end of the fault until all was as before: two Ready replicas, and the Plugin as specified.
    recovery: Duration,
    /// How many edits of Plugins the API server accepted per second, if the fault is these.
    edits_per_second: Option<f64>,
    report: Report,
}

pub(crate) async fn all(cluster: &mut Cluster) -> Result<()> {
    let count = env::var_os(COUNT).map(|count| count.to_string_lossy().into_owned());
    let n_times: usize = count.as_deref().unwrap_or("1").parse().context(COUNT)?;
    let selected = env::var_os(SELECTED).unwrap_or_default().to_string_lossy().into_owned();
    let is_selected = |fault: &Fault| selected.split(',').any(|part| fault.name().contains(part));
    let faults: Vec<Fault> = Fault::all().into_iter().filter(is_selected).collect();
    ensure!(!faults.is_empty(), "no fault has {selected:?} in its name");
    let mut stage = Stage::default();
    for fault in faults {
        stage.change(cluster, fault.scene()).await?;
        for _ in 0..n_times {
            cluster.until_ready().await?;
            let name = fault.name();
            let outcome = once(cluster, &mut stage, fault).await;
            if count.is_some() {
                print_line(&line_of(name, &outcome));
            }
            let Outcome { gap, recovery, report, .. } = outcome.with_context(|| format!("fault: {name}"))?;
            let report = report.check().with_context(|| format!("fault: {name}"))?;
            eprintln!("{name}: a gap of {gap:.1?}, {recovery:.1?} until all was as before; {report}");
        }
    }
    stage.change(cluster, Scene::Installed).await
}

async fn once(cluster: &mut Cluster, stage: &mut Stage, fault: Fault) -> Result<Outcome> {
    let begun_at = writers::n_audited(cluster)?;
    let client = &cluster.api.client;
    let is_recorded = matches!(fault, Fault::RollOut | Fault::Upgrade);
    let load = if is_recorded { Load::start_recorded(client).await? } else { Load::start(client) };
    load.first_copy_since(Instant::now()).await?;
    let (leader, standby) = cluster.leader_and_standby()?;
    stage.edits_per_second = None;
    let begun = Begun { cluster, stage, load: &load, leader, standby };
    let (gap, ended_at) = begun.inject(fault).await?;
    cluster.until_ready().await?;
    let recovery = ended_at.elapsed();
    let report = load.finish().await?;
    writers::check_only_leaders_wrote(cluster, begun_at)?;
    let gap = if is_recorded { report.longest } else { gap };
    Ok(Outcome { gap, recovery, edits_per_second: stage.edits_per_second, report })
}

/// Returns what `cargo xtask soak cluster` reads about one round, which may have failed.
fn line_of(fault: &str, outcome: &Result<Outcome>) -> Value {
    match outcome {
        Ok(Outcome { gap, recovery, edits_per_second, report }) => json!({
            "fault": fault,
            "passed": report.n_lost() == 0,
            "lost": report.n_lost(),
            "changes": report.n_changes,
            "gap_seconds": gap.as_secs_f64(),
            "recovery_seconds": recovery.as_secs_f64(),
            "longest_seconds": report.longest.as_secs_f64(),
            "edits_per_second": edits_per_second,
        }),
        Err(error) => json!({"fault": fault, "passed": false, "error": format!("{error:#}")}),
    }
}

#[expect(clippy::print_stdout, reason = "what cargo xtask soak cluster reads")]
fn print_line(line: &Value) {
    println!("{line}");
}

// === impl Begun ===

impl Begun<'_> {
    /// Injects and ends a fault. Returns the gap, and when the fault ended.
    async fn inject(self, fault: Fault) -> Result<(Duration, Instant)> {
        match fault {
            Fault::Leader | Fault::Terminated | Fault::Standby | Fault::Both => self.kill_hosts(fault).await,
            Fault::RollOut | Fault::Upgrade => self.roll_out(fault).await,
            Fault::ApiServer | Fault::Etcd | Fault::Outage => self.kill_component(fault).await,
            Fault::Partition => self.partition().await,
            Fault::Token => self.replace_tokens().await,
            Fault::Definition => self.delete_definition().await,
            Fault::CrashLoops => self.crash_loops().await,
            Fault::Edits => self.edit().await,
            Fault::Clock => self.move_clock().await,
            Fault::Registry(fault) => self.break_registry(fault).await,
        }
    }
}

// === impl Fault ===

impl Fault {
    /// Faults with the same scene are next to each other.
    fn all() -> Vec<Self> {
        let installed = [
            Self::Leader,
            Self::Terminated,
            Self::Standby,
            Self::Both,
            Self::RollOut,
            Self::Upgrade,
            Self::ApiServer,
            Self::Etcd,
            Self::Outage,
            Self::Partition,
            Self::Token,
            Self::Edits,
            Self::Definition,
            Self::CrashLoops,
            Self::Clock,
        ];
        installed.into_iter().chain(RegistryFault::ALL.map(Self::Registry)).collect()
    }

    fn scene(self) -> Scene {
        match self {
            Self::Edits => Scene::Edits,
            Self::Definition => Scene::Generators,
            Self::CrashLoops => Scene::CrashLoops,
            Self::Clock => Scene::OwnClock,
            Self::Registry(_) => Scene::Registry,
            _ => Scene::Installed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Leader => "kill -9 of the leader",
            Self::Terminated => "SIGTERM of the leader",
            Self::Standby => "kill -9 of the standby",
            Self::Both => "kill -9 of both hosts",
            Self::RollOut => "rolling update of the hosts",
            Self::Upgrade => "version before installed, then upgraded",
            Self::ApiServer => "kill -9 of the API server",
            Self::Outage => "no API server until the Lease is lost",
            Self::Etcd => "kill -9 of etcd",
            Self::Partition => "partition between leader and API server",
            Self::Token => "all tokens invalid, then rotated",
            Self::Definition => "CRD of a watched resource made again",
            Self::CrashLoops => "ten plugins that crash-loop",
            Self::Edits => "Plugins edited 100 times a second",
            Self::Clock => "clock of the leader an hour ahead",
            Self::Registry(RegistryFault::Down) => "registry down",
            Self::Registry(RegistryFault::Slow) => "registry slow",
            Self::Registry(RegistryFault::Lies) => "registry lies about the digest",
            Self::Registry(RegistryFault::DiskFull) => "cache disk full",
        }
    }
}
