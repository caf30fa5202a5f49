//! Accepts connections of the admin pages, within limits: a client that is slow, or opens many connections,
//! leaves room for others. Each connection is a task of its own, so that no probe waits for a page.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::certificate::Certificate;
use super::guard::Peer;
use crate::control::LAST_ANSWERS;
use crate::tasks::Tasks;

/// The limits of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The connections at a time.
    pub(super) connections: usize,
    /// The connections at a time from one address.
    pub(super) per_address: usize,
    /// The time for the handshake of TLS, and for the head of a request, from the end of the request before.
    pub(super) head: Duration,
    /// The time for all requests of one connection.
    pub(super) connection: Duration,
}

/// The longest head of a request, in bytes. A token has some kilobytes.
const MAX_HEAD: usize = 32 << 10;

/// The most headers of a request.
const MAX_HEADERS: usize = 64;

/// How long the host waits after it could not accept a connection, for example since too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The number of connections, by address.
#[derive(Clone, Debug, Default)]
struct Open(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One connection, until it is dropped.
struct Counted {
    open: Open,
    address: IpAddr,
}

/// Serves the pages until the token is cancelled, and then the answers in progress for a moment.
pub(super) async fn serve(
    listener: &TcpListener,
    certificate: Option<&Certificate>,
    pages: &Router,
    limits: Limits,
    tasks: &Tasks,
    token: &CancellationToken,
) {
    let open = Open::default();
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = token.cancelled() => break,
            Some(()) = connections.next() => {}
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok((stream, peer)) => {
                    // A connection too many is closed at once.
                    if let Some(counted) = open.count(peer, limits.per_address) {
                        let tls = certificate.map(|it| TlsAcceptor::from(it.config()));
                        let connection =
                            connection(stream, counted, tls, pages.clone(), limits, token.clone());
                        connections.push(tasks.apart(connection));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin pages cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    let rest = async { while connections.next().await.is_some() {} };
    // A client that does not read its answer delays the end for this long only.
    let _ = timeout(LAST_ANSWERS, rest).await;
}

async fn connection(
    stream: TcpStream,
    counted: Counted,
    tls: Option<TlsAcceptor>,
    pages: Router,
    limits: Limits,
    token: CancellationToken,
) {
    let pages = pages.layer(Extension(Peer(counted.address)));
    let Some(tls) = tls else {
        requests(stream, pages, limits, &token).await;
        return drop(counted);
    };
    match timeout(limits.head, tls.accept(stream)).await {
        Ok(Ok(stream)) => requests(stream, pages, limits, &token).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake with the admin pages failed"),
        Err(_) => tracing::debug!("a TLS handshake with the admin pages took too long"),
    }
    drop(counted);
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    pages: Router,
    limits: Limits,
    token: &CancellationToken,
) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    let served = std::pin::pin!(served);
    let mut served = served;
    let ended = async {
        tokio::select! {
            biased;
            ended = served.as_mut() => return ended,
            () = token.cancelled() => served.as_mut().graceful_shutdown(),
        }
        served.await
    };
    match timeout(limits.connection, ended).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection to the admin pages failed"),
        Err(_) => tracing::debug!("a connection to the admin pages was closed at its time limit"),
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            per_address: 64,
            head: Duration::from_secs(10),
            connection: Duration::from_secs(300),
        }
    }
}

// === impl Open ===

impl Open {
    /// Counts a connection, unless its address has too many.
    fn count(&self, peer: SocketAddr, limit: usize) -> Option<Counted> {
        let address = peer.ip().to_canonical();
        let mut open = self.0.lock();
        let count = open.entry(address).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Counted { open: self.clone(), address })
    }
}

// === impl Counted ===

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.open.0.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests;
