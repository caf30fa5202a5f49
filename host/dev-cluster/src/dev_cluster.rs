//! The handle on a running server.

use crate::authn::Known;
use crate::authorizer::bootstrap_objects;
use crate::call::now;
use crate::cluster::Cluster;
use crate::collector;
use crate::config::Config;
use crate::faults::Faults;
use crate::model::FieldValidation;
use crate::namespaces;
use crate::server;
use crate::services;
use crate::status::StatusError;
use crate::tasks::Tasks;
use crate::tls::{self, Identity};
use crate::user::{MASTERS, UserInfo};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("port {} of {} is in use: choose another, or 0 for any that is free", .0.port(), .0.ip())]
    AddressInUse(SocketAddr),
    #[error("cannot listen on {addr}")]
    Listen {
        addr: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error("cannot make the first objects")]
    Bootstrap(#[from] StatusError),
}

/// An API server in this process. It ends when this is dropped, and everything in it is gone then.
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
    /// Starts a server; it answers when this returns.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let Config { addr, history_limit, bookmark_interval, garbage_collection, admin_token, faults } =
            config;
        let listener = TcpListener::bind(addr).await.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse(addr),
            _ => Error::Listen { addr, source },
        })?;
        let addr = listener.local_addr().map_err(|source| Error::Listen { addr, source })?;
        let identity = Identity::generate(vec![addr.ip().to_string()])?;
        let cluster = Arc::new(Cluster::new(history_limit, bookmark_interval));
        bootstrap(&cluster)?;
        for fault in faults {
            cluster.faults.add(fault);
        }
        let admin = UserInfo::new("kubernetes-admin", [MASTERS]);
        let admin_token = match admin_token {
            Some(token) => {
                cluster.tokens.accept(token.clone(), Known::new(admin, None));
                token
            }
            None => cluster.tokens.issue(Known::new(admin, None)),
        };
        let tasks = Tasks::default();
        if garbage_collection {
            let (sender, notices) = mpsc::unbounded_channel();
            cluster.store.send_notices(sender);
            tasks.spawn(collector::run(cluster.clone(), notices));
        }
        let acceptor = TlsAcceptor::from(identity.config);
        tasks.spawn(server::run(listener, acceptor, cluster.clone(), tasks.clone()));
        Ok(Self { cluster, tasks, addr, ca_pem: identity.ca_pem, admin_token })
    }

    /// Returns where the server listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `https://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    /// Returns the certificate of the authority that signed the server's.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the token of the administrator, who may do everything.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// Returns a new token of a ServiceAccount. The account need not be there (yet), and the token does not die with it: those
    /// do that a TokenRequest is answered with.
    pub fn token_for(&self, namespace: &str, name: &str) -> String {
        self.cluster.tokens.issue(Known::new(UserInfo::service_account(namespace, name), None))
    }

    /// Returns a kubeconfig for the administrator.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_with("admin", &self.admin_token)
    }

    /// Returns a kubeconfig for the holder of a token.
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

    /// Returns what can be made to go wrong.
    pub fn faults(&self) -> &Faults {
        &self.cluster.faults
    }

    /// Changes how many events of each resource are remembered.
    pub fn set_history_limit(&self, limit: usize) {
        self.cluster.store.set_history_limit(limit);
    }

    /// Forgets the history: every version from before is expired.
    pub fn forget_history(&self) {
        self.cluster.store.compact();
    }

    /// Returns the newest resourceVersion.
    pub fn revision(&self) -> u64 {
        self.cluster.store.revision()
    }

    /// Ends every connection and waits until that is done.
    pub async fn shut_down(self) {
        self.tasks.shut_down().await;
    }
}

impl Drop for DevCluster {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// Makes the first namespaces, with their accounts, and the roles that every cluster has.
fn bootstrap(cluster: &Cluster) -> Result<(), StatusError> {
    cluster.write(false, |transaction, served| {
        let missing = || StatusError::internal("a built-in resource is missing");
        let namespaces = served.builtin("", "namespaces").ok_or_else(missing)?;
        for name in namespaces::INITIAL {
            let mut namespace = json!({
                "metadata": {"name": name, "uid": "", "resourceVersion": "", "creationTimestamp": "",
                             "labels": {"kubernetes.io/metadata.name": name}},
            });
            identify(&mut namespace);
            namespaces.model.prepare_create(&mut namespace);
            transaction.put(namespaces, name, namespace);
            namespaces::furnish(transaction, served, name)?;
        }
        let services = served.builtin("", "services").ok_or_else(missing)?;
        let mut own = services.model.decode(services::of_the_server(), FieldValidation::Ignore)?.object;
        services.model.prepare_create(&mut own);
        identify(&mut own);
        transaction.put(services, "default/kubernetes", own);
        for mut object in bootstrap_objects() {
            let kind = object["kind"].as_str().unwrap_or_default();
            let resource =
                served.resources().iter().find(|resource| resource.kind == kind).ok_or_else(missing)?;
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let key = resource.key(text("/metadata/namespace"), text("/metadata/name"));
            identify(&mut object);
            transaction.put(resource, &key, object);
        }
        Ok(())
    })
}

fn identify(object: &mut Value) {
    object["metadata"]["uid"] = uuid::Uuid::new_v4().to_string().into();
    object["metadata"]["resourceVersion"] = "".into();
    object["metadata"]["creationTimestamp"] = now().into();
}
