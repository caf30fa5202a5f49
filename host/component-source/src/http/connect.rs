//! Connections, to addresses that the policy allows.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};
use tower::Service;

use crate::{
    error::{Error, Reason},
    policy::Policy,
};

/// How long resolving a name and connecting may take, with all addresses of the name.
const CONNECT: Duration = Duration::from_secs(10);
/// How many addresses of a name are tried.
const MAX_ADDRESSES: usize = 8;

/// Connects to hosts.
#[derive(Clone)]
pub(crate) struct Connector {
    policy: Arc<Policy>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{host} cannot be resolved: {error}")]
    Resolve { host: String, error: io::Error },
    #[error("{host} has the address {address}, which is not public")]
    Refused { host: String, address: IpAddr },
    #[error("no connection to {host}: {error}")]
    Connect { host: String, error: io::Error },
    #[error("no connection to {host} within {} s", CONNECT.as_secs())]
    TimedOut { host: String },
}

// === impl Connector ===

impl Connector {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self { policy }
    }

    async fn connect(self, uri: Uri) -> Result<TcpStream, ConnectError> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        match timeout(CONNECT, self.connect_to(&host, port)).await {
            Ok(result) => result,
            Err(_) => Err(ConnectError::TimedOut { host }),
        }
    }

    async fn connect_to(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let resolved = lookup_host((host, port)).await;
        let resolved = resolved.map_err(|error| ConnectError::Resolve { host: host.to_owned(), error })?;
        let mut refused = None;
        let mut failed = None;
        for address in resolved.take(MAX_ADDRESSES) {
            if !self.policy.is_address_allowed(host, address.ip()) {
                refused = Some(address.ip());
                continue;
            }
            match open(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = Some(error),
            }
        }
        let host = host.to_owned();
        Err(match (failed, refused) {
            (Some(error), _) => ConnectError::Connect { host, error },
            (None, Some(address)) => ConnectError::Refused { host, address },
            (None, None) => ConnectError::Resolve { host, error: io::Error::other("it has no address") },
        })
    }
}

async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.clone().connect(uri);
        Box::pin(async move { connecting.await.map(TokioIo::new) })
    }
}

// === impl ConnectError ===

impl ConnectError {
    pub(super) fn to_error(&self) -> Error {
        match self {
            Self::Refused { .. } => Error::new(Reason::NotAllowed, self.to_string())
                .hint("list the host or its network in privateAddresses of the source policy, if plugins may come from there"),
            Self::Resolve { .. } => Error::new(Reason::Unavailable, self.to_string())
                .hint("check the name, and the DNS of the host; the host tries again"),
            Self::Connect { .. } | Self::TimedOut { .. } => Error::new(Reason::Unavailable, self.to_string())
                .hint("check the address, and that no firewall or NetworkPolicy is in between; the host tries again"),
        }
    }
}
