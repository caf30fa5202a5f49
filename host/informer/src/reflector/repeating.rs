//! What client-go's REST client does below its reflector: a request that got no answer, or was asked to come back, is made again.
//!
//! It costs neither a list nor a step of the back-off, which grows to a minute: that is for a server that says no, or is not there at all.

use std::time::Duration;

use async_trait::async_trait;

use super::status::StatusSender;
use super::timed::Timed;
use super::{MAX_RETRY_AFTER, Phase, in_full};
use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchOptions, WatchStream};

/// How often a request is repeated before its failure counts.
const MAX_REPEATS: u32 = 10;

/// How long after a connection that broke before the answer.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(1);

/// No server gets a request back sooner than this, even if it says at once.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Makes requests, each with a time limit, and repeats those that may be. The status says so meanwhile.
pub(super) struct Repeating<'r> {
    pub(super) timed: Timed<'r>,
    pub(super) status: &'r StatusSender,
    /// What is listed and watched.
    pub(super) what: String,
}

// === impl Repeating ===

impl Repeating<'_> {
    /// Waits for as long as the request is to wait, if it is to be repeated; else passes the error on.
    async fn pause(&self, verb: &str, error: ApiError, n_repeats: u32) -> Result<(), ApiError> {
        let pause = match &error {
            ApiError::Status(status) if status.asks_to_come_back() && n_repeats < MAX_REPEATS => {
                status.retry_after.map(|pause| pause.clamp(MIN_PAUSE, MAX_RETRY_AFTER))
            }
            // client-go's watch, too, goes on with this for as long as it takes.
            error if error.is_unanswered() && (n_repeats < MAX_REPEATS || verb == "watch") => {
                Some(UNANSWERED_PAUSE)
            }
            _ => None,
        };
        let Some(pause) = pause else { return Err(error) };
        let message =
            format!("failed to {verb} {}, asking again in {pause:?}: {}", self.what, in_full(&error));
        tracing::debug!("{message}");
        self.status.failed(Phase::Failing { message: message.clone() }, message);
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

#[async_trait]
impl ListWatch for Repeating<'_> {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        let mut n_repeats = 0;
        loop {
            match self.timed.list(options.clone(), keep).await {
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
