//! Accepts connections with TLS, and serves HTTP/1.1 and HTTP/2 on them.

use crate::cluster::Cluster;
use crate::service;
use crate::tasks::Tasks;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, sleep};
use tokio_rustls::TlsAcceptor;

/// Accepts connections until the server is shut down.
pub(crate) async fn run(listener: TcpListener, acceptor: TlsAcceptor, cluster: Arc<Cluster>, tasks: Tasks) {
    let address: Arc<str> =
        listener.local_addr().map(|address| address.to_string()).unwrap_or_default().into();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection =
                    connection(stream, acceptor.clone(), cluster.clone(), address.clone(), tasks.clone());
                tasks.spawn(connection);
            }
            Err(error) => {
                // For example too many open files, which is temporary.
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    cluster: Arc<Cluster>,
    address: Arc<str>,
    tasks: Tasks,
) {
    let mut dropped = cluster.faults.connection_drops();
    if cluster.faults.is_away() {
        return;
    }
    // Without TCP_NODELAY, small writes of a watch wait for acknowledgements.
    let _ = stream.set_nodelay(true);
    let serve = async {
        let stream = match acceptor.accept(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "the TLS handshake failed");
                return;
            }
        };
        let answer = service_fn(|request| {
            let response = service::serve(cluster.clone(), address.clone(), request);
            async move { Ok::<_, Infallible>(response.await) }
        });
        let mut builder = Builder::new(tasks);
        builder.http1().timer(TokioTimer::new());
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(1000)
            .initial_stream_window_size(1024 * 1024)
            .initial_connection_window_size(4 * 1024 * 1024);
        if let Err(error) = builder.serve_connection(TokioIo::new(stream), answer).await {
            tracing::debug!(%error, "a connection failed");
        }
    };
    tokio::select! {
        () = serve => {}
        _ = dropped.recv() => {}
    }
}
