//! `oarlock dev`: an API server on this machine, and plugins that run against it.
//!
//! The host does what it does in a cluster: it talks HTTPS to the API server with the token of its own
//! ServiceAccount. This account and the plugins' accounts have the rights that `oarlock rbac` prints, and no
//! others.

mod crds;
mod example;
mod kubeconfig;
mod rights;
mod server;
mod welcome;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kube::config::Kubeconfig;
use oarlock_controller::{account::Account, config, plugin_resource, provision::Provision};
use oarlock_guest_build::progress;
use oarlock_plugin::EngineConfig;
use tempfile::TempDir;

use self::{
    kubeconfig::KubeconfigFile,
    rights::Rights,
    server::{RealConfig, Server},
    welcome::Welcome,
};
use super::{
    hosting,
    sources::{Sources, Written},
};
use crate::{
    args::{DevArgs, Environment, HostArgs, PluginObjectArgs},
    connect::{self, Connection},
    failure::{Ended, Failure},
    shutdown::Requests,
    state_folder::{self, StateFolder},
};

/// How long the calls in progress may take at the end: a developer waits for it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The account that the host runs as.
const HOST: (&str, &str) = ("oarlock-system", "oarlock");

/// What the host keeps: its folder for state, compiled code, and components that it fetched.
struct Kept {
    plugin_resources: plugin_resource::Config,
    state_dir: Option<PathBuf>,
    default_state_dir: Option<PathBuf>,
    engine: EngineConfig,
}

/// The folder for state, while the value lives.
enum StateDir {
    /// The one that the user named.
    Named(StateFolder),
    /// It is removed at the end.
    Temporary(TempDir),
}

pub(crate) async fn run(
    args: DevArgs,
    state_dir: Option<PathBuf>,
    environment: &Environment,
    engine: EngineConfig,
) -> Ended {
    let DevArgs { plugins, objects, port, kubeconfig, real, fault, no_build, host } = args;
    let plugins = or_here(plugins);
    if let Some(missing) = plugins.iter().find(|path| !path.exists()) {
        let missing = anyhow::anyhow!("{} does not exist", missing.display());
        return Err(
            Failure::caller(missing).hint("name plugin files, or folders of them, such as plugins/mirror")
        );
    }
    let real = if real { Some(RealConfig::find(environment, port, &fault)?) } else { None };
    let prepared = hosting::prepare(&host, &plugins).await?;
    let component_dir = objects.component_dir.or_else(|| Some(PathBuf::from(".")));
    let objects = PluginObjectArgs { component_dir, ..objects };
    if !no_build {
        let folders = [state_dir.as_deref(), engine.cache_dir.as_deref(), kubeconfig.as_deref()];
        build(&plugins, &folders, host.record.record.as_deref()).await?;
    }
    let kept_folder = StateDir::new(state_dir, environment)?;
    let state_dir = kept_folder.as_ref().map(StateDir::path);
    let cache_dir = engine.cache_dir.as_deref().or(state_dir);
    let plugin_resources = objects.prepare(cache_dir)?(HOST.0);
    // From here on, a request to end also ends the servers and removes the files of this command.
    let mut requests = Requests::listen();
    let mut server = match real {
        Some(config) => {
            welcome::real_server_starts(config.assets(), host.output);
            let started =
                config.start(&mut requests, |progress| welcome::server_is_ready(progress, host.output));
            match started.await? {
                Some(server) => server,
                None => return Ok(()),
            }
        }
        None => Server::embedded(port, fault).await?,
    };
    let default_state_dir = state_folder::default_folder(environment);
    let state_dir = state_dir.map(Path::to_owned);
    let kept = Kept { plugin_resources, state_dir, default_state_dir, engine };
    let ended = serve(&mut server, plugins, kubeconfig.as_deref(), host, prepared, kept, requests).await;
    server.shut_down().await;
    ended
}

/// Without any plugin, returns the one in the current folder, if there is one.
fn or_here(plugins: Vec<PathBuf>) -> Vec<PathBuf> {
    let here = Path::new(".");
    if plugins.is_empty() && config::is_of_one_plugin(here) { vec![here.to_owned()] } else { plugins }
}

