//! Runs the host and the printer until a signal ends them. `run` and `dev` share this code.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use oarlock_controller::{
    account::Account,
    admin::{self, AdminListener, CertificateFiles},
    config::{self, Circumstances},
    control::{self, ControlSocket},
    informers::Prunings,
    plugin_resource,
    provision::Provision,
    recordings::RecordConfig,
    report::{self, HostEvent, Reporter},
    runtime::{self, ClientMetrics, Election, RestartPolicy, RetryPolicy, Runtime, WallClock},
    traces,
};
use oarlock_informer::list_watch::transport::Outages;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_plugin::EngineConfig;
use tokio_util::sync::CancellationToken;

use crate::{
    args::HostArgs,
    failure::{Ended, Failure},
    printer::Printer,
    shutdown::{self, Requests},
    unread,
};

/// The arguments of [`host`].
pub(super) struct Job {
    pub(super) client: kube::Client,
    pub(super) client_metrics: ClientMetrics,
    pub(super) outages: Outages,
    pub(super) server: String,
    pub(super) plugins: Vec<PathBuf>,
    /// How Plugin objects are run, if they are.
    pub(super) plugin_resources: Option<plugin_resource::Config>,
    pub(super) host: HostArgs,
    pub(super) prepared: Prepared,
    pub(super) engine: EngineConfig,
    pub(super) state_dir: Option<PathBuf>,
    /// The folder in which commands look for hosts.
    pub(super) default_state_dir: Option<PathBuf>,
    pub(super) provision: Option<Arc<dyn Provision>>,
    pub(super) election: Option<Election>,
    /// How long the calls in progress may take when the host stops.
    pub(super) drain_timeout: Duration,
    /// Whether the host stops when no one can read its standard output any more.
    pub(super) ends_unread: bool,
    /// Signals are handled from the time before the first file that has to be removed at the end.
    pub(super) requests: Option<Requests>,
}

/// The parts of the command line that are checked before the host starts.
pub(super) struct Prepared {
    admin: Option<AdminListener>,
    prunings: Prunings,
    record: Option<RecordConfig>,
    traces: Option<traces::Config>,
}

/// Binds the address for probes and metrics, and reads the fields to prune and what to record.
pub(super) async fn prepare(host: &HostArgs, plugins: &[PathBuf]) -> Result<Prepared, Failure> {
    let prunings = host.caches.prunings().map_err(Failure::caller)?;
    let record = host.record.clone().config(&names(plugins))?;
    let traces = host.traces.config()?;
    let admin = match host.admin_addr {
        Some(address) => {
            let files = host.admin_cert_file.clone().zip(host.admin_key_file.clone());
            let files = files.map(|(certificate, key)| CertificateFiles { certificate, key });
            Some(admin::bind(address, files).await.map_err(Failure::caller)?)
        }
        None => None,
    };
    Ok(Prepared { admin, prunings, record, traces })
}

/// Returns the names of the plugins that the host begins with. Where a component without a file is no plugin,
/// the command has refused it already.
fn names(plugins: &[PathBuf]) -> Vec<String> {
    let any_account = |name: &str| Some(Account { namespace: "default".to_owned(), name: name.to_owned() });
    let circumstances = Circumstances { owners: None, account_of: Some(&any_account) };
    let loaded = config::load_paths_under(plugins, circumstances);
    loaded.files.into_iter().map(|file| file.name).collect()
}

/// Runs the host until Ctrl-C or SIGTERM, or until the host or the future `beside` fails. When this returns,
/// all tasks have ended, and every line is printed, unless standard output is blocked.
pub(super) async fn host(job: Job, beside: impl Future<Output = Failure>) -> Ended {
    let Job {
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
        default_state_dir,
        provision,
        election,
        drain_timeout,
        ends_unread,
        requests,
    } = job;
    let Prepared { admin, prunings, record, traces } = prepared;
    let HostArgs {
        admin_addr: _,
        admin_cert_file: _,
        admin_key_file: _,
        output,
        level,
        record: _,
        traces: _,
        caches,
        fault_swallow,
        detect_inconsistency,
    } = host;
    let (reporter, reports) = report::channel(report::Config { level, ..report::Config::default() });
    let config = runtime::Config {
        client,
        client_metrics,
        outages,
        server,
        sources: plugins,
        plugin_resources,
        admin,
        control: control_socket(state_dir.as_deref(), default_state_dir.as_deref(), &reporter),
        reporter,
        engine,
        state_dir,
        retry: RetryPolicy::default(),
        restart: RestartPolicy::default(),
        provision,
        limits: caches.limits(),
        prunings,
        election,
        drain_timeout,
        record,
        traces,
        interception: None,
        wall_clock: WallClock::system(),
        fault_swallow,
        consistency_check: match detect_inconsistency {
            true => ConsistencyCheck::Panic,
            false => ConsistencyCheck::Off,
        },
    };
    let runtime = Runtime::new(config).map_err(Failure::caller)?;
    let (token, closed) = (CancellationToken::new(), CancellationToken::new());
    let is_closed = closed.clone();
    let unread = async {
        tokio::select! {
            () = unread::until_unread(), if ends_unread => {}
            () = is_closed.cancelled() => {}
        }
        Failure::unread()
    };
    let run = async {
        let running = std::pin::pin!(runtime.run(token.clone()));
        let mut running = running;
        tokio::select! {
            ended = &mut running => ended.map_err(Failure::running),
            failure = async { tokio::select! { failure = beside => failure, failure = unread => failure } } => {
                token.cancel();
                // The first failure is the one to report.
                let _ = running.await;
                Err(failure)
            }
        }
    };
    let closed = ends_unread.then_some(closed);
    let printer = Printer::start(reports, output, closed).map_err(Failure::running)?;
    let hosting = async {
        let ended = run.await;
        printer.finish().await;
        ended
    };
    shutdown::cancel_on_request(requests, token.clone());
    hosting.await
}

/// Binds the control socket. Without it the host runs as well.
fn control_socket(
    state_dir: Option<&Path>,
    default_state_dir: Option<&Path>,
    reporter: &Reporter,
) -> Option<ControlSocket> {
    match control::bind(state_dir?, default_state_dir) {
        Ok(socket) => Some(socket),
        Err(error) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            reporter.report(HostEvent::ControlUnavailable { message });
            None
        }
    }
}
