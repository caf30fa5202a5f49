//! The page `/metrics`. Its length grows with the series of all plugins, up to megabytes for each: so the
//! host makes one page at a time, on a thread that may be busy for long, and holds no other one until it is
//! sent.
//!
//! A request waits for its turn, and gets 503 if that takes too long. A client that does not read its page
//! loses it to the next one.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::metrics::{Exposition, Metrics, Page};
use crate::tasks::Tasks;

/// How long a request waits for its turn. Prometheus waits for 10 s for the whole page.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may take to read its page while another one waits for its turn.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// What a client does that got no turn: the value of `Retry-After`, in seconds.
const RETRY_AFTER: &str = "5";

/// Makes the pages, one at a time. Clones have their turns together.
#[derive(Clone)]
struct MetricsPages {
    metrics: Metrics,
    tasks: Tasks,
    turn: Arc<Semaphore>,
    /// The page that was made last.
    newest: Arc<Mutex<Weak<HeldPage>>>,
}

/// A page that is being sent.
struct HeldPage {
    made: Instant,
    /// None when it was taken from its client.
    page: Mutex<Option<(Page, OwnedSemaphorePermit)>>,
}

/// Returns the route of the page.
pub(super) fn route<S: Clone + Send + Sync + 'static>(metrics: &Metrics, tasks: &Tasks) -> MethodRouter<S> {
    let pages = MetricsPages {
        metrics: metrics.clone(),
        tasks: tasks.clone(),
        turn: Arc::new(Semaphore::new(1)),
        newest: Arc::default(),
    };
    get(answer).with_state(pages)
}

async fn answer(State(pages): State<MetricsPages>, headers: HeaderMap) -> Response {
    let accept: Vec<_> = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok()).collect();
    let exposition = Exposition::accepted_by(&accept.join(","));
    let Some(turn) = pages.turn().await else {
        let text = "another client reads this page: the host makes one at a time\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, RETRY_AFTER)], text).into_response();
    };
    match pages.make(exposition, turn).await {
        Some(page) => {
            let length = page.page.lock().as_ref().map_or(0, |(page, _)| page.bytes());
            let headers = [
                (header::CONTENT_TYPE, exposition.content_type()),
                (header::CONTENT_LENGTH, length.to_string()),
            ];
            (headers, body(page)).into_response()
        }
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made\n").into_response(),
    }
}

/// Returns a body that sends a page piece by piece, as its client reads. The turn ends with the body; by then
/// the connection has the last few pieces.
fn body(page: Arc<HeldPage>) -> Body {
    Body::from_stream(stream::iter(std::iter::from_fn(move || page.next_piece().transpose())))
}

// === impl MetricsPages ===

impl MetricsPages {
    /// Waits until no other page is made or held. None if that takes too long.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turn = self.turn.clone().acquire_owned();
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(turn, patience);
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return turn.ok(),
                () = self.take_from_slow_client() => {}
                () = &mut patience => return None,
            }
        }
    }

    /// Waits until a client has had the newest page for too long, and takes the page from that client.
    async fn take_from_slow_client(&self) {
        let newest = self.newest.lock().clone();
        let Some(made) = newest.upgrade().map(|it| it.made) else { return std::future::pending().await };
        tokio::time::sleep_until(made + READ_LIMIT).await;
        if let Some(page) = newest.upgrade() {
            *page.page.lock() = None;
        }
        let mut now = self.newest.lock();
        if now.ptr_eq(&newest) {
            *now = Weak::new();
        }
    }

    /// Makes a page on a thread for blocking work. None if that fails.
    async fn make(&self, exposition: Exposition, turn: OwnedSemaphorePermit) -> Option<Arc<HeldPage>> {
        let (metrics, newest) = (self.metrics.clone(), self.newest.clone());
        // The turn ends with this work, also when the client has gone.
        let make = move || {
            let page = metrics.page(exposition).ok()?;
            let page = Arc::new(HeldPage { made: Instant::now(), page: Mutex::new(Some((page, turn))) });
            *newest.lock() = Arc::downgrade(&page);
            Some(page)
        };
        self.tasks.blocking(make).await?
    }
}

// === impl HeldPage ===

impl HeldPage {
    /// Returns the next piece; none at the end.
    fn next_piece(&self) -> io::Result<Option<Bytes>> {
        let mut held = self.page.lock();
        let Some((page, _)) = &mut *held else {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the client read the page too slowly"));
        };
        Ok(page.next_piece())
    }
}

#[cfg(test)]
mod tests;
