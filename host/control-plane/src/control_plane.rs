//! One etcd and one kube-apiserver, from the first process to the removal of their folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::assets::{ETCD, KUBE_APISERVER};
use crate::credentials::Credentials;
use crate::folder::Folder;
use crate::port::Port;
use crate::server::Server;
use crate::{Assets, Error, Launcher};

/// Describes the control plane to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The executables.
    pub assets: Assets,
    /// The program that starts them.
    pub launcher: Launcher,
    /// The API server's port on 127.0.0.1. 0 for any that is free.
    pub port: u16,
}

/// A server has become ready.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// `etcd` or `kube-apiserver`.
    pub program: &'static str,
    /// The time from its start.
    pub took: Duration,
}

/// A running control plane. Dropping it kills both servers, waits for them, and removes their files.
///
/// The servers also end when the thread that started them ends, however it ends: start a control plane from
/// the main thread, or from the thread of the test that uses it.
#[derive(Debug)]
pub struct ControlPlane {
    // Declared in the order in which they have to be dropped: the servers before their folder.
    /// None while it is stopped.
    api_server: Option<Server>,
    etcd: Server,
    etcd_url: String,
    /// For clients and for other members.
    _etcd_ports: [Port; 2],
    port: Port,
    version: String,
    config: Config,
    credentials: Credentials,
    folder: Folder,
}

/// What [`ControlPlane::start`] has started while it holds the folder.
struct Started {
    api_server: Server,
    etcd: Server,
    etcd_url: String,
    etcd_ports: [Port; 2],
    version: String,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts both servers, and returns when the API server is ready. `progress` is called for each server.
    ///
    /// If the returned future is dropped, both servers end and their files are removed.
    ///
    /// # Errors
    ///
    /// When a server cannot be run, ends before it is ready, or is not ready in time. Logs that the error
    /// names are kept.
    pub async fn start(config: Config, progress: impl FnMut(Progress)) -> Result<Self, Error> {
        let port = Port::keep(config.port)?;
        let mut folder = Folder::new()?;
        let credentials = Credentials::write(folder.credentials())?;
        match start(&config, port.number(), &credentials, &folder, progress).await {
            Ok(Started { api_server, etcd, etcd_url, etcd_ports: _etcd_ports, version }) => {
                let api_server = Some(api_server);
                Ok(Self {
                    api_server,
                    etcd,
                    etcd_url,
                    _etcd_ports,
                    port,
                    version,
                    config,
                    credentials,
                    folder,
                })
            }
            Err(error) => {
                if matches!(error, Error::Ended { .. } | Error::NotReady { .. }) {
                    folder.keep_logs();
                }
                Err(error)
            }
        }
    }

    /// Returns the API server's address, such as `https://127.0.0.1:37241`.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port.number())
    }

    /// Returns the administrator's kubeconfig, as YAML.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.credentials.kubeconfig(&self.url())
    }

    /// Returns the version that the API server reports, such as `v1.36.2`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the folder with the logs of both servers.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.folder.logs()
    }

    /// Returns the API server's audit log: a line of JSON for each request that changes something, with its
    /// user, also that of an impersonation. Its oldest half is removed from 200 MB on.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.audit_log()
    }

    /// Waits until a server ends by itself, and returns the reason. The logs are then kept.
    pub async fn ended(&mut self) -> Error {
        let Self { api_server, etcd, folder, .. } = self;
        let api_server = async {
            match api_server {
                Some(api_server) => api_server.ended().await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            error = etcd.ended() => error,
            error = api_server => error,
        };
        folder.keep_logs();
        error
    }

    /// Kills the API server. etcd keeps running.
    pub async fn stop_api_server(&mut self) {
        if let Some(api_server) = self.api_server.take() {
            api_server.kill().await;
        }
    }

    /// Kills the API server and starts it again on the same port, with the same etcd. Returns when it is
    /// ready.
    ///
    /// # Errors
    ///
    /// When it does not become ready. Its logs are then kept.
    pub async fn restart_api_server(&mut self) -> Result<(), Error> {
        self.stop_api_server().await;
        let Self { config, port, credentials, folder, etcd_url, .. } = self;
        match start_api_server(config, port.number(), credentials, folder, etcd_url).await {
            Ok((api_server, _, _)) => {
                self.api_server = Some(api_server);
                Ok(())
            }
            Err(error) => {
                self.folder.keep_logs();
                Err(error)
            }
        }
    }

    /// Ends both servers and removes their files.
    pub async fn shut_down(mut self) {
        self.stop_api_server().await;
        let Self { etcd, folder, .. } = self;
        etcd.kill().await;
        drop(folder);
    }
}

