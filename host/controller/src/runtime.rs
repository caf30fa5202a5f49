//! The host, put together: made with everything it needs, run until it is told to end.

mod candidate;

use std::path::PathBuf;
use std::sync::Arc;

use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_informer::{GroupVersionResource, object::Content};
use oarlock_leader_election as leader;
use oarlock_plugin::{Engine, EngineConfig, engine};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::candidate::Candidate;
pub use self::candidate::Election;
use crate::access::Gate;
use crate::admin::Admin;
use crate::discovery::Discovery;
use crate::dispatch::{self, FaultHook, RestartPolicy, RetryPolicy};
use crate::health::Health;
use crate::informers::{ApiSource, Informers, Limits, Prunings, Purpose, Refused};
use crate::metrics::Metrics;
use crate::provision::Provision;
use crate::reload::{Host, Reload};
use crate::report::{HostEvent, Reporter};
use crate::status::StatusRegistry;
use crate::tasks::{self, Criticality, Tasks};

/// What the host is made with.
pub struct Config {
    /// To the API server, as the host's own account. It should retry nothing by itself.
    pub client: kube::Client,
    /// The API server's address, for people.
    pub server: String,
    /// Plugin files, and folders of them.
    pub sources: Vec<PathBuf>,
    /// Where to serve probes, metrics and status; see [`admin::bind`](crate::admin::bind).
    pub admin: Option<TcpListener>,
    /// Where to say what happens.
    pub reporter: Reporter,
    /// How components are compiled and run.
    pub engine: EngineConfig,
    /// How failures are retried.
    pub retry: RetryPolicy,
    /// How lost instances are replaced.
    pub restart: RestartPolicy,
    /// Gives plugins' accounts their rights; none leaves that to the operator.
    pub provision: Option<Arc<dyn Provision>>,
    /// What the caches may take up.
    pub limits: Limits,
    /// What is left out of them.
    pub prunings: Prunings,
    /// Run plugins only while it leads; none runs them at once.
    pub election: Option<Election>,
    /// Swallows the n-th notification, counted from one. A fault on demand, for tests of those who look for faults.
    pub fault_swallow: Option<u64>,
    /// Whether what informers have streamed in is compared with a list. For tests.
    pub consistency_check: ConsistencyCheck,
}

/// The host.
pub struct Runtime {
    config: Config,
    engine: Engine,
}

/// Why the host ends, or does not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// WebAssembly cannot be run here.
    #[error("cannot run WebAssembly on this machine")]
    Engine(#[from] engine::Error),
    /// The host's own watch was refused, which it never is.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The election cannot work like this.
    #[error(transparent)]
    Election(#[from] leader::ConfigError),
    /// Another may run the plugins now.
    #[error("the host no longer leads by the Lease {lease}: start it again, and it stands by")]
    LeadershipLost {
        /// Namespace and name.
        lease: String,
    },
    /// A part of the host failed.
    #[error(transparent)]
    Task(#[from] tasks::Error),
}

// === impl Runtime ===

impl Runtime {
    /// Makes the host. Nothing runs yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        let engine = Engine::new(config.engine.clone())?;
        Ok(Self { config, engine })
    }

    /// Runs the host until the token is cancelled or a part of it fails. Everything that it started is gone when this returns.
    pub async fn run(self, token: CancellationToken) -> Result<(), Error> {
        let Self { config, engine } = self;
        let Config {
            client,
            server,
            sources,
            admin,
            reporter,
            engine: _,
            retry,
            restart,
            provision,
            limits,
            prunings,
            election,
            fault_swallow,
            consistency_check,
        } = config;
        let (tasks, supervisor) = Tasks::new(token.child_token());
        let discovery = Arc::new(Discovery::new(client.clone()));
        let source = ApiSource::new(client.clone(), discovery.clone(), prunings.clone(), consistency_check);
        let source = Arc::new(source);
        let informers = Informers::new(tasks.clone(), reporter.clone(), source, limits);
        let budget = informers.clone();
        tasks.spawn(
            "budget",
            Criticality::Essential,
            |token| async move { budget.watch_budget(token).await },
        );
        // The gate asks about each namespace where an account may not see all: the one watch that the host needs for itself.
        let namespaces = GroupVersionResource::new("", "v1", "namespaces");
        let namespaces = informers.acquire(&namespaces, Purpose::Host, Content::Metadata)?;
        let gate = Arc::new(Gate::new(client.clone(), Arc::new(namespaces)));
        let statuses = StatusRegistry::default();
        let metrics = Metrics::new(statuses.clone(), informers.clone(), reporter.clone());
        let health = Health::new(informers.clone());
        let dispatch = dispatch::DispatcherShared {
            metrics: metrics.clone(),
            retry,
            restart,
            fault: FaultHook::new(fault_swallow),
        };
        reporter.report(HostEvent::HostStarted { server, version: env!("CARGO_PKG_VERSION") });
        if let Some(listener) = admin {
            let admin = Admin {
                statuses: statuses.clone(),
                health: health.clone(),
                informers: informers.clone(),
                metrics: metrics.clone(),
            };
            let reporter = reporter.clone();
            tasks.spawn("admin", Criticality::Essential, |token| admin.serve(listener, reporter, token));
        }
        let host = Host {
            tasks: tasks.clone(),
            reporter: reporter.clone(),
            engine,
            client,
            gate,
            discovery,
            informers,
            prunings,
            metrics,
            statuses,
            provision,
            dispatch,
        };
        let failure = Arc::new(Mutex::new(None));
        if let Some(election) = election {
            let candidate = Candidate { host, health, sources, failure: failure.clone(), election };
            tasks.spawn("election", Criticality::Essential, |token| candidate.run(token));
        } else {
            let reload = Reload::new(host, health, sources);
            tasks.spawn("reload", Criticality::Essential, |token| reload.run(token));
        }
        let stopping = async {
            // Whatever ends the host cancels this first.
            tasks.token().cancelled().await;
            reporter.report(HostEvent::HostStopping);
        };
        let (ended, ()) = tokio::join!(supervisor.run(), stopping);
        // What the election ended for says more than that it ended.
        match failure.lock().take() {
            Some(failure) => Err(failure),
            None => Ok(ended?),
        }
    }
}
