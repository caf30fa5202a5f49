//! The host of a cluster: the one that leads, through a port-forward to its Pod; or an address that the user
//! gives.
//!
//! What is verified: through the port-forward, the API server proves with its own certificate that this is
//! the cluster of the kubeconfig, and connects to the Pod that the Lease names. The certificate of the admin
//! address inside is not verified: the host makes it by itself unless it is given one, and no authority knows
//! it. So who controls the node or the network of the Pod could read the token. At an address of the user,
//! the certificate is verified, unless he says otherwise.

use std::process::Stdio;
use std::rc::Rc;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use http::HeaderValue;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::client::ConfigExt;
use kube::{Api, Client};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, rustls};

use super::{CONNECT_LIMIT, Names};
use crate::failure::Failure;
use crate::kubectl::failure as api_failure;

/// The name of the Lease, of the container's port, and of the port without a name in the Pod.
const LEASE: &str = "oarlock";
const PORT_NAME: &str = "admin";
const DEFAULT_PORT: u16 = 8443;

/// How long kubectl may take to forward a port.
const FORWARD_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// How to reach the host of a cluster.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) address: Address,
    pub(crate) names: Names,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) credentials: Credentials,
}

/// The token that the host is shown, and where another one comes from when this one has expired.
#[derive(Clone)]
pub(crate) struct Credentials {
    source: Rc<dyn Fn() -> LocalBoxFuture<'static, Result<HeaderValue, Failure>>>,
    header: HeaderValue,
}

/// Where the host is.
#[derive(Clone)]
pub(crate) enum Address {
    /// `HOST:PORT`, and the name in the certificate.
    Given {
        authority: String,
        name: ServerName<'static>,
    },
    Leader(Leader),
}

/// The host that leads.
#[derive(Clone)]
pub(crate) struct Leader {
    pub(crate) client: Client,
    /// The namespace of the host.
    pub(crate) namespace: String,
    /// The files and the context with which kubectl reaches the same cluster.
    pub(crate) kubeconfig: Option<std::ffi::OsString>,
    pub(crate) context: Option<String>,
}

/// A running `kubectl port-forward`, which ends with this value.
pub(crate) struct Tunnel {
    _kubectl: Child,
}

// === impl Remote ===

impl Remote {
    /// Connects. The tunnel must live as long as the connection.
    pub(super) async fn connect(&self) -> Result<(TlsStream<TcpStream>, Option<Tunnel>), Failure> {
        let (authority, name, tunnel) = match &self.address {
            Address::Given { authority, name } => (authority.clone(), name.clone(), None),
            Address::Leader(leader) => {
                let (tunnel, port) = leader.forward().await?;
                (format!("127.0.0.1:{port}"), ServerName::from(std::net::Ipv4Addr::LOCALHOST), Some(tunnel))
            }
        };
        let connecting = async {
            let stream = TcpStream::connect(&authority).await?;
            TlsConnector::from(self.tls.clone()).connect(name, stream).await
        };
        let error = match timeout(CONNECT_LIMIT, connecting).await {
            Ok(Ok(stream)) => return Ok((stream, tunnel)),
            Ok(Err(error)) => anyhow::Error::new(error),
            Err(_) => anyhow::anyhow!("no answer within {} s", CONNECT_LIMIT.as_secs()),
        };
        let is_certificate = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref())
            .and_then(|error| error.downcast_ref::<rustls::Error>())
            .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
        let failure = Failure::running(error.context(format!("{} cannot be reached", self.address)));
        Err(match &self.address {
            Address::Given { .. } if is_certificate => failure.hint(
                "name the authority of the host's certificate with --certificate-authority; the host makes a certificate \
                 that no authority knows unless it has --admin-cert-file",
            ),
            Address::Given { .. } => {
                failure.hint("--server-address takes https://HOST:PORT, the host's --admin-addr or a Service before it")
            }
            Address::Leader(_) => failure.hint("the host may end at this moment: try again"),
        })
    }
}

// === impl Credentials ===

