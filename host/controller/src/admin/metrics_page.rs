//! The page `/metrics`. The host makes one at a time, on a thread that may be busy for long.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use super::turns::{self, Turn, Turns};
use crate::metrics::{Exposition, Metrics};
use crate::tasks::Tasks;

/// Makes the pages, one at a time. Clones have their turns together.
#[derive(Clone)]
struct MetricsPages {
    metrics: Metrics,
    tasks: Tasks,
    turns: Turns,
}

/// Returns the route of the page.
pub(super) fn route<S: Clone + Send + Sync + 'static>(metrics: &Metrics, tasks: &Tasks) -> MethodRouter<S> {
    let pages = MetricsPages { metrics: metrics.clone(), tasks: tasks.clone(), turns: Turns::new() };
    get(answer).with_state(pages)
}

async fn answer(State(pages): State<MetricsPages>, headers: HeaderMap) -> Response {
    let accept: Vec<_> = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok()).collect();
    let exposition = Exposition::accepted_by(&accept.join(","));
    let Some(turn) = pages.turns.next().await else { return turns::refusal() };
    match pages.make(exposition, turn).await {
        Some((length, body)) => {
            let headers = [
                (header::CONTENT_TYPE, exposition.content_type()),
                (header::CONTENT_LENGTH, length.to_string()),
            ];
            (headers, body).into_response()
        }
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made\n").into_response(),
    }
}

// === impl MetricsPages ===

impl MetricsPages {
    /// Makes a page on a thread for blocking work, and returns its length, too. None if that fails.
    async fn make(&self, exposition: Exposition, turn: Turn) -> Option<(usize, Body)> {
        let metrics = self.metrics.clone();
        // The turn ends with this work, also when the client has gone.
        let make = move || {
            let page = metrics.page(exposition).ok()?;
            Some((page.bytes(), turn.send(page)))
        };
        self.tasks.blocking(make).await?
    }
}

#[cfg(test)]
mod tests;
