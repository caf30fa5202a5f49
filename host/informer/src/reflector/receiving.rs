//! What comes on a watch, one event after another, and how it ends. What an event does is decided elsewhere.

use std::time::Duration;

use futures::StreamExt;
use tokio::task::coop;

use super::{Running, in_full};
use crate::list_watch::{ApiError, Status, Undecodable, WatchEvent, WatchStream, is_table};
use crate::names::TypeMeta;

/// How one watch ended.
pub(super) enum WatchEnd {
    /// The stream is over, for any of the many reasons for which connections end.
    Closed,
    /// Nothing came for too long.
    Silent,
    /// The server said why.
    Status(Status),
    /// It sent what cannot be read.
    Unreadable(ApiError),
    /// It sent an object that cannot be decoded.
    Undecodable(Undecodable),
}

// === impl Running ===

impl Running<'_> {
    /// Waits for the next event that is not dropped. With a limit, silence for that long ends the watch.
    pub(super) async fn next_event(
        &self,
        stream: &mut WatchStream,
        silence_limit: Option<Duration>,
    ) -> Result<WatchEvent, WatchEnd> {
        loop {
            // A stream that always has something must not keep the rest of the task from its turn.
            coop::consume_budget().await;
            let next = match silence_limit {
                Some(limit) => match tokio::time::timeout(limit, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => return Err(WatchEnd::Silent),
                },
                None => stream.next().await,
            };
            let event = match next {
                None => return Err(WatchEnd::Closed),
                Some(Ok(WatchEvent::Error(status))) => return Err(WatchEnd::Status(status)),
                Some(Ok(event)) => event,
                // A connection that breaks is a watch that ends (WT-02).
                Some(Err(error @ (ApiError::Transport(_) | ApiError::Status(_)))) => {
                    tracing::debug!("the watch broke off: {}", in_full(&error));
                    return Err(WatchEnd::Closed);
                }
                Some(Err(error @ ApiError::Decode(_))) => return Err(WatchEnd::Unreadable(error)),
            };
            if self.is_accepted(&event) {
                return Ok(event);
            }
            self.status.note(|_| {});
        }
    }

    /// Whether anything comes of an event. If not, it is as if it had never come (RL-55).
    fn is_accepted(&self, event: &WatchEvent) -> bool {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                self.is_expected(object.type_meta())
            }
            WatchEvent::Bookmark(bookmark) => {
                bookmark.type_meta.as_ref().is_none_or(|type_meta| self.is_expected(type_meta))
            }
            WatchEvent::Unknown { event_type, resource_version } => {
                tracing::error!("unable to understand watch event of type {event_type:?}");
                resource_version.is_some()
            }
            WatchEvent::Rejected(error) => {
                tracing::error!("dropped a watch event: {}", in_full(&**error));
                false
            }
            // What comes of it is decided where it is known what there is of the object.
            WatchEvent::Undecodable { .. } => {
                self.status.note(|status| status.n_undecodable_events += 1);
                true
            }
            WatchEvent::Error(_) => true,
        }
    }

    /// Whether this is what the watch was to bring (RL-05).
    fn is_expected(&self, type_meta: &TypeMeta) -> bool {
        let is_expected = self.type_meta.as_ref().is_none_or(|expected| expected == type_meta);
        // A table is for people to read, whatever is expected.
        let is_accepted = is_expected && !is_table(type_meta);
        if !is_accepted {
            tracing::error!("dropped an event with an object of another type, {type_meta}");
        }
        is_accepted
    }
}