impl Credentials {
    /// Gets a first header from the source. Headers are marked as sensitive, so that no debug output shows
    /// them.
    pub(crate) async fn new<F>(source: impl Fn() -> F + 'static) -> Result<Self, Failure>
    where
        F: Future<Output = Result<HeaderValue, Failure>> + 'static,
    {
        let mut header = source().await?;
        header.set_sensitive(true);
        Ok(Self { source: Rc::new(move || Box::pin(source())), header })
    }

    /// Returns the `Authorization` header.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Gets another header. Returns false if the source has no other one.
    pub(crate) async fn renew(&mut self) -> Result<bool, Failure> {
        let mut header = (self.source)().await?;
        header.set_sensitive(true);
        let is_another = header != self.header;
        self.header = header;
        Ok(is_another)
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote({})", self.address)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Given { authority, .. } => write!(f, "https://{authority}"),
            Self::Leader(leader) => write!(f, "the host in namespace {}", leader.namespace),
        }
    }
}

// === impl Leader ===

impl Leader {
    /// Forwards a free port of this machine to the admin port of the leader's Pod.
    ///
    /// kubectl does it: the user runs this command with kubectl, and kubectl knows every way to log in and to
    /// pass a proxy.
    async fn forward(&self) -> Result<(Tunnel, u16), Failure> {
        let (pod, port) = self.pod().await?;
        let mut command = Command::new("kubectl");
        if let Some(files) = &self.kubeconfig {
            // The flag of kubectl takes only one file.
            command.env("KUBECONFIG", files);
        }
        if let Some(context) = &self.context {
            command.args(["--context", context]);
        }
        command.args(["port-forward", "--namespace", &self.namespace]);
        command.arg("--address=127.0.0.1").arg(format!("pod/{pod}")).arg(format!(":{port}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut kubectl = command.spawn().map_err(|error| {
            Failure::caller(anyhow::Error::new(error).context("kubectl cannot be started"))
                .hint("put kubectl into a folder of PATH, or give --server-address")
        })?;
        let mut line = String::new();
        if let Some(stdout) = kubectl.stdout.take() {
            let mut stdout = BufReader::new(stdout);
            let read = timeout(FORWARD_LIMIT, stdout.read_line(&mut line)).await;
            if let Some(port) = forwarded_port(&line) {
                // kubectl writes a line for each connection: an end that is closed would end it.
                kubectl.stdout = Some(stdout.into_inner());
                return Ok((Tunnel { _kubectl: kubectl }, port));
            }
            if read.is_err() {
                return Err(self.not_forwarded(&pod, "no answer in time"));
            }
        }
        let mut text = String::new();
        if let Some(stderr) = kubectl.stderr.take() {
            // The process has closed its output, so it ends.
            let _ = timeout(CONNECT_LIMIT, stderr.take(64 << 10).read_to_string(&mut text)).await;
        }
        Err(self.not_forwarded(&pod, text.trim()))
    }

    fn not_forwarded(&self, pod: &str, why: &str) -> Failure {
        let namespace = &self.namespace;
        let failure = Failure::caller(anyhow::anyhow!("no port-forward to Pod {namespace}/{pod}: {why}"));
        if why.to_ascii_lowercase().contains("forbidden") {
            return failure.hint(connect_hint(namespace));
        }
        failure.hint(format!("kubectl port-forward --namespace {namespace} pod/{pod} :8443 shows more; or give --server-address"))
    }

    /// Returns the Pod of the leader, and its admin port.
    async fn pod(&self) -> Result<(String, u16), Failure> {
        let Self { client, namespace, .. } = self;
        let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
        let hint = "name the namespace of the host with --host-namespace; a host without --leader-elect, such as \
                    `oarlock dev`, has no Lease: use `oarlock` on its machine";
        let lease = match leases.get_opt(LEASE).await {
            Ok(Some(lease)) => lease,
            Ok(None) => {
                let error = anyhow::anyhow!("no host is in namespace {namespace}: it has no Lease {LEASE}");
                return Err(Failure::caller(error).hint(hint));
            }
            Err(error) => return Err(forbidden(error, namespace, "the Lease of the host")),
        };
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        // HOSTNAME_RANDOM: a Pod's host name is its name.
        let pod = holder.rsplit_once('_').map_or("", |(pod, _)| pod).to_owned();
        if pod.is_empty() {
            let error =
                anyhow::anyhow!("no host leads at this moment: the Lease {namespace}/{LEASE} has no holder");
            return Err(Failure::running(error)
                .hint(format!("kubectl get pods --namespace {namespace} shows the hosts")));
        }
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        match pods.get_opt(&pod).await {
            Ok(Some(found)) => Ok((pod, admin_port(&found))),
            Ok(None) => {
                let error = anyhow::anyhow!(
                    "the host that led is gone: the Lease {namespace}/{LEASE} names the Pod {pod}, which does not exist"
                );
                Err(Failure::running(error).hint(
                    "another host takes over within the time of the Lease: try again; a host outside of the cluster is \
                     reached with --server-address",
                ))
            }
            Err(error) => Err(forbidden(error, namespace, "the Pod of the host")),
        }
    }
}

