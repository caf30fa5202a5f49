//! The admin pages: `/livez`, `/readyz`, `/metrics`, `/plugins`, and `/`, which links them; and the control
//! operations that read, under `/v1`.
//!
//! The pages are read-only and contain no secrets. On a loopback address they are served as plain HTTP, and
//! check no credentials; elsewhere over HTTPS, to whom Kubernetes allows it ([`guard`]). Over HTTPS there are
//! also the operations of `kubectl oarlock` about plugins ([`objects`]), which write and show logs. They are
//! never served over plain HTTP: a page in a browser on the same machine can send a POST there.

mod certificate;
mod guard;
mod healthz;
mod listener;
mod metrics_page;
mod objects;
mod serve;
mod turns;

use axum::Router;
use axum::extract::{FromRef, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use self::certificate::{CertificateFiles, Error as CertificateError};
use self::guard::{ApiReviewer, Guard};
use self::healthz::Reasons;
pub use self::listener::{AdminListener, Error, bind};
use crate::control::{self, Control};
use crate::health::Health;
use crate::informers::{BudgetView, InformerView, Informers};
use crate::leadership::LeadershipView;
use crate::metrics::Metrics;
pub use crate::metrics::{ALL as METRICS, Description as MetricDescription, Kind as MetricKind};
use crate::report::{self, HostEvent, Reporter};
use crate::status::{PluginStatus, RefusedFile, StatusRegistry};
use crate::tasks::Tasks;

/// Serves the pages from the state of these parts.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) statuses: StatusRegistry,
    pub(crate) health: Health,
    pub(crate) informers: Informers,
    pub(crate) metrics: Metrics,
    pub(crate) control: Control,
    pub(crate) tasks: Tasks,
}

#[derive(Serialize)]
struct PluginsPage {
    plugins: Vec<PluginStatus>,
    #[serde(rename = "refused-files")]
    refused_files: Vec<RefusedFile>,
    informers: Vec<InformerView>,
    budget: BudgetView,
    #[serde(skip_serializing_if = "Option::is_none")]
    leadership: Option<LeadershipView>,
}

// === impl Admin ===

impl Admin {
    /// Serves the pages until the token is cancelled. The client asks the API server who may read them.
    pub(crate) async fn serve(
        self,
        listener: AdminListener,
        client: kube::Client,
        reporter: Reporter,
        token: CancellationToken,
    ) {
        let (address, scheme) = (listener.address.to_string(), listener.scheme());
        reporter.report(HostEvent::AdminListening { address: address.clone(), scheme });
        let AdminListener { listener, address: _, certificate } = listener;
        let (tasks, limits) = (self.tasks.clone(), serve::Limits::default());
        let Some(certificate) = certificate else {
            let pages = self.router(Reasons::Shown);
            return serve::serve(&listener, None, &pages, limits, &tasks, &token).await;
        };
        if certificate.is_self_signed() {
            reporter.report(HostEvent::AdminSelfSigned { address });
        }
        let pages = self.guarded(Guard::new(ApiReviewer::new(client)));
        let serving = serve::serve(&listener, Some(&certificate), &pages, limits, &tasks, &token);
        tokio::join!(serving, certificate.follow(&token));
    }

    /// Returns the pages for users who may read them.
    fn guarded(self, guard: Guard) -> Router {
        // The fallback is behind the guard too: without a token, a path says nothing about what exists.
        let pages = axum::middleware::from_fn_with_state(guard.clone(), guard::check);
        let objects = objects::routes(&self.control, &guard);
        // The objects' routes are added after the layer: they ask about the object, not about the path.
        let router = self.router(Reasons::Withheld).layer(pages);
        objects.into_iter().fold(router, |router, (path, route)| router.route(&path, route))
    }

    /// Returns the pages. The reasons of failed checks are shown, or only to those who may read the page of
    /// one check.
    fn router(self, reasons: Reasons) -> Router {
        let control = control::reading(self.control.clone(), turns::over);
        let metrics = metrics_page::route(&self.metrics, &self.tasks);
        Router::new()
            .route("/", get(index))
            .route("/livez", get(livez))
            .route("/livez/{check}", get(live_check))
            .route("/readyz", get(readyz))
            .route("/readyz/{check}", get(ready_check))
            .route("/metrics", metrics)
            .route("/plugins", turns::over(get(plugins)))
            .with_state((self, reasons))
            .merge(control)
    }
}

impl FromRef<(Admin, Reasons)> for Admin {
    fn from_ref((admin, _): &(Admin, Reasons)) -> Self {
        admin.clone()
    }
}

impl FromRef<(Admin, Reasons)> for Reasons {
    fn from_ref((_, reasons): &(Admin, Reasons)) -> Self {
        *reasons
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

async fn livez(
    State(admin): State<Admin>,
    State(reasons): State<Reasons>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    healthz::all("livez", admin.health.live(), &[], &query, reasons)
}

async fn readyz(
    State(admin): State<Admin>,
    State(reasons): State<Reasons>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    // A plugin that waits does not make the host unready. The page names it.
    let waiting = admin.statuses.snapshot().into_iter().filter(|plugin| !plugin.waits_for.is_empty());
    let waiting: Vec<_> =
        waiting.map(|plugin| format!("{} waits for {}", plugin.name, plugin.waits_for.join("; "))).collect();
    healthz::all("readyz", admin.health.ready(), &waiting, &query, reasons)
}

async fn live_check(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    healthz::one(admin.health.live(), &name)
}

async fn ready_check(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    healthz::one(admin.health.ready(), &name)
}

async fn plugins(State(admin): State<Admin>) -> Response {
    let page = PluginsPage {
        plugins: admin.statuses.snapshot(),
        refused_files: admin.statuses.refused_files(),
        informers: admin.informers.views(),
        budget: admin.informers.budget(),
        leadership: admin.control.leadership.view(),
    };
    match report::to_json(&page) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests;
