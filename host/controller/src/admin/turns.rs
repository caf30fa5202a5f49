//! Turns for long pages. Their length grows with the number of plugins: by kilobytes for the state of each,
//! and by up to megabytes for its series of metrics, or for the notes on what is parked. So the host makes
//! one page of a kind at a time, and holds no other one until it is sent.
//!
//! A request waits for its turn, and gets 503 if that takes too long. A client that does not read its page
//! loses it to the next one.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::control::Refusal;
use crate::metrics::Page;

/// How long a request waits for its turn. Prometheus waits for 10 s for the whole page.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may take to read its page while another one waits for its turn. Shorter than
/// [`PATIENCE`], so that one client alone has the next one refused only if it took the difference to make
/// its page.
pub(super) const READ_LIMIT: Duration = Duration::from_secs(4);

/// What a client does that got no turn: the value of `Retry-After`, in seconds.
pub(super) const RETRY_AFTER: &str = "5";

/// The turns of one page. Clones share them.
#[derive(Clone)]
pub(super) struct Turns {
    turn: Arc<Semaphore>,
    /// The page that was made last.
    newest: Arc<Mutex<Weak<HeldPage>>>,
}

/// The right to make and hold a page, until it is dropped.
pub(super) struct Turn {
    permit: OwnedSemaphorePermit,
    newest: Arc<Mutex<Weak<HeldPage>>>,
}

/// A page that is being sent.
struct HeldPage {
    made: Instant,
    /// None when it was taken from its client.
    page: Mutex<Option<(Page, OwnedSemaphorePermit)>>,
}

/// Returns the answer to a request that got no turn.
pub(super) fn refusal() -> Response {
    ([(header::RETRY_AFTER, RETRY_AFTER)], Refusal::page_is_held()).into_response()
}

/// Has the requests of a route wait for turns, which no other route shares: else a slow client of one page
/// would keep others from another page.
pub(super) fn over<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.route_layer(from_fn_with_state(Turns::new(), in_turn))
}

/// Answers a request when it is its turn.
async fn in_turn(State(turns): State<Turns>, request: Request, next: Next) -> Response {
    let Some(turn) = turns.next().await else { return refusal() };
    let (mut head, body) = next.run(request).await.into_parts();
    // The page is in memory already, in one piece: nothing is copied.
    let Ok(text) = to_bytes(body, usize::MAX).await else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made\n").into_response();
    };
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
    Response::from_parts(head, turn.send(Page::from(text)))
}

// === impl Turns ===

impl Turns {
    pub(super) fn new() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), newest: Arc::default() }
    }

    /// Waits until no other page is made or held. None if that takes too long.
    pub(super) async fn next(&self) -> Option<Turn> {
        let permit = self.turn.clone().acquire_owned();
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(permit, patience);
        let permit = loop {
            tokio::select! {
                biased;
                permit = &mut permit => break permit.ok()?,
                () = self.take_from_slow_client() => {}
                () = &mut patience => return None,
            }
        };
        Some(Turn { permit, newest: self.newest.clone() })
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
}

// === impl Turn ===

impl Turn {
    /// Returns a body that sends a page piece by piece, as its client reads. The turn ends with the body; by
    /// then the connection has the last few pieces.
    pub(super) fn send(self, page: Page) -> Body {
        let Self { permit, newest } = self;
        let page = Arc::new(HeldPage { made: Instant::now(), page: Mutex::new(Some((page, permit))) });
        *newest.lock() = Arc::downgrade(&page);
        Body::from_stream(stream::iter(std::iter::from_fn(move || page.next_piece().transpose())))
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