fn forbidden(error: kube::Error, namespace: &str, what: &str) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            let error = anyhow::anyhow!("{what} may not be read: {}", status.message);
            Failure::caller(error).hint(connect_hint(namespace))
        }
        error => api_failure(error),
    }
}

fn connect_hint(namespace: &str) -> String {
    format!(
        "kubectl create rolebinding NAME --role=oarlock-connect --user=USER --namespace={namespace} grants it; or give \
         --server-address"
    )
}

fn admin_port(pod: &Pod) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let mut named = ports.filter(|port| port.name.as_deref() == Some(PORT_NAME));
    named.next().and_then(|port| u16::try_from(port.container_port).ok()).unwrap_or(DEFAULT_PORT)
}

/// Returns the port of `Forwarding from 127.0.0.1:PORT -> 8443`.
fn forwarded_port(line: &str) -> Option<u16> {
    line.strip_prefix("Forwarding from 127.0.0.1:")?.split(' ').next()?.parse().ok()
}

/// Returns how the host's certificate is verified: by these authorities (PEM), by those of the system, or not
/// at all.
pub(crate) fn trust(authorities: Option<Vec<u8>>, is_unverified: bool) -> Result<Arc<ClientConfig>, Failure> {
    let mut config = kube::Config::new(http::Uri::from_static("https://localhost"));
    config.accept_invalid_certs = is_unverified;
    if let Some(pem) = authorities {
        use rustls::pki_types::{CertificateDer, pem::PemObject};
        let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let parsed = parsed.map_err(|error| Failure::caller(anyhow::anyhow!("{error}")))?;
        if parsed.is_empty() {
            return Err(Failure::caller(anyhow::anyhow!("it contains no certificate in PEM")));
        }
        config.root_cert = Some(parsed.into_iter().map(|it| it.to_vec()).collect());
    }
    config.rustls_client_config().map(Arc::new).map_err(Failure::running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forwarded_port_is_that_of_kubectls_first_line() {
        assert_eq!(forwarded_port("Forwarding from 127.0.0.1:41234 -> 8443\n"), Some(41234));
        for other in ["", "Forwarding from [::1]:41234 -> 8443", "Forwarding from 127.0.0.1:x -> 8443"] {
            assert_eq!(forwarded_port(other), None, "{other}");
        }
    }

    #[test]
    fn the_admin_port_is_the_one_with_its_name() {
        let pod = |ports: serde_json::Value| -> Pod {
            serde_json::from_value(
                serde_json::json!({"spec": {"containers": [{"name": "a", "ports": ports}]}}),
            )
            .unwrap()
        };
        let named = pod(serde_json::json!([{"containerPort": 1}, {"name": "admin", "containerPort": 9443}]));
        assert_eq!((admin_port(&named), admin_port(&pod(serde_json::json!([])))), (9443, 8443));
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        assert!(trust(Some(b"text".to_vec()), false).is_err());
        assert!(trust(None, true).is_ok());
    }

    #[tokio::test]
    async fn debug_output_never_shows_the_token() {
        let credentials = Credentials::new(async || Ok(HeaderValue::from_static("Bearer canary")));
        let credentials = credentials.await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let address = Address::Given { authority: "localhost:1".to_owned(), name };
        let remote = Remote { address, names: Names::All, tls: trust(None, true).unwrap(), credentials };
        assert!(!format!("{remote:?} {:?}", remote.credentials.header()).contains("canary"));
    }
}
