//! The handle of a running server.

use crate::authn::TokenIdentity;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::faults::Faults;
use crate::in_process::Requests;
use crate::server;
use crate::state::State;
use crate::tasks::Tasks;
use crate::tls::Identity;
use crate::user::UserInfo;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("port {} of {} is in use: choose another port, or 0 for a free one", .0.port(), .0.ip())]
    AddressInUse(SocketAddr),
    #[error("cannot listen on {addr}")]
    Listen {
        addr: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot create the server's certificate")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot create the initial objects")]
    Bootstrap(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// An API server in this process. Dropping it ends the server and discards its objects.
#[derive(Debug)]
pub struct DevCluster {
    cluster: Arc<Cluster>,
    tasks: Tasks,
    addr: SocketAddr,
    ca_pem: String,
    admin_token: String,
}

// === impl DevCluster ===

impl DevCluster {
    /// Starts a server. The server accepts requests when this returns.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let addr = config.addr;
        let listener = TcpListener::bind(addr).await.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse(addr),
            _ => Error::Listen { addr, source },
        })?;
        let addr = listener.local_addr().map_err(|source| Error::Listen { addr, source })?;
        let identity = Identity::generate(vec![addr.ip().to_string()])
            .map_err(|error| Error::Certificate(Box::new(error)))?;
        let State { cluster, tasks, admin_token } = State::new(config)?;
        let acceptor = TlsAcceptor::from(identity.config);
        tasks.spawn(server::run(listener, acceptor, cluster.clone(), tasks.clone()));
        Ok(Self { cluster, tasks, addr, ca_pem: identity.ca_pem, admin_token })
    }

    /// Returns the address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `https://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    /// Returns the CA certificate that signed the server's certificate, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the administrator's token, which is allowed everything.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// Answers the requests of the administrator in this process, without a connection.
    #[must_use]
    pub fn as_admin(&self) -> Requests {
        Requests::new(self.cluster.clone(), &self.addr.to_string(), &self.admin_token)
    }

    /// Issues a token for a ServiceAccount. The account need not exist, and the token stays valid without it;
    /// a token from a TokenRequest does not.
    pub fn token_for(&self, namespace: &str, name: &str) -> String {
        self.cluster.tokens.issue(TokenIdentity::new(UserInfo::service_account(namespace, name), None))
    }

    /// Returns a kubeconfig for the administrator.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_with("admin", &self.admin_token)
    }

    /// Returns a kubeconfig for a user with this token.
    pub fn kubeconfig_with(&self, user: &str, token: &str) -> String {
        let ca = STANDARD.encode(&self.ca_pem);
        let url = self.url();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: oarlock-dev\nclusters:\n- name: oarlock-dev\n  cluster:\n    \
             server: {url}\n    certificate-authority-data: {ca}\nusers:\n- name: {user}\n  user:\n    token: {token}\n\
             contexts:\n- name: oarlock-dev\n  context:\n    cluster: oarlock-dev\n    user: {user}\n    namespace: \
             default\n"
        )
    }

    /// Returns the faults of this server, to add and remove them.
    pub fn faults(&self) -> &Faults {
        &self.cluster.faults
    }

    /// Changes the number of events that the server keeps per resource.
    pub fn set_history_limit(&self, limit: usize) {
        self.cluster.store.set_history_limit(limit);
    }

    /// Forgets all events: every earlier resourceVersion is expired.
    pub fn forget_history(&self) {
        self.cluster.store.compact();
    }

    /// Returns the newest resourceVersion.
    pub fn revision(&self) -> u64 {
        self.cluster.store.revision()
    }

    /// Ends every connection, and waits until all tasks have ended.
    pub async fn shut_down(self) {
        self.tasks.shut_down().await;
    }
}

impl Drop for DevCluster {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}