async fn start(
    config: &Config,
    port: u16,
    credentials: &Credentials,
    folder: &Folder,
    mut progress: impl FnMut(Progress),
) -> Result<Started, Error> {
    let etcd_ports = [Port::keep(0)?, Port::keep(0)?];
    let [etcd_port, peer_port] = etcd_ports.each_ref().map(Port::number);
    let etcd_url = format!("http://127.0.0.1:{etcd_port}");
    let peer_url = format!("http://127.0.0.1:{peer_port}");
    let arguments = [
        "--name=oarlock".to_owned(),
        format!("--listen-client-urls={etcd_url}"),
        format!("--advertise-client-urls={etcd_url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=oarlock={peer_url}"),
        // Every write would wait for the disk otherwise, and the data is removed at the end.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
        "--quota-backend-bytes=4294967296".to_owned(),
    ];
    let arguments = arguments.into_iter().map(OsString::from).chain([flag("--data-dir", &folder.data())]);
    let Config { assets, launcher, port: _ } = config;
    let mut etcd = Server::start(ETCD, assets.path(ETCD), launcher, &folder.logs(), arguments)?;
    let uri = etcd_url.parse().map_err(|_| Error::PortInUse { port })?;
    let client = Client::try_from(kube::Config::new(uri))?;
    progress(Progress { program: ETCD, took: etcd.ready(&client, etcd_port, "/health").await? });

    let (api_server, client, took) = start_api_server(config, port, credentials, folder, &etcd_url).await?;
    progress(Progress { program: KUBE_APISERVER, took });
    let version = client.apiserver_version().await?.git_version;
    Ok(Started { api_server, etcd, etcd_url, etcd_ports, version })
}

/// Returns the API server, an administrator's client, and the time until it was ready.
async fn start_api_server(
    config: &Config,
    port: u16,
    credentials: &Credentials,
    folder: &Folder,
    etcd_url: &str,
) -> Result<(Server, Client, Duration), Error> {
    let arguments = [
        format!("--etcd-servers={etcd_url}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--max-requests-inflight=2000".to_owned(),
        "--max-mutating-requests-inflight=1000".to_owned(),
        "--audit-log-maxsize=100".to_owned(),
        "--audit-log-maxbackup=1".to_owned(),
    ];
    let files = [
        ("--tls-cert-file", "server.crt"),
        ("--tls-private-key-file", "server.key"),
        ("--client-ca-file", "ca.crt"),
        ("--token-auth-file", "tokens.csv"),
        ("--service-account-key-file", "service-account.pub"),
        ("--service-account-signing-key-file", "service-account.key"),
        ("--cert-dir", "self-signed"),
    ];
    let files = files.map(|(name, file)| flag(name, &credentials.path(file)));
    let audit = [
        flag("--audit-policy-file", &folder.write_audit_policy()?),
        flag("--audit-log-path", &folder.audit_log()),
    ];
    let arguments = arguments.into_iter().map(OsString::from).chain(files).chain(audit);
    let Config { assets, launcher, port: _ } = config;
    let path = assets.path(KUBE_APISERVER);
    let mut api_server = Server::start(KUBE_APISERVER, path, launcher, &folder.logs(), arguments)?;
    let kubeconfig = Kubeconfig::from_yaml(&credentials.kubeconfig(&url(port)))?;
    let options = KubeConfigOptions::default();
    let client = Client::try_from(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?)?;
    let took = api_server.ready(&client, port, "/readyz").await?;
    Ok((api_server, client, took))
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(format!("{name}="));
    flag.push(path);
    flag
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}
