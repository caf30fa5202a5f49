//! The pages for probes, Prometheus and people: `/livez`, `/readyz`, `/metrics`, `/plugins`.
//!
//! They are read-only and carry no secrets; they know nobody's right to see them, so bind them where only the cluster looks.

use std::io;
use std::net::SocketAddr;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::informers::{InformerView, Informers};
use crate::metrics::Metrics;
use crate::report::{Event, Reporter};
use crate::status::{Board, PluginStatus};

/// Why the pages are not served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Someone else listens there.
    #[error(
        "{address} is in use; stop what listens there, or choose another port with --admin-addr (port 0 takes any free one)"
    )]
    AddressInUse {
        /// Where.
        address: SocketAddr,
    },
    /// The address is not to be had.
    #[error("cannot listen on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What the pages show.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) board: Board,
    pub(crate) health: Health,
    pub(crate) informers: Informers,
    pub(crate) metrics: Metrics,
}

#[derive(Serialize)]
struct PluginsPage {
    plugins: Vec<PluginStatus>,
    informers: Vec<InformerView>,
}

/// Binds the address of the pages, so that a port in use is known before anything is started.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::AddressInUse { address },
        _ => Error::Bind { address, source },
    })
}

// === impl Admin ===

impl Admin {
    /// Serves the pages until the token is cancelled.
    pub(crate) async fn serve(self, listener: TcpListener, reporter: Reporter, token: CancellationToken) {
        if let Ok(address) = listener.local_addr() {
            reporter.report(Event::AdminListening { address: address.to_string() });
        }
        let serving = axum::serve(listener, self.router()).with_graceful_shutdown(token.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::error!(%error, "the admin pages are no longer served");
        }
    }

    fn router(self) -> Router {
        Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .route("/plugins", get(plugins))
            .with_state(self)
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let reasons = admin.health.reasons();
    if reasons.is_empty() {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n").into_response()
}

async fn metrics(State(admin): State<Admin>) -> Response {
    match admin.metrics.page() {
        Ok(page) => {
            let content = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, content)], page).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn plugins(State(admin): State<Admin>) -> Response {
    let page = PluginsPage { plugins: admin.board.snapshot(), informers: admin.informers.views() };
    Json(page).into_response()
}
