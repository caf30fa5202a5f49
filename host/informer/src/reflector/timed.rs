//! A time limit around each request.

use std::io;
use std::time::Duration;

use async_trait::async_trait;

use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchOptions, WatchStream};

/// Gives up a request whose answer has not come in time. A watch that has begun has all the time there is.
pub(super) struct Timed<'r> {
    pub(super) list_watch: &'r dyn ListWatch,
    pub(super) timeout: Duration,
}

#[async_trait]
impl ListWatch for Timed<'_> {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        match tokio::time::timeout(self.timeout, self.list_watch.list(options, keep)).await {
            Ok(result) => result,
            Err(_) => Err(self.timed_out("list")),
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        match tokio::time::timeout(self.timeout, self.list_watch.watch(options)).await {
            Ok(result) => result,
            Err(_) => Err(self.timed_out("watch")),
        }
    }

    fn supports_watch_list(&self) -> bool {
        self.list_watch.supports_watch_list()
    }
}

impl Timed<'_> {
    fn timed_out(&self, what: &str) -> ApiError {
        let message = format!("no answer to {what} within {:?}", self.timeout);
        ApiError::Transport(io::Error::new(io::ErrorKind::TimedOut, message).into())
    }
}
