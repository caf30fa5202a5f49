//! The host process: builds its parts from a [`Config`] and runs them until it is asked to stop.

mod candidate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::list_watch::transport::Outages;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_informer::{GroupVersionResource, object::Content};
use oarlock_leader_election as leader;
use oarlock_plugin::{Engine, EngineConfig, Interception, engine};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::candidate::Candidate;
pub use self::candidate::Election;
use crate::access::Gate;
use crate::admin::{Admin, AdminListener};
use crate::control::{self, Control, ControlSocket, HostFacts};
use crate::discovery::Discovery;
use crate::dispatch::{self, BusyLimit, FaultHook};
pub use crate::dispatch::{RestartPolicy, RetryPolicy};
use crate::drain::Drain;
use crate::health::Health;
use crate::identity::Identities;
use crate::informers::{ApiSource, Informers, Limits, Prunings, Purpose, Refused};
use crate::leadership::Leadership;
pub use crate::metrics::ClientMetrics;
use crate::metrics::Metrics;
use crate::plugin_resource::{self, Definitions, GoodVersions, GoodVersionsRequest, PluginResources};
use crate::provision::Provision;
use crate::recordings::{RecordConfig, Recordings};
use crate::reload::{self, Host, Reload, Request};
use crate::report::{HostEvent, Reporter, Timestamp};
pub use crate::schedule::WallClock;
use crate::shadow::Shadows;
use crate::state_folder::StateFolder;
use crate::status::{PluginStatus, StatusRegistry};
use crate::tasks::{self, Criticality, Tasks};
use crate::traces::{self, Export, Traces};

