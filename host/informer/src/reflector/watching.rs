//! The watch phase: one watch after another from the last version seen, until only a new list helps.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;

use super::timed::Timed;
use super::{Ended, Phase, ReflectorStore, Running, StoreError, in_full};
use crate::list_watch::{ApiError, ListWatch, Status, WatchEvent, WatchOptions, WatchStream};
use crate::object::Object;

/// How one watch ended.
enum WatchEnd {
    /// The stream is over, for any of the many reasons for which connections end.
    Closed,
    /// Nothing came for too long.
    Silent,
    /// The server said why.
    Status(Status),
    /// It sent what cannot be read.
    Unreadable(ApiError),
}

/// Internal errors in a row, and since when (RW-01, RW-02).
#[derive(Default)]
struct InternalErrors {
    first_and_last: Option<(Instant, Instant)>,
}

/// When the version of an event may be taken for the version of the whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versions {
    /// Each event's is the newest.
    Ordered,
    /// The watch was begun at no version, and first tells what there is, in any order (RL-52).
    UntilFirstChange,
}

// === impl Running ===

impl Running<'_> {
    /// Watches until a new list is needed, and says why.
    pub(super) async fn watch(&mut self) -> Ended {
        let mut internal_errors = InternalErrors::default();
        loop {
            let begun_at = Instant::now();
            let options = WatchOptions {
                resource_version: self.resource_version.clone(),
                timeout: self.watch_timeout(),
                allow_bookmarks: true,
                ..WatchOptions::default()
            };
            let timed = Timed { list_watch: &*self.list_watch, timeout: self.config.request_timeout };
            let stream = match timed.watch(options).await {
                Ok(stream) => stream,
                Err(error) if error.is_retriable_in_place() => {
                    self.retry_in_place(error).await;
                    continue;
                }
                Err(error) => return Ended::Watch(error),
            };
            self.status.watch_begins();
            let (n_accepted, end) = self.receive(stream).await;
            match end {
                WatchEnd::Closed if n_accepted == 0 && begun_at.elapsed() < Duration::from_secs(1) => {
                    return Ended::VeryShortWatch;
                }
                WatchEnd::Closed => {}
                WatchEnd::Silent => {
                    let limit = self.config.silence_limit;
                    let message = format!("nothing came on the watch for {limit:?}: closed and resumed");
                    tracing::warn!("{message}");
                    self.status.silent(message);
                }
                WatchEnd::Status(status) if status.is_expired() => return Ended::Expired,
                WatchEnd::Status(status) if status.is_too_many_requests() => {
                    self.retry_in_place(status.into()).await
                }
                WatchEnd::Status(status) => {
                    let budget = self.config.max_internal_error_retry;
                    if !(status.is_internal() && internal_errors.may_retry(budget)) {
                        return Ended::Watch(status.into());
                    }
                    tracing::debug!("retrying the watch after an internal error: {status}");
                }
                WatchEnd::Unreadable(error) => return Ended::Watch(error),
            }
        }
    }

    /// Waits, to make the same request again (RL-41, RL-44).
    async fn retry_in_place(&mut self, error: ApiError) {
        let retry_after = error.retry_after();
        let message = in_full(&Ended::Watch(error));
        tracing::debug!("{message}");
        self.status.failed(Phase::Failing { message: message.clone() }, message);
        self.back_off(retry_after).await;
    }

    /// Passes what a watch sends on to the store, to the watch's end. Returns how many events were accepted.
    async fn receive(&mut self, mut stream: WatchStream) -> (u64, WatchEnd) {
        let mut versions = match &*self.resource_version {
            "" | "0" => Versions::UntilFirstChange,
            _ => Versions::Ordered,
        };
        let mut n_accepted = 0;
        loop {
            let next = if self.sends_bookmarks {
                match tokio::time::timeout(self.config.silence_limit, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => return (n_accepted, WatchEnd::Silent),
                }
            } else {
                stream.next().await
            };
            let event = match next {
                None => return (n_accepted, WatchEnd::Closed),
                Some(Ok(WatchEvent::Error(status))) => return (n_accepted, WatchEnd::Status(status)),
                Some(Ok(event)) => event,
                // A connection that breaks is a watch that ends (WT-02).
                Some(Err(error @ (ApiError::Transport(_) | ApiError::Status(_)))) => {
                    tracing::debug!("the watch broke off: {}", in_full(&error));
                    return (n_accepted, WatchEnd::Closed);
                }
                Some(Err(error @ ApiError::Decode(_))) => return (n_accepted, WatchEnd::Unreadable(error)),
            };
            n_accepted += u64::from(self.accept(event, &mut versions));
        }
    }

    /// Tells the store of one event and moves on to its version. Returns whether the event was accepted.
    fn accept(&mut self, event: WatchEvent, versions: &mut Versions) -> bool {
        let is_add = matches!(event, WatchEvent::Added(_));
        let resource_version = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)
                if !self.is_expected(&object) =>
            {
                tracing::error!("dropped an event with an object of another type, {}", object.type_meta());
                self.status.note(|_| {});
                return false;
            }
            WatchEvent::Added(object) => self.store_event(object, |store, object| store.add(object)),
            WatchEvent::Modified(object) => self.store_event(object, |store, object| store.update(object)),
            WatchEvent::Deleted(object) => self.store_event(object, |store, object| store.delete(object)),
            WatchEvent::Bookmark(bookmark) => {
                self.sends_bookmarks = true;
                self.status.note(|status| status.n_bookmarks += 1);
                bookmark.resource_version
            }
            WatchEvent::Unknown { event_type, resource_version } => {
                tracing::error!("unable to understand watch event of type {event_type:?}");
                self.status.note(|_| {});
                match resource_version {
                    Some(resource_version) => resource_version,
                    None => return false,
                }
            }
            // Ended the watch before it came here.
            WatchEvent::Error(_) => return false,
        };
        if !is_add {
            *versions = Versions::Ordered;
        }
        if *versions == Versions::Ordered {
            self.resource_version = resource_version;
            self.store.update_resource_version(&self.resource_version);
            self.status.note(|status| status.resource_version.clone_from(&self.resource_version));
        }
        true
    }

    /// Returns the object's version. A store that does not take the object does not stop the watch (RL-51).
    fn store_event(
        &self,
        object: Object,
        call: impl FnOnce(&dyn ReflectorStore, Object) -> Result<(), StoreError>,
    ) -> String {
        self.status.note(|status| status.n_events += 1);
        let resource_version = object.resource_version().to_owned();
        if let Err(error) = call(self.store, object) {
            tracing::error!("unable to store a watch event: {}", in_full(&*error));
        }
        resource_version
    }

    fn is_expected(&self, object: &Object) -> bool {
        self.type_meta.as_ref().is_none_or(|expected| expected == object.type_meta())
    }
}

// === impl InternalErrors ===

impl InternalErrors {
    /// Notes one, and tells whether the errors in a row have gone on for no longer than `budget`.
    fn may_retry(&mut self, budget: Duration) -> bool {
        let now = Instant::now();
        let first = match self.first_and_last {
            Some((first, last)) if now - last < Duration::from_secs(60) => first,
            _ => now,
        };
        self.first_and_last = Some((first, now));
        let may_retry = !budget.is_zero() && now - first <= budget;
        if !may_retry {
            self.first_and_last = None;
        }
        may_retry
    }
}
