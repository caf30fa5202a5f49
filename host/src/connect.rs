//! Creates a client from a kubeconfig, or from the ServiceAccount of a Pod, and checks that it works.

mod check;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use oarlock_controller::runtime::ClientMetrics;
use oarlock_informer::list_watch::transport::{self, Outages, TokenFile};

use self::check::{Refusal, check};
use crate::{
    args::{ClusterArgs, Environment},
    failure::Failure,
    telemetry,
};

/// The source of a configuration that is not a file.
const IN_CLUSTER: &str = "this Pod's ServiceAccount";

/// What to do about a token file that has no token.
const TOKEN_FILE_HINT: &str = "check that the file exists, that this user may read it, and that its text is \
                               one token";

/// The pause between two first requests of a Pod.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// A client and the address of its API server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// What the client counts.
    pub(crate) metrics: ClientMetrics,
    /// What the client notices of outages.
    pub(crate) outages: Outages,
    /// The API server's address.
    pub(crate) server: String,
}

/// Connects as the command line says, and checks that the API server accepts the credentials. In a Pod it
/// waits for an API server that is away. See [`transport::Options::acknowledged_within`].
pub(crate) async fn connect(
    args: &ClusterArgs,
    environment: &Environment,
    acknowledged_within: Option<Duration>,
) -> Result<Connection, Failure> {
    let (config, source) = configure(args, environment).await?;
    let connection = client(config, acknowledged_within).map_err(|error| {
        let hint = matches!(error, transport::Error::TokenFile(_)).then_some(TOKEN_FILE_HINT);
        Failure::caller(anyhow::Error::new(error).context(format!("{source} cannot be used"))).hint_if(hint)
    })?;
    // A Pod that ends would be started again later and later. Other callers see the error at once.
    until_answered(source == IN_CLUSTER, async || check(&connection, &source).await).await?;
    Ok(connection)
}

