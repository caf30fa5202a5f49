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
use crate::informers::{BudgetView, InformerView, Informers};
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
    budget: BudgetView,
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
            .route("/livez", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .route("/plugins", get(plugins))
            .with_state(self)
    }
}

async fn livez(State(admin): State<Admin>) -> Response {
    match admin.health.dead() {
        None => "ok\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason + "\n").into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let reasons = admin.health.reasons();
    // A plugin that waits is no reason for the host not to be ready, but worth a line.
    let waiting = admin.board.snapshot().into_iter().filter(|plugin| !plugin.waits_for.is_empty());
    let waiting = waiting.map(|plugin| format!("{} waits for {}", plugin.name, plugin.waits_for.join(", ")));
    let lines =
        |first: Vec<String>| first.into_iter().chain(waiting).map(|line| line + "\n").collect::<String>();
    match reasons.is_empty() {
        true => lines(vec!["ok".to_owned()]).into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, lines(reasons)).into_response(),
    }
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
    let page = PluginsPage {
        plugins: admin.board.snapshot(),
        informers: admin.informers.views(),
        budget: admin.informers.budget(),
    };
    Json(page).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use oarlock_informer::testing::FakeListWatch;
    use oarlock_informer::{Content, GroupVersionResource, ListWatch, TypeMeta};
    use tower::ServiceExt;

    use super::*;
    use crate::informers::{Lease, Limits, Purpose, ResourceSource};
    use crate::report;
    use crate::tasks::Tasks;

    struct Namespaces;

    #[async_trait]
    impl ResourceSource for Namespaces {
        async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
            Ok(Some(TypeMeta::new("v1", "Namespace")))
        }

        fn list_watch(
            &self,
            _: &GroupVersionResource,
            type_meta: &TypeMeta,
            _: Content,
        ) -> Arc<dyn ListWatch> {
            let api = FakeListWatch::new(type_meta.clone());
            api.put("default");
            Arc::new(api)
        }
    }

    fn admin() -> Admin {
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let (reporter, _) = report::channel(report::Config::default());
        let informers = Informers::new(tasks, reporter.clone(), Arc::new(Namespaces), Limits::default());
        let board = Board::default();
        Admin {
            health: Health::new(informers.clone()),
            metrics: Metrics::new(board.clone(), informers.clone(), reporter),
            informers,
            board,
        }
    }

    fn lease(admin: &Admin) -> Lease {
        let namespaces = GroupVersionResource::new("", "v1", "namespaces");
        admin.informers.lease(&namespaces, Purpose::Host, Content::Metadata).unwrap()
    }

    async fn get(admin: &Admin, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = admin.clone().router().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn is_ready_when_what_the_host_needs_is_there() {
        let admin = admin();
        assert_eq!(get(&admin, "/livez").await, (200, "ok\n".to_owned()));
        let lease = lease(&admin);
        assert_eq!(get(&admin, "/readyz").await.0, 503);
        lease.synced().await;
        admin.health.plugins_looked_at();
        assert_eq!(get(&admin, "/readyz").await, (200, "ok\n".to_owned()));
        let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
        let entry = admin.board.enter(status);
        entry.update(|status| status.waits_for = vec!["its component to be compiled".to_owned()]);
        let ready = (200, "ok\np waits for its component to be compiled\n".to_owned());
        assert_eq!(get(&admin, "/readyz").await, ready);
    }

    #[tokio::test]
    async fn shows_plugins_and_metrics() {
        let admin = admin();
        let lease = lease(&admin);
        lease.synced().await;
        let status = PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
        admin.board.enter(status);
        admin.metrics.called(&"p".into(), "on-add", "done", std::time::Duration::from_millis(1));
        let (_, plugins) = get(&admin, "/plugins").await;
        let plugins: serde_json::Value = serde_json::from_str(&plugins).unwrap();
        assert_eq!(plugins["plugins"][0]["phase"], "loading");
        assert_eq!(plugins["informers"][0]["resource"], "v1/namespaces");
        assert_eq!(plugins["informers"][0]["content"], "metadata");
        assert_eq!(plugins["budget"]["informers"], 1);
        let (_, metrics) = get(&admin, "/metrics").await;
        for series in [
            r#"oarlock_plugin_calls_total{plugin="p",function="on-add",outcome="done"} 1"#,
            r#"oarlock_cache_objects{resource="v1/namespaces"} 1.0"#,
            r#"oarlock_plugin_up{plugin="p"} 0.0"#,
            r#"oarlock_cache_content{resource="v1/namespaces",content="metadata"} 1.0"#,
            r#"oarlock_cache_bytes{resource="v1/namespaces",part="compressed"} 0.0"#,
            r#"oarlock_cache_leases{resource="v1/namespaces"} 1.0"#,
            r#"oarlock_budget_used{of="objects"} 1.0"#,
            r#"oarlock_budget_limit{of="informers"} 256.0"#,
            "oarlock_budget_refusals_total 0",
            "oarlock_reports_dropped_total 0",
        ] {
            assert!(metrics.contains(series), "{series} is not in\n{metrics}");
        }
        admin.metrics.forget(&"p".into());
        assert!(!get(&admin, "/metrics").await.1.contains("on-add"));
    }

    #[tokio::test]
    async fn a_port_in_use_is_told_with_what_to_do() {
        let taken = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = bind(taken.local_addr().unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::AddressInUse { .. }));
        assert!(error.to_string().contains("--admin-addr"), "{error}");
    }
}