/// Builds the plugins whose sources are beside their files, and goes on with it when they change. The host
/// writes the files and folders `written`, and records named after `record`.
async fn build(plugins: &[PathBuf], written: &[Option<&Path>], record: Option<&Path>) -> Ended {
    let files = config::load_paths(plugins).files;
    let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
    let written = Written::new(written, record, &names);
    for file in files {
        let Some(sources) = Sources::beside(&file)? else { continue };
        let sources = Sources { written: written.clone(), ..sources };
        let has_component = file.component.exists();
        let build = move || (sources.build().map(drop), sources);
        let (built, sources) = tokio::task::spawn_blocking(build).await.map_err(Failure::running)?;
        match built {
            Ok(()) => {}
            Err(failure) if has_component => {
                failure.print();
                progress::say(format!("{}: continues with the component that was built before", file.name));
            }
            Err(failure) => return Err(failure),
        }
        // The thread ends with the process.
        std::thread::Builder::new()
            .name(format!("build {}", file.name))
            .spawn(move || sources.rebuild())
            .map_err(Failure::running)?;
    }
    Ok(())
}

async fn serve(
    server: &mut Server,
    plugins: Vec<PathBuf>,
    kubeconfig: Option<&Path>,
    host: HostArgs,
    prepared: hosting::Prepared,
    Kept { state_dir, default_state_dir, engine, plugin_resources }: Kept,
    requests: Option<Requests>,
) -> Ended {
    let account = Account { namespace: HOST.0.to_owned(), name: HOST.1.to_owned() };
    let Connection { client: administrator, server: url, .. } = client(&server.kubeconfig(), None).await?;
    rights::of_host(&administrator, &account).await.map_err(Failure::running)?;
    crds::apply(&administrator).await.map_err(Failure::running)?;
    let token = server.token_for(&administrator, &account).await?;
    let Connection { client, metrics: client_metrics, outages, .. } =
        client(&server.kubeconfig(), Some(token)).await?;

    // The API server is ready before the file exists. The file is removed when this function returns.
    let file = KubeconfigFile::write(kubeconfig, &server.kubeconfig()).map_err(|(path, error)| {
        let context = format!("the kubeconfig {} cannot be written", path.display());
        let hint = error.hint();
        Failure::caller(anyhow::Error::new(error).context(context)).hint(hint)
    })?;
    let rights = Rights::new(administrator, account, file.path());
    Welcome { url: &url, real: server.real(), kubeconfig: file.path(), plugins: &plugins }.print(host.output);
    let provision = Some(Arc::new(rights) as Arc<dyn Provision>);
    let job = hosting::Job {
        client,
        client_metrics,
        outages,
        server: url,
        plugins,
        plugin_resources: Some(plugin_resources),
        host,
        prepared,
        engine,
        state_dir,
        default_state_dir,
        provision,
        election: None,
        drain_timeout: DRAIN_TIMEOUT,
        ends_unread: true,
        requests,
    };
    Box::pin(hosting::host(job, server.ended())).await
}

// === impl StateDir ===

impl StateDir {
    /// Returns none where no temporary folder can be made: then nothing is kept, which a host for development
    /// can do without.
    fn new(given: Option<PathBuf>, environment: &Environment) -> Result<Option<Self>, Failure> {
        if given.is_some() {
            return Ok(state_folder::state_folder(given, environment)?.map(Self::Named));
        }
        let temporary = tempfile::Builder::new().prefix("oarlock-state-").tempdir().ok();
        Ok(temporary.map(Self::Temporary))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(folder) => &folder.path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// Makes a client of the administrator's kubeconfig, or of the same with another token.
async fn client(kubeconfig: &str, token: Option<String>) -> Result<Connection, Failure> {
    let mut kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(Failure::running)?;
    if let Some(token) = token {
        for named in &mut kubeconfig.auth_infos {
            if let Some(auth) = &mut named.auth_info {
                auth.token = Some(token.clone().into());
            }
        }
    }
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .map_err(Failure::running)?;
    connect::client(config, None).map_err(Failure::running)
}
