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
    /// From the fault until an object that was created after it had a copy.
    gap: Duration,
    /// From the end of the fault until all was as before: two Ready replicas, and the Plugin as specified.
    recovery: Duration,
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
            let Outcome { gap, recovery, report } = outcome.with_context(|| format!("fault: {name}"))?;
            eprintln!(
                "{name}: {gap:.1?} until a new object had its copy, {recovery:.1?} until all was as before; {report}"
            );
            if count.is_some() {
                print_line(&json!({
                    "fault": name,
                    "gap_seconds": gap.as_secs_f64(),
                    "recovery_seconds": recovery.as_secs_f64(),
                    "longest_seconds": report.longest.as_secs_f64(),
                    "changes": report.n_changes,
                }));
            }
        }
    }
    stage.change(cluster, Scene::Installed).await
}

async fn once(cluster: &mut Cluster, stage: &mut Stage, fault: Fault) -> Result<Outcome> {
    let begun_at = writers::n_audited(cluster)?;
    let load = Load::start(&cluster.api.client);
    load.first_copy_since(Instant::now()).await?;
    let (leader, standby) = cluster.leader_and_standby()?;
    let begun = Begun { cluster, stage, load: &load, leader, standby };
    let (gap, ended_at) = begun.inject(fault).await?;
    cluster.until_ready().await?;
    let recovery = ended_at.elapsed();
    let report = load.finish().await?;
    writers::check_only_leaders_wrote(cluster, begun_at)?;
    Ok(Outcome { gap, recovery, report })
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
            Fault::RollOut => self.roll_out().await,
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
