//! The watch phase: one watch after another from the last version seen, until only a new list helps.

use std::time::Duration;

use tokio::time::Instant;

use super::internal_errors::InternalErrors;
use super::receiving::WatchEnd;
use super::{Ended, Error, Phase, ReflectorStore, Running, StoreError, in_full};
use crate::list_watch::{ApiError, ListWatch, WatchEvent, WatchOptions, WatchStream};
use crate::object::Object;

/// A watch that lasted less than this and brought nothing is a very short one (RL-42).
pub(super) const VERY_SHORT: Duration = Duration::from_secs(1);

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
    /// Watches until a new list is needed, and says why. Begins with the watch on which all there is came in, if one did.
    pub(super) async fn watch(&mut self, mut handed_over: Option<WatchStream>) -> Ended {
        let mut internal_errors = InternalErrors::new(self.config.max_internal_error_retry);
        loop {
            // Before the request is sent (RL-43).
            let begun_at = Instant::now();
            let (stream, versions) = match handed_over.take() {
                // It is past what there is (RL-53).
                Some(stream) => (stream, Versions::Ordered),
                None => match self.begin_watch().await {
                    Ok(stream) => (stream, self.versions()),
                    Err(error) if error.is_retriable_in_place() => {
                        self.retry_in_place(error).await;
                        continue;
                    }
                    Err(source) => {
                        return Error::Watch { what: self.description(), source }.into();
                    }
                },
            };
            self.status.watching();
            let (n_accepted, end) = self.receive(stream, versions).await;
            match end {
                WatchEnd::Closed if n_accepted == 0 && begun_at.elapsed() < VERY_SHORT => {
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
                    self.retry_in_place(status.into()).await;
                }
                WatchEnd::Status(status) => {
                    if status.is_internal() {
                        internal_errors.note();
                        if internal_errors.may_retry() {
                            tracing::debug!("retrying the watch after an internal error: {status}");
                            continue;
                        }
                    }
                    return self.broken(status.into());
                }
                WatchEnd::Unreadable(error) => return self.broken(error),
                WatchEnd::Undecodable(object) => {
                    let (what, name) = (self.description(), object.name());
                    return Ended::Undecodable { what, name, source: object.error };
                }
            }
        }
    }

    async fn begin_watch(&mut self) -> Result<WatchStream, ApiError> {
        let options = WatchOptions {
            resource_version: self.resource_version.clone(),
            timeout: self.watch_timeout(),
            allow_bookmarks: true,
            ..WatchOptions::default()
        };
        let stream = self.requests().watch(options).await?;
        self.status.watch_begins();
        Ok(stream)
    }

    fn versions(&self) -> Versions {
        match &*self.resource_version {
            "" | "0" => Versions::UntilFirstChange,
            _ => Versions::Ordered,
        }
    }

    /// Waits, to make the same request again (RL-41, RL-44).
    pub(super) async fn retry_in_place(&mut self, error: ApiError) {
        let retry_after = error.retry_after();
        let message = in_full(&Error::Watch { what: self.description(), source: error });
        tracing::debug!("{message}");
        self.status.failed(Phase::Failing { message: message.clone() }, message);
        self.back_off(retry_after).await;
    }

    fn broken(&self, source: ApiError) -> Ended {
        Ended::Broken { what: self.description(), source }
    }

    /// Passes what a watch sends on to the store, to the watch's end. Returns how many events were accepted.
    async fn receive(&mut self, mut stream: WatchStream, mut versions: Versions) -> (u64, WatchEnd) {
        let mut n_accepted = 0;
        loop {
            let silence_limit = self.sends_bookmarks.then_some(self.config.silence_limit);
            match self.next_event(&mut stream, silence_limit).await {
                Ok(WatchEvent::Undecodable { is_deleted, object }) => {
                    // What the list could not decode another list will not decode either. But that it is gone, a list says.
                    let is_known = object.key.as_ref().is_some_and(|key| self.undecodable.contains(key));
                    if is_deleted || !is_known {
                        return (n_accepted, WatchEnd::Undecodable(object));
                    }
                }
                Ok(event) => self.accept(event, &mut versions),
                Err(end) => return (n_accepted, end),
            }
            n_accepted += 1;
        }
    }

    /// Tells the store of one event and moves on to its version.
    fn accept(&mut self, event: WatchEvent, versions: &mut Versions) {
        let is_add = matches!(event, WatchEvent::Added(_));
        let resource_version = match event {
            WatchEvent::Added(object) => self.store_event(object, |store, object| store.add(object)),
            WatchEvent::Modified(object) => self.store_event(object, |store, object| store.update(object)),
            WatchEvent::Deleted(object) => self.store_event(object, |store, object| store.delete(object)),
            WatchEvent::Bookmark(bookmark) => {
                self.sends_bookmarks = true;
                self.status.note(|status| status.n_bookmarks += 1);
                self.store.bookmark(&bookmark.resource_version);
                bookmark.resource_version
            }
            WatchEvent::Unknown { resource_version: Some(resource_version), .. } => {
                self.status.note(|_| {});
                resource_version
            }
            // Have ended the watch or were dropped before they came here.
            WatchEvent::Unknown { resource_version: None, .. }
            | WatchEvent::Error(_)
            | WatchEvent::Undecodable { .. }
            | WatchEvent::Rejected(_) => return,
        };
        if !is_add {
            *versions = Versions::Ordered;
        }
        if *versions == Versions::Ordered {
            self.resource_version = resource_version;
            self.store.update_resource_version(&self.resource_version);
            self.status.note(|status| status.resource_version.clone_from(&self.resource_version));
        }
    }

    /// Returns the object's version. A store that does not take the object does not stop the watch (RL-51).
    fn store_event(
        &mut self,
        object: Object,
        call: impl FnOnce(&dyn ReflectorStore, Object) -> Result<(), StoreError>,
    ) -> String {
        if self.undecodable.forget(object.key()) {
            self.status.undecodable(&self.undecodable);
        }
        self.status.note(|status| status.n_events += 1);
        let resource_version = object.resource_version().to_owned();
        if let Err(error) = call(self.store, object) {
            tracing::error!("unable to store a watch event: {}", in_full(&*error));
        }
        resource_version
    }
}
