//! The admin pages: `/livez`, `/readyz`, `/metrics`, `/plugins`, and `/`, which links them; and the control
//! operations that read, under `/v1`.
//!
//! The pages are read-only and contain no secrets. They check no credentials, so bind them to an address that
//! only the cluster can reach.

mod healthz;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::control::{self, Control};
use crate::health::Health;
use crate::informers::{BudgetView, InformerView, Informers};
use crate::metrics::{Exposition, Metrics};
use crate::report::{self, HostEvent, Reporter};
use crate::status::{PluginStatus, RefusedFile, StatusRegistry};

/// Why the pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process listens on the address.
    #[error(
        "another process listens on {address}: stop it, or choose another port with --admin-addr (port 0 takes any free port)"
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses the address.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error.
        #[source]
        source: io::Error,
    },
}

/// Serves the pages from the state of these parts.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) statuses: StatusRegistry,
    pub(crate) health: Health,
    pub(crate) informers: Informers,
    pub(crate) metrics: Metrics,
    pub(crate) control: Control,
}

#[derive(Serialize)]
struct PluginsPage {
    plugins: Vec<PluginStatus>,
    #[serde(rename = "refused-files")]
    refused_files: Vec<RefusedFile>,
    informers: Vec<InformerView>,
    budget: BudgetView,
}

/// Binds the address of the pages, so that a port in use is an error before the host starts.
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
            reporter.report(HostEvent::AdminListening { address: address.to_string() });
        }
        let until_asked = token.clone().cancelled_owned();
        let serving = axum::serve(listener, self.router()).with_graceful_shutdown(until_asked);
        control::serve_until(serving, token).await;
    }

    fn router(self) -> Router {
        let control = control::reading(self.control.clone());
        Router::new()
            .route("/", get(index))
            .route("/livez", get(livez))
            .route("/livez/{check}", get(live_check))
            .route("/readyz", get(readyz))
            .route("/readyz/{check}", get(ready_check))
            .route("/metrics", get(metrics))
            .route("/plugins", get(plugins))
            .with_state(self)
            .merge(control)
    }
}

async fn index() -> Html<String> {
    let pages = [
        ("/livez?verbose", "liveness of the host, for a liveness probe"),
        ("/readyz?verbose", "readiness of the host, for a readiness probe"),
        ("/metrics", "metrics, for Prometheus"),
        ("/plugins", "status of each plugin and each informer, as JSON"),
    ];
    let links = pages.map(|(path, text)| format!("<li><a href=\"{path}\">{path}</a>: {text}</li>\n"));
    let version = env!("CARGO_PKG_VERSION");
    let head = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Oarlock</title>\n";
    Html(format!("{head}<h1>Oarlock {version}</h1>\n<ul>\n{}</ul>\n</html>\n", links.concat()))
}

async fn livez(State(admin): State<Admin>, Query(query): Query<Vec<(String, String)>>) -> Response {
    healthz::all("livez", admin.health.live(), &[], &query)
}

async fn readyz(State(admin): State<Admin>, Query(query): Query<Vec<(String, String)>>) -> Response {
    // A plugin that waits does not make the host unready. The page names it.
    let waiting = admin.statuses.snapshot().into_iter().filter(|plugin| !plugin.waits_for.is_empty());
    let waiting: Vec<_> =
        waiting.map(|plugin| format!("{} waits for {}", plugin.name, plugin.waits_for.join(", "))).collect();
    healthz::all("readyz", admin.health.ready(), &waiting, &query)
}

async fn live_check(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    healthz::one(admin.health.live(), &name)
}

async fn ready_check(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    healthz::one(admin.health.ready(), &name)
}

async fn metrics(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let accept: Vec<_> = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok()).collect();
    let exposition = Exposition::accepted_by(&accept.join(","));
    match admin.metrics.page(exposition) {
        Ok(page) => ([(header::CONTENT_TYPE, exposition.content_type())], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn plugins(State(admin): State<Admin>) -> Response {
    let page = PluginsPage {
        plugins: admin.statuses.snapshot(),
        refused_files: admin.statuses.refused_files(),
        informers: admin.informers.views(),
        budget: admin.informers.budget(),
    };
    match report::to_json(&page) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests;