/// The configuration of the host.
pub struct Config {
    /// The client of the API server, with the host's own account. It should not retry requests itself.
    pub client: kube::Client,
    /// What the client counts, for the metrics. The default counts nothing.
    pub client_metrics: ClientMetrics,
    /// What the client notices of outages. The default notices nothing.
    pub outages: Outages,
    /// The address of the API server, for messages.
    pub server: String,
    /// Plugin files, and folders of them.
    pub sources: Vec<PathBuf>,
    /// How Plugin objects are run. Without it the host does not watch them.
    pub plugin_resources: Option<plugin_resource::Config>,
    /// The listener of the admin pages; see [`admin::bind`](crate::admin::bind).
    pub admin: Option<AdminListener>,
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
    /// The leader election. Without it the host calls plugins at once.
    pub election: Option<Election>,
    /// How long the calls in progress may take when the host stops.
    pub drain_timeout: Duration,
    /// Which plugins are recorded, and where.
    pub record: Option<RecordConfig>,
    /// Where traces of sampled events are exported to. Without it there are none.
    pub traces: Option<traces::Config>,
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
    traces: Traces,
    export: Option<Export>,
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
    /// Traces cannot be exported as configured.
    #[error(transparent)]
    Traces(#[from] traces::Error),
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

/// Where the plugins come from.
struct Inputs {
    /// Plugin files, and folders of them.
    sources: Vec<PathBuf>,
    plugin_resources: Option<Arc<plugin_resource::Config>>,
}

// === impl Inputs ===

impl Inputs {
    /// Starts the tasks that load plugins, as tasks of the host.
    fn start(
        self,
        host: &Arc<Host>,
        health: &Health,
        requests: mpsc::Receiver<Request>,
        good_versions: mpsc::Receiver<GoodVersionsRequest>,
    ) {
        let Self { sources, plugin_resources } = self;
        if let Some(config) = plugin_resources {
            let resources = PluginResources::new(host.clone(), config, good_versions);
            host.tasks.spawn("plugin-resources", Criticality::Essential, |token| resources.run(token));
        }
        let reload = Reload::new(host.clone(), health.clone(), sources, requests);
        host.tasks.spawn("reload", Criticality::Essential, |token| reload.run(token));
    }
}

// === impl Runtime ===

impl Runtime {
    /// Creates the host and its engine. Starts no task.
    pub fn new(config: Config) -> Result<Self, Error> {
        let engine = Engine::new(config.engine.clone())?;
        let (traces, export) = match &config.traces {
            None => (Traces::default(), None),
            Some(traces) => {
                let (traces, export) = Traces::new(traces, &config.server)?;
                (traces, Some(export))
            }
        };
        Ok(Self { config, engine, traces, export })
    }

    /// Runs the host until the token is cancelled or a part of it fails. All its tasks are gone when this
    /// returns.
    pub async fn run(self, token: CancellationToken) -> Result<(), Error> {
        let Self { config, engine, traces, export } = self;
        let Config {
            client,
            client_metrics,
            outages,
            server,
            sources,
            plugin_resources,
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
            drain_timeout,
            record,
            traces: _,
            interception,
            wall_clock,
            fault_swallow,
            consistency_check,
        } = config;
        // Not a child: what waits is counted before the tasks end.
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        let discovery = Arc::new(Discovery::new(client.clone()));
        let source =
            ApiSource::new(client.clone(), discovery.clone(), prunings.clone(), outages, consistency_check);
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
        let metrics = Metrics::new(
            statuses.clone(),
            informers.clone(),
            reporter.clone(),
            client_metrics,
            traces.clone(),
        );
        let health = Health::new(informers.clone());
        let leadership = if election.is_some() { Leadership::standby() } else { Leadership::sole() };
        let drain = Drain::new(drain_timeout);
        let dispatch = dispatch::DispatcherShared {
            metrics: metrics.clone(),
            retry,
            restart,
            fault: FaultHook::new(fault_swallow),
            wall_clock,
            tasks: tasks.clone(),
            busy_limit: BusyLimit::new(Handle::current().metrics().num_workers()),
            leadership: leadership.clone(),
            drain: drain.clone(),
            traces,
            reporter: reporter.clone(),
        };
        if let Some(export) = export {
            let (reporter, drain) = (reporter.clone(), drain.clone());
            tasks.spawn("traces", Criticality::Essential, |token| export.run(reporter, drain, token));
        }
        let facts = HostFacts { server: server.clone(), started: Timestamp::now(), began: Instant::now() };
        let (rollback, requests) = reload::rollbacks();
        let control = Control {
            rollback,
            statuses: statuses.clone(),
            metrics: metrics.clone(),
            reporter: reporter.clone(),
            host: Arc::new(facts),
            leadership: leadership.clone(),
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
                tasks: tasks.clone(),
            };
            let (client, reporter) = (client.clone(), reporter.clone());
            let serve = |token| admin.serve(listener, client, reporter, token);
            tasks.spawn("admin", Criticality::Essential, serve);
        }
        if let Some(socket) = socket {
            let (operations, reporter) = (control::all(control), reporter.clone());
            tasks.spawn("control", Criticality::Essential, |token| socket.serve(operations, reporter, token));
        }
        let (good_versions, good_version_requests) = GoodVersions::new();
        let host = Arc::new(Host {
            tasks: tasks.clone(),
            reporter: reporter.clone(),
            engine,
            client,
            identities: Identities::new(tasks.clone(), gate.clone()),
            gate,
            discovery,
            informers,
            prunings,
            metrics,
            statuses: statuses.clone(),
            provision,
            record: record
                .map(|it| Arc::new(Recordings::new(it, tasks.clone(), drain.clone(), reporter.clone()))),
            interception,
            shadows: Shadows::default(),
            dispatch,
            state: StateFolder::new(state_dir),
            definitions: Definitions::new(),
            good_versions,
        });
        let failure = Arc::new(Mutex::new(None));
        let inputs = Inputs { sources, plugin_resources: plugin_resources.map(Arc::new) };
        if let Some(election) = election {
            let candidate = Candidate {
                host: host.clone(),
                health: health.clone(),
                leadership: leadership.clone(),
                drain: drain.clone(),
                failure: failure.clone(),
                election,
            };
            tasks.spawn("election", Criticality::Essential, |token| candidate.run(token));
        }
        inputs.start(&host, &health, requests, good_version_requests);
        let stopping = async {
            tokio::select! {
                () = token.cancelled() => {}
                // A part of the host has failed.
                () = tasks.token().cancelled() => {}
            }
            // On standby, what waits is the leader's work.
            let waiting = match leadership.leads() {
                true => statuses.snapshot().iter().map(PluginStatus::n_waiting).sum(),
                false => 0,
            };
            tasks.token().cancel();
            reporter.report(HostEvent::HostStopping { asked: token.is_cancelled() });
            (Instant::now(), waiting)
        };
        let (ended, (since, waiting)) = tokio::join!(supervisor.run(), stopping);
        let after_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        reporter.report(HostEvent::HostDrained { after_ms, calls_dropped: drain.n_dropped(), waiting });
        // The reason why the election ended is the better error.
        match failure.lock().take() {
            Some(failure) => Err(failure),
            None => Ok(ended?),
        }
    }
}