/// Repeats the first request while its failure may pass, if the caller `waits`.
async fn until_answered(
    waits: bool,
    mut check: impl AsyncFnMut() -> Result<(), Refusal>,
) -> Result<(), Failure> {
    let mut was_said = false;
    while let Err(Refusal { failure, may_pass }) = check().await {
        if !waits || !may_pass {
            return Err(failure);
        }
        if !std::mem::replace(&mut was_said, true) {
            failure.print();
            telemetry::print_at_end("waiting for the API server\n".to_owned());
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    Ok(())
}

/// Creates the client of a configuration, with a User-Agent for the API server's audit log.
pub(crate) fn client(
    mut config: Config,
    acknowledged_within: Option<Duration>,
) -> Result<Connection, transport::Error> {
    let agent = concat!("oarlock/", env!("CARGO_PKG_VERSION"));
    config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let metrics = ClientMetrics::new(&server);
    let outages = Outages::default();
    let options = transport::Options {
        metrics: Some(Arc::new(metrics.clone())),
        outages: outages.clone(),
        acknowledged_within,
    };
    let client = transport::client_with(config, options)?;
    Ok(Connection { client, metrics, outages, server })
}

/// Returns the token file of a configuration, if its requests have the token in it.
pub(crate) fn token_file(config: &Config) -> Result<Option<TokenFile>, Failure> {
    // The error names the file.
    TokenFile::of(&config.auth_info).map_err(|error| Failure::caller(error).hint(TOKEN_FILE_HINT))
}

/// Finds the configuration. Also returns a description of its source.
async fn configure(args: &ClusterArgs, environment: &Environment) -> Result<(Config, String), Failure> {
    let (config, source) = user_config(args.kubeconfig.as_deref(), args.context.clone(), environment).await?;
    refuse_impersonation(&config, &source)?;
    Ok((config, source))
}

/// Finds the configuration of a user, who may impersonate another one.
pub(crate) async fn user_config(
    kubeconfig: Option<&OsStr>,
    context: Option<String>,
    environment: &Environment,
) -> Result<(Config, String), Failure> {
    let default = environment.home.as_ref().map(|home| home.join(".kube/config"));
    let given = kubeconfig.map(paths).unwrap_or_default();
    let files = match (given.as_slice(), default) {
        ([], Some(default)) if default.exists() => vec![default],
        ([], _) if environment.kubernetes_service_host.is_some() => return in_cluster(),
        ([], _) => {
            return Err(Failure::caller(anyhow::anyhow!(
                "no kubeconfig was found, and this process does not run in a Pod"
            ))
            .hint(
                "name one with --kubeconfig or KUBECONFIG; or use `oarlock dev`, which starts an API server",
            ));
        }
        (given, _) => existing(given),
    };
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let skipped = if files.len() < given.len() { ", without files that do not exist" } else { "" };
    let source = format!("kubeconfig {}{skipped}", names.join(", "));
    let config = from_files(&files, context).await.map_err(|error| explain(error, &source))?;
    Ok((config, source))
}

/// Of several files, returns those that exist, as kubectl does. All if none does.
fn existing(files: &[PathBuf]) -> Vec<PathBuf> {
    let existing: Vec<_> = files.iter().filter(|file| file.try_exists().unwrap_or(true)).cloned().collect();
    if existing.is_empty() { files.to_vec() } else { existing }
}

async fn from_files(files: &[PathBuf], context: Option<String>) -> Result<Config, KubeconfigError> {
    let merged = files
        .iter()
        .try_fold(Kubeconfig::default(), |merged, file| merged.merge(Kubeconfig::read_from(file)?))?;
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(merged, &options).await
}

fn in_cluster() -> Result<(Config, String), Failure> {
    let config = Config::incluster().map_err(|error| {
        Failure::caller(anyhow::Error::new(error).context("this Pod's ServiceAccount cannot be used"))
            .hint("the Pod needs automountServiceAccountToken, or give --kubeconfig")
    })?;
    Ok((config, IN_CLUSTER.to_owned()))
}

/// Refuses a kubeconfig that impersonates a user. Its headers would replace those with which the host
/// impersonates the plugins' accounts, and every plugin would act as that user.
fn refuse_impersonation(config: &Config, source: &str) -> Result<(), Failure> {
    let AuthInfo { impersonate, impersonate_uid, impersonate_groups, impersonate_user_extra, other, .. } =
        &config.auth_info;
    let key = match () {
        () if impersonate.is_some() => "as",
        () if impersonate_uid.is_some() => "as-uid",
        () if impersonate_groups.is_some() => "as-groups",
        () if impersonate_user_extra.is_some() => "as-user-extra",
        // Keys of later versions of kubectl.
        () => match other.keys().find(|key| key.starts_with("as-")) {
            Some(key) => key,
            None => return Ok(()),
        },
    };
    Err(Failure::caller(anyhow::anyhow!("{source} impersonates another user (`{key}`)")).hint(
        "oarlock impersonates each plugin's ServiceAccount itself: use credentials of the host's own account",
    ))
}

fn explain(error: KubeconfigError, source: &str) -> Failure {
    let (what, hint) = match &error {
        KubeconfigError::ReadConfig(io, _) if io.kind() == std::io::ErrorKind::NotFound => {
            ("does not exist", "name another with --kubeconfig or KUBECONFIG")
        }
        KubeconfigError::ReadConfig(io, _) if io.kind() == std::io::ErrorKind::IsADirectory => {
            ("is a folder", "name the file in it with --kubeconfig or KUBECONFIG")
        }
        KubeconfigError::ReadConfig(io, _) if io.kind() == std::io::ErrorKind::InvalidData => {
            ("is not a text file", "a kubeconfig is YAML: name another file with --kubeconfig or KUBECONFIG")
        }
        KubeconfigError::ReadConfig(..) => ("cannot be read", "check that this user may read the file"),
        KubeconfigError::CurrentContextNotSet => {
            ("names no current context", "set one with `kubectl config use-context`, or give --context")
        }
        KubeconfigError::LoadContext(_) => {
            ("has no such context", "`kubectl config get-contexts` lists them")
        }
        KubeconfigError::LoadCertificateAuthority(_)
        | KubeconfigError::LoadClientCertificate(_)
        | KubeconfigError::LoadClientKey(_)
        | KubeconfigError::ParseCertificates(_) => {
            ("names certificates that cannot be used", "check that the files exist and contain PEM")
        }
        _ => ("is malformed", "`kubectl config view` shows how kubectl reads it"),
    };
    let error = match error {
        // The library's message would repeat the path.
        KubeconfigError::ReadConfig(io, _) => anyhow::Error::new(io),
        other => anyhow::Error::new(other),
    };
    Failure::caller(error.context(format!("{source} {what}"))).hint(hint)
}

fn paths(list: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(list).filter(|path| path != Path::new("")).collect()
}

#[cfg(test)]
mod tests;
