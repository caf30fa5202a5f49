//! Sends the reflector's requests with a time limit, and repeats them as client-go's REST client does.
//!
//! A repetition costs no list and no step of the back-off. The back-off, which grows to a minute, is for a
//! server that rejects requests or cannot be reached.

use std::io;
use std::time::Duration;

use async_trait::async_trait;

use super::Phase;
use super::outcome::in_full;
use super::state::MAX_RETRY_AFTER;
use super::status::StatusPublisher;
use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchOptions, WatchStream};
use crate::outages::Outages;

/// The number of repetitions before a failure counts.
const MAX_REPEATS: u32 = 10;

/// The pause after a connection that broke before the answer.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(1);

/// The least pause before a repetition, even if the server asks for none.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Sends requests through [`Timed`], and repeats those that got no answer or a `Retry-After`. During the
/// pauses the status shows the failure.
pub(super) struct Repeating<'r> {
    pub(super) timed: Timed<'r>,
    pub(super) status: &'r StatusPublisher,
    pub(super) outages: Option<&'r Outages>,
    /// The resource, for messages.
    pub(super) what: String,
}

/// Lets a request fail that has no answer in time. An open watch has no limit.
pub(super) struct Timed<'r> {
    pub(super) list_watch: &'r dyn ListWatch,
    pub(super) timeout: Duration,
}

// === impl Repeating ===

impl Repeating<'_> {
    /// Waits before the repetition of a failed request, or returns the error if the request is not to be
    /// repeated.
    async fn pause(&self, verb: &str, error: ApiError, n_repeats: u32) -> Result<(), ApiError> {
        // The client does not notice that an answer did not come in time: its request is dropped (RL-75).
        if error.is_unanswered()
            && let Some(outages) = self.outages
        {
            outages.answered(None);
        }
        let pause = match &error {
            ApiError::Status(status) if status.asks_to_retry() && n_repeats < MAX_REPEATS => {
                status.retry_after.map(|pause| pause.clamp(MIN_PAUSE, MAX_RETRY_AFTER))
            }
            // client-go repeats a watch without limit.
            error if error.is_unanswered() && (n_repeats < MAX_REPEATS || verb == "watch") => {
                Some(UNANSWERED_PAUSE)
            }
            _ => None,
        };
        let Some(pause) = pause else { return Err(error) };
        let message =
            format!("failed to {verb} {}, retrying after {pause:?}: {}", self.what, in_full(&error));
        tracing::debug!("{message}");
        self.status.failed(Phase::Failing { message: message.clone() }, message);
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

#[async_trait]
impl ListWatch for Repeating<'_> {
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError> {
        let mut n_repeats = 0;
        loop {
            match self.timed.list(options.clone(), hook).await {
                Err(error) => self.pause("list", error, n_repeats).await?,
                listed => return listed,
            }
            n_repeats += 1;
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        let mut n_repeats: u32 = 0;
        loop {
            match self.timed.watch(options.clone()).await {
                Err(error) => self.pause("watch", error, n_repeats).await?,
                stream => return stream,
            }
            n_repeats = n_repeats.saturating_add(1);
        }
    }

    fn supports_watch_list(&self) -> bool {
        self.timed.supports_watch_list()
    }
}

// === impl Timed ===

impl Timed<'_> {
    async fn within<T>(
        &self,
        verb: &str,
        request: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        tokio::time::timeout(self.timeout, request).await.unwrap_or_else(|_| {
            let message = format!("no answer to {verb} within {:?}", self.timeout);
            Err(ApiError::Transport(io::Error::new(io::ErrorKind::TimedOut, message).into()))
        })
    }
}

#[async_trait]
impl ListWatch for Timed<'_> {
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError> {
        self.within("list", self.list_watch.list(options, hook)).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        self.within("watch", self.list_watch.watch(options)).await
    }

    fn supports_watch_list(&self) -> bool {
        self.list_watch.supports_watch_list()
    }
}
