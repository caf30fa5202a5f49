//! The host of a case: the one that runs in production, over the embedded API server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use oarlock_controller::account::Account;
use oarlock_controller::informers::{Limits, Prunings};
use oarlock_controller::rbac;
use oarlock_controller::report::{self, HostEvent, Reports};
use oarlock_controller::runtime::{self, RestartPolicy, RetryPolicy, Runtime, WallClock};
use oarlock_dev_cluster::InProcess;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_plugin::EngineConfig;
use oarlock_plugin::observe::observe;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::CaseClock;
use crate::rights::Rights;
use crate::run::RunError;
use crate::watcher::Watcher;

/// The account that the host runs as, as in `oarlock dev`.
const HOST: (&str, &str) = ("oarlock-system", "oarlock");

/// How often the host is asked whether it has come so far, in the time of the case.
const STEP: Duration = Duration::from_millis(1);

/// The plugin must serve within this time of the case.
const START: Duration = Duration::from_secs(300);

/// How long nothing may happen before a step has ended. Requests are answered in no time, and retries wait
/// 200 ms or longer.
const QUIET: Duration = Duration::from_millis(20);

/// A call computes this long before others run, in real time. A busy machine must not end a slice: what runs
/// between two parts of a call would differ from run to run.
const TIME_SLICE: Duration = Duration::from_secs(1);

/// A host that runs one plugin.
pub(crate) struct Host {
    token: CancellationToken,
    running: JoinHandle<Result<(), runtime::Error>>,
    seen: Arc<Mutex<Seen>>,
}

/// What the host has reported.
#[derive(Default)]
struct Seen {
    serves: bool,
    refused: Option<(String, Option<String>)>,
    waits_for: Vec<String>,
}

// === impl Host ===

impl Host {
    /// Starts the host. Returns when the plugin serves and has handled what the start caused.
    #[expect(clippy::disallowed_methods, reason = "a case has a runtime of its own: its tasks end with it")]
    pub(crate) async fn start(
        server: &InProcess,
        plugin: PathBuf,
        engine: EngineConfig,
        watcher: Arc<Watcher>,
        clock: Arc<CaseClock>,
    ) -> Result<Self, RunError> {
        let admin = Client::new(server.as_admin(), "default");
        let host = Account { namespace: HOST.0.to_owned(), name: HOST.1.to_owned() };
        let own = rbac::for_host(&host, &[]).map_err(|error| RunError::Host(error.to_string()))?;
        own.apply(&admin).await.map_err(|error| RunError::Host(error.to_string()))?;
        let (reporter, reports) = report::channel(report::Config::default());
        let runtime = Runtime::new(runtime::Config {
            client: Client::new(server.as_account(HOST.0, HOST.1), "default"),
            client_metrics: runtime::ClientMetrics::default(),
            outages: oarlock_informer::list_watch::transport::Outages::default(),
            server: "in-process".to_owned(),
            sources: vec![plugin],
            plugin_resources: None,
            admin: None,
            control: None,
            reporter,
            // The case has one thread.
            engine: EngineConfig { concurrent_guests: 1, time_slice: TIME_SLICE, ..engine },
            state_dir: None,
            retry: RetryPolicy::default(),
            restart: RestartPolicy::default(),
            provision: Some(Arc::new(Rights { admin, host })),
            limits: Limits::default(),
            prunings: Prunings::default(),
            election: None,
            drain_timeout: Duration::from_secs(5),
            record: None,
            traces: None,
            interception: Some(observe(watcher)),
            wall_clock: WallClock::controlled({
                let clock = clock.clone();
                move || clock.now()
            }),
            fault_swallow: None,
            consistency_check: ConsistencyCheck::Off,
        })
        .map_err(|error| RunError::Host(error.to_string()))?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        tokio::spawn(follow(reports, seen.clone(), clock));
        let token = CancellationToken::new();
        let running = tokio::spawn(runtime.run(token.clone()));
        let host = Self { token, running, seen };
        host.serves().await?;
        settle().await;
        Ok(host)
    }

    async fn serves(&self) -> Result<(), RunError> {
        let until = Instant::now() + START;
        loop {
            {
                let seen = self.seen.lock();
                if seen.serves {
                    return Ok(());
                }
                if let Some((message, hint)) = seen.refused.clone() {
                    return Err(RunError::Refused { message, hint });
                }
                if Instant::now() > until || self.running.is_finished() {
                    return Err(RunError::NotServing { waits_for: seen.waits_for.clone() });
                }
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Ends the host and all its tasks.
    pub(crate) async fn stop(self) -> Result<(), RunError> {
        self.token.cancel();
        match self.running.await {
            Ok(ended) => ended.map_err(|error| RunError::Host(format!("{:#}", anyhow::Error::new(error)))),
            Err(error) => Err(RunError::Host(error.to_string())),
        }
    }
}

/// Waits until nothing happens without time passing.
pub(crate) async fn settle() {
    tokio::time::sleep(QUIET).await;
}

async fn follow(mut reports: Reports, seen: Arc<Mutex<Seen>>, clock: Arc<CaseClock>) {
    while let Some(line) = reports.next().await {
        let mut seen = seen.lock();
        match line.event {
            HostEvent::PluginLoaded { .. } => {
                clock.begin();
                seen.serves = true;
            }
            HostEvent::PluginRefused { message, hint, .. } => seen.refused = Some((message, hint)),
            HostEvent::PluginWaiting { waits_for } => seen.waits_for = waits_for,
            _ => {}
        }
    }
}
