//! `oarlock run`: runs plugins against a cluster.

use std::{path::PathBuf, time::Duration};

use oarlock_leader_election as leader;

use oarlock_controller::{config, runtime::Election};
use oarlock_plugin::EngineConfig;

use super::hosting;
use crate::{
    args::{ElectionArgs, Environment, LeaseName, NamespaceName, RunArgs},
    connect::{self, Connection},
    failure::{Ended, Failure},
    shutdown::Requests,
    state_folder,
};

/// The longest time between two looks of a host on standby at the Lease.
const STANDBY_WAIT: Duration = Duration::from_secs(1);

pub(crate) async fn run(
    args: RunArgs,
    state_dir: Option<PathBuf>,
    environment: &Environment,
    engine: EngineConfig,
) -> Ended {
    let RunArgs { plugins, drain_timeout, watch_plugins, objects, cluster, host, election } = args;
    if plugins.is_empty() && !watch_plugins {
        return Err(Failure::caller(anyhow::anyhow!("run does not know which plugins to run")).hint(
            "name them with --plugins PATH, or run the Plugin objects of the cluster with --watch-plugins; \
             oarlock dev PATH needs no cluster",
        ));
    }
    if let Some(missing) = plugins.iter().find(|path| !path.exists()) {
        let missing = anyhow::anyhow!("--plugins {} does not exist", missing.display());
        return Err(Failure::caller(missing)
            .hint("name a folder of plugin files, the folder of one plugin, or a plugin file"));
    }
    if let Some(component) = plugins.iter().find(|path| config::is_component(path)) {
        let bare = config::Error::BareComponent { path: component.clone() };
        return Err(Failure::caller(bare));
    }
    if let Some(flag) = objects.given().filter(|_| !watch_plugins) {
        let ignored = anyhow::anyhow!("{flag} is about Plugin objects, which this host does not run");
        return Err(Failure::caller(ignored).hint(format!("add --watch-plugins, or leave {flag} out")));
    }
    let election = candidacy(election)?;
    let objects = match watch_plugins {
        true => Some(objects.prepare(engine.cache_dir.as_deref())?),
        false => None,
    };
    let prepared = hosting::prepare(&host, &plugins).await?;
    // In use until this function returns.
    let kept = state_folder::state_folder(state_dir, environment)?;
    let state_dir = kept.as_ref().map(|it| it.path.clone());
    let mut requests = Requests::listen();
    let acknowledged_within = election.as_ref().map(Candidacy::acknowledged_within);
    let connecting = connect::connect(&cluster, environment, acknowledged_within);
    let Some(connection) = unless_asked_to_end(&mut requests, connecting).await else { return Ok(()) };
    let Connection { client, metrics: client_metrics, outages, server } = connection?;
    let plugin_resources = objects.map(|objects| objects(client.default_namespace()));
    let election = election.map(|it| it.election(client.default_namespace(), environment)).transpose()?;
    Box::pin(hosting::host(
        hosting::Job {
            client,
            client_metrics,
            outages,
            server,
            plugins,
            plugin_resources,
            host,
            prepared,
            engine,
            state_dir,
            default_state_dir: state_folder::default_folder(environment),
            provision: None,
            election,
            drain_timeout,
            // A controller goes on.
            ends_unread: false,
            requests,
        },
        std::future::pending(),
    ))
    .await
}

/// Runs a future to its end, or until a request to end comes: then it returns `None`.
async fn unless_asked_to_end<T>(requests: &mut Option<Requests>, work: impl Future<Output = T>) -> Option<T> {
    let asked_to_end = async {
        match requests {
            Some(requests) => requests.next().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = work => Some(done),
        () = asked_to_end => None,
    }
}

/// The leader election that the host takes part in.
struct Candidacy {
    config: leader::Config,
    name: LeaseName,
    /// Otherwise the namespace of the host.
    namespace: Option<NamespaceName>,
}

/// Returns the leader election that the host takes part in, if any.
fn candidacy(args: ElectionArgs) -> Result<Option<Candidacy>, Failure> {
    let ElectionArgs {
        leader_elect,
        leader_elect_lease_duration: lease_duration,
        leader_elect_renew_deadline: renew_deadline,
        leader_elect_retry_period: retry_period,
        leader_elect_resource_name: name,
        leader_elect_resource_namespace: namespace,
    } = args;
    if !leader_elect {
        return Ok(None);
    }
    let config = leader::Config {
        lease_duration,
        renew_deadline,
        retry_period,
        longest_wait: Some(STANDBY_WAIT),
        release_on_cancel: true,
    };
    config.check().map_err(refused)?;
    Ok(Some(Candidacy { config, name, namespace }))
}

fn refused(error: leader::ConfigError) -> Failure {
    use leader::ConfigError;
    let message = match error {
        ConfigError::LeaseTooShort { lease_duration, renew_deadline } => format!(
            "--leader-elect-lease-duration {lease_duration:?} is not greater than \
             --leader-elect-renew-deadline {renew_deadline:?}"
        ),
        ConfigError::DeadlineTooShort { renew_deadline, retry_period } => format!(
            "--leader-elect-renew-deadline {renew_deadline:?} is not greater than 1.2 times \
             --leader-elect-retry-period {retry_period:?}"
        ),
        ConfigError::TooLong(name) => format!("{} is longer than 68 years", flag(name)),
        ConfigError::Zero(name) => format!("{} is not greater than zero", flag(name)),
        ConfigError::NoIdentity => error.to_string(),
    };
    Failure::caller(anyhow::anyhow!(message)).hint("Kubernetes' own components use 15s, 10s and 2s")
}

/// Returns the flag for a duration of an election.
fn flag(duration: &str) -> &str {
    match duration {
        "leaseDuration" => "--leader-elect-lease-duration",
        "renewDeadline" => "--leader-elect-renew-deadline",
        "retryPeriod" => "--leader-elect-retry-period",
        other => other,
    }
}

// === impl Candidacy ===

impl Candidacy {
    /// Returns how long the kernel may try to send a write: from the last moment in which the host may send
    /// it until another one may lead.
    fn acknowledged_within(&self) -> Duration {
        // A zero would mean no limit.
        self.config.margin().max(Duration::from_millis(1))
    }

    fn election(self, default_namespace: &str, environment: &Environment) -> Result<Election, Failure> {
        let Self { config, name: LeaseName(name), namespace } = self;
        let namespace = namespace.as_ref().map_or(default_namespace, |NamespaceName(name)| name);
        let machine = environment.hostname.as_deref().unwrap_or("oarlock");
        Election::new(namespace, &name, machine, config).map_err(refused)
    }
}
