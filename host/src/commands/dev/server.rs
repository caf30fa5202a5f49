//! The API server of `oarlock dev`: the embedded one, or a real one with `--real`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use oarlock_control_plane::{Assets, ControlPlane, Launcher, Progress};
use oarlock_controller::account::Account;
use oarlock_dev_cluster::{DevCluster, faults::Fault};

use super::welcome::Real;
use crate::{args::Environment, compiled, failure::Failure, shutdown::Requests};

/// How long the host's token is valid: longer than any session of `oarlock dev`.
const TOKEN_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The two ways to get the executables of a real control plane.
const ASSETS_HINT: &str = "set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (`setup-envtest use -p path` \
                           prints one), or run `cargo xtask control-plane` in a checkout of oarlock";

/// A running API server.
pub(super) enum Server {
    Embedded(DevCluster),
    Real(Box<ControlPlane>),
}

/// Where the executables of a real control plane were found.
#[derive(Debug)]
pub(super) struct RealConfig {
    assets: Assets,
    port: u16,
}

// === impl RealConfig ===

impl RealConfig {
    /// Finds the executables: in the folder that `KUBEBUILDER_ASSETS` names, or in the user's cache.
    pub(super) fn find(environment: &Environment, port: u16, faults: &[Fault]) -> Result<Self, Failure> {
        if !faults.is_empty() {
            return Err(Failure::caller(anyhow::anyhow!(
                "--fault cannot be used with --real: only the embedded API server injects faults"
            ))
            .hint("leave out --real, or --fault"));
        }
        let named = environment.kubebuilder_assets.as_deref().filter(|path| *path != Path::new(""));
        let assets = match named {
            Some(folder) => Assets::in_folder(folder).map_err(|error| {
                Failure::caller(anyhow::Error::new(error).context("KUBEBUILDER_ASSETS cannot be used"))
                    .hint(ASSETS_HINT)
            })?,
            None => {
                compiled::caches(environment).as_deref().and_then(Assets::newest_built).ok_or_else(|| {
                    Failure::caller(anyhow::anyhow!(
                        "--real needs the executables etcd and kube-apiserver, and found none"
                    ))
                    .hint(ASSETS_HINT)
                })?
            }
        };
        Ok(Self { assets, port })
    }

    pub(super) fn assets(&self) -> &Path {
        self.assets.folder()
    }

    /// Starts the servers. Returns `None` if a request to end comes first; then nothing is left behind.
    ///
    /// Called on the main thread, since the servers end when the thread ends that started them.
    pub(super) async fn start(
        self,
        requests: &mut Option<Requests>,
        progress: impl FnMut(Progress),
    ) -> Result<Option<Server>, Failure> {
        let Self { assets, port } = self;
        let program = compiled::this_program()
            .ok_or_else(|| Failure::running(anyhow::anyhow!("the path of this program is unknown")))?;
        let launcher = Launcher { program, arguments: vec!["launch-server".into()] };
        let config = oarlock_control_plane::Config { assets, launcher, port };
        let asked_to_end = async {
            match requests {
                Some(requests) => requests.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            started = ControlPlane::start(config, progress) => match started {
                Ok(control_plane) => Ok(Some(Server::Real(Box::new(control_plane)))),
                Err(error) => Err(explain(error)),
            },
            () = asked_to_end => Ok(None),
        }
    }
}

// === impl Server ===

impl Server {
    /// Starts the embedded API server.
    pub(super) async fn embedded(port: u16, faults: Vec<Fault>) -> Result<Self, Failure> {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let config = oarlock_dev_cluster::Config { addr, faults, ..oarlock_dev_cluster::Config::default() };
        Ok(Self::Embedded(DevCluster::start(config).await.map_err(Failure::caller)?))
    }

    /// Returns the administrator's kubeconfig.
    pub(super) fn kubeconfig(&self) -> String {
        match self {
            Self::Embedded(cluster) => cluster.kubeconfig(),
            Self::Real(control_plane) => control_plane.kubeconfig(),
        }
    }

    /// Returns what the welcome says about a real server.
    pub(super) fn real(&self) -> Option<Real> {
        match self {
            Self::Embedded(_) => None,
            Self::Real(control_plane) => {
                Some(Real { version: control_plane.version().to_owned(), logs: control_plane.logs() })
            }
        }
    }

    /// Returns a token of an account that exists.
    pub(super) async fn token_for(
        &self,
        administrator: &kube::Client,
        account: &Account,
    ) -> Result<String, Failure> {
        let Account { namespace, name } = account;
        match self {
            Self::Embedded(cluster) => Ok(cluster.token_for(namespace, name)),
            Self::Real(_) => {
                let accounts = Api::<ServiceAccount>::namespaced(administrator.clone(), namespace);
                let spec =
                    Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..Default::default() });
                let request = TokenRequest { spec, ..TokenRequest::default() };
                let answer = accounts
                    .create_token_request(name, &Default::default(), &request)
                    .await
                    .map_err(Failure::running)?;
                let token = answer.status.and_then(|status| status.token);
                token.ok_or_else(|| Failure::running(anyhow::anyhow!("the API server issued no token")))
            }
        }
    }

    /// Waits until a server ends although it was not asked to.
    pub(super) async fn ended(&mut self) -> Failure {
        match self {
            Self::Embedded(_) => std::future::pending().await,
            Self::Real(control_plane) => explain(control_plane.ended().await),
        }
    }

    /// Ends the API server and removes its files.
    pub(super) async fn shut_down(self) {
        match self {
            Self::Embedded(cluster) => cluster.shut_down().await,
            Self::Real(control_plane) => control_plane.shut_down().await,
        }
    }
}

fn explain(error: oarlock_control_plane::Error) -> Failure {
    use oarlock_control_plane::Error;
    let hint = match &error {
        Error::NotRunnable { .. } => Some(
            "make it executable (chmod +x); if it is, get the build for this operating system and processor",
        ),
        Error::Missing { .. } => Some(ASSETS_HINT),
        _ => None,
    };
    let failure = match &error {
        Error::NotRunnable { .. } | Error::Missing { .. } | Error::PortInUse { .. } => Failure::caller(error),
        _ => Failure::running(error),
    };
    failure.hint_if(hint)
}
