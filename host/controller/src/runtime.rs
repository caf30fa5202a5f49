//! The host process: builds its parts from a [`Config`] and runs them until it is asked to stop.

mod candidate;

use std::path::PathBuf;
use std::sync::Arc;

use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_informer::{GroupVersionResource, object::Content};
use oarlock_leader_election as leader;
use oarlock_plugin::{Engine, EngineConfig, Interception, engine};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::candidate::Candidate;
pub use self::candidate::Election;
use crate::access::Gate;
use crate::admin::Admin;
use crate::control::{self, Control, ControlSocket, HostFacts};
use crate::discovery::Discovery;
use crate::dispatch::{self, BusyLimit, FaultHook};
pub use crate::dispatch::{RestartPolicy, RetryPolicy};
use crate::health::Health;
use crate::informers::{ApiSource, Informers, Limits, Prunings, Purpose, Refused};
use crate::metrics::Metrics;
use crate::provision::Provision;
use crate::recordings::RecordConfig;
use crate::reload::{self, Host, Reload};
use crate::report::{HostEvent, Reporter, Timestamp};
pub use crate::schedule::WallClock;
use crate::shadow::Shadows;
use crate::state_folder::StateFolder;
use crate::status::StatusRegistry;
use crate::tasks::{self, Criticality, Tasks};

/// The configuration of the host.
pub struct Config {
    /// The client of the API server, with the host's own account. It should not retry requests itself.
    pub client: kube::Client,
    /// The address of the API server, for messages.
    pub server: String,
    /// Plugin files, and folders of them.
    pub sources: Vec<PathBuf>,
    /// The listener of the admin pages; see [`admin::bind`](crate::admin::bind).
    pub admin: Option<TcpListener>,
    /// The socket for commands; see [`control::bind`](crate::control::bind).
    pub control: Option<ControlSocket>,
    /// The channel for host events.
    pub reporter: Reporter,
    /// How components are compiled and run.
    pub engine: EngineConfig,
    /// The folder for what the host keeps over a restart, which only its user can write. Without it the host
    /// keeps nothing.
    pub state_dir: Option<PathBuf>,
    /// When failed calls are made again.
    pub retry: RetryPolicy,
    /// When lost instances are replaced.
    pub restart: RestartPolicy,
    /// Grants the rights of plugins' accounts. Without it the operator has to grant them.
    pub provision: Option<Arc<dyn Provision>>,
    /// The budget of all caches.
    pub limits: Limits,
    /// The fields that caches leave out of objects.
    pub prunings: Prunings,
    /// The leader election. Without it the host loads plugins at once.
    pub election: Option<Election>,
    /// Which plugins are recorded, and where.
    pub record: Option<RecordConfig>,
    /// Intercepts the calls of plugins that are not recorded. For tests of plugins.
    pub interception: Option<Interception>,
    /// The time of day for schedules.
    pub wall_clock: WallClock,
    /// Drops the n-th notification, counted from one. For tests of the tools that detect lost notifications.
    pub fault_swallow: Option<u64>,
    /// Whether informers compare a streamed initial list with a list request. For tests.
    pub consistency_check: ConsistencyCheck,
}

/// The host, ready to run.
pub struct Runtime {
    config: Config,
    engine: Engine,
}

/// Why the host stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The WebAssembly engine cannot be created.
    #[error("cannot create the WebAssembly engine on this machine")]
    Engine(#[from] engine::Error),
    /// The budget refused the host's own informer. It never does.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The configuration of the leader election is invalid.
    #[error(transparent)]
    Election(#[from] leader::ConfigError),
    /// The host lost the Lease: another host may run the plugins now.
    #[error("the host lost the Lease {lease}: start it again, and it stands by")]
    LeadershipLost {
        /// The Lease, as namespace/name.
        lease: String,
    },
    /// A part of the host failed.
    #[error(transparent)]
    Task(#[from] tasks::Error),
}

// === impl Runtime ===

impl Runtime {
    /// Creates the host and its engine. Starts no task.
    pub fn new(config: Config) -> Result<Self, Error> {
        let engine = Engine::new(config.engine.clone())?;
        Ok(Self { config, engine })
    }

    /// Runs the host until the token is cancelled or a part of it fails. All its tasks are gone when this
    /// returns.
    pub async fn run(self, token: CancellationToken) -> Result<(), Error> {
        let Self { config, engine } = self;
        let Config {
            client,
            server,
            sources,
            admin,
            control: socket,
            reporter,
            engine: _,
            state_dir,
            retry,
            restart,
            provision,
            limits,
            prunings,
            election,
            record,
            interception,
            wall_clock,
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
        // The gate asks about each namespace if an account may not read all of them. So the host itself needs
        // this watch.
        let namespaces = GroupVersionResource::new("", "v1", "namespaces");
        let namespaces = informers.acquire(&namespaces, Purpose::Host, Content::Metadata)?;
        let gate = Arc::new(Gate::new(client.clone(), Arc::new(namespaces), discovery.clone()));
        let statuses = StatusRegistry::default();
        let metrics = Metrics::new(statuses.clone(), informers.clone(), reporter.clone());
        let health = Health::new(informers.clone());
        let dispatch = dispatch::DispatcherShared {
            metrics: metrics.clone(),
            retry,
            restart,
            fault: FaultHook::new(fault_swallow),
            wall_clock,
            tasks: tasks.clone(),
            busy_limit: BusyLimit::new(Handle::current().metrics().num_workers()),
        };
        let facts = HostFacts { server: server.clone(), started: Timestamp::now(), began: Instant::now() };
        let (rollback, requests) = reload::rollbacks();
        let control = Control {
            rollback,
            statuses: statuses.clone(),
            metrics: metrics.clone(),
            reporter: reporter.clone(),
            host: Arc::new(facts),
            token: tasks.token().clone(),
        };
        reporter.report(HostEvent::HostStarted { server, version: env!("CARGO_PKG_VERSION") });
        if let Some(listener) = admin {
            let admin = Admin {
                statuses: statuses.clone(),
                health: health.clone(),
                informers: informers.clone(),
                metrics: metrics.clone(),
                control: control.clone(),
            };
            let reporter = reporter.clone();
            tasks.spawn("admin", Criticality::Essential, |token| admin.serve(listener, reporter, token));
        }
        if let Some(socket) = socket {
            let (operations, reporter) = (control::all(control), reporter.clone());
            tasks.spawn("control", Criticality::Essential, |token| socket.serve(operations, reporter, token));
        }
        let host = Arc::new(Host {
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
            record: record.map(Arc::new),
            interception,
            shadows: Shadows::default(),
            dispatch,
            state: StateFolder::new(state_dir),
        });
        let failure = Arc::new(Mutex::new(None));
        if let Some(election) = election {
            let candidate = Candidate {
                host,
                health,
                sources,
                requests: Mutex::new(Some(requests)),
                failure: failure.clone(),
                election,
            };
            tasks.spawn("election", Criticality::Essential, |token| candidate.run(token));
        } else {
            let reload = Reload::new(host, health, sources, requests);
            tasks.spawn("reload", Criticality::Essential, |token| reload.run(token));
        }
        let stopping = async {
            // The token of the tasks is cancelled first, whatever stops the host.
            tasks.token().cancelled().await;
            reporter.report(HostEvent::HostStopping);
        };
        let (ended, ()) = tokio::join!(supervisor.run(), stopping);
        // The reason why the election ended is the better error.
        match failure.lock().take() {
            Some(failure) => Err(failure),
            None => Ok(ended?),
        }
    }
}
