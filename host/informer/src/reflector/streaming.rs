//! Gets all objects as the initial events of a watch (WL, KEP-3157).
//!
//! The same watch then brings the changes, so one request replaces a list and a watch.

use tokio::time::Instant;

use super::initial_events::{InitialEvents, LateBookmark};
use super::outcome::{Error, in_full};
use super::request::Timed;
use super::watching::OpenWatch;
use super::{ActiveReflector, ConsistencyCheck, consistency};
use crate::list_watch::{ApiError, ListOptions, ListWatch, WatchEvent, WatchOptions};
use crate::object::Object;

// === impl ActiveReflector ===

impl ActiveReflector<'_> {
    /// Replaces the store's contents by the initial events of a watch, and returns this watch.
    ///
    /// The store gets no object before the end bookmark (WL-09). An error or a cancellation also closes the
    /// watch (WL-10).
    pub(super) async fn stream(&mut self) -> Result<OpenWatch, Error> {
        let mut watch = match self.open_stream().await {
            Ok(watch) => watch,
            Err(source) => return Err(Error::Watch { what: self.description(), source }),
        };
        let (events, resource_version) = self.receive_initial_events(&mut watch).await?;
        self.is_last_version_unavailable = false;
        let InitialEvents { objects, undecodable } = events;
        let objects = objects.into_objects();
        if self.config.consistency_check == ConsistencyCheck::Panic {
            self.check_consistency(&objects, &resource_version).await;
        }
        self.replace(objects, undecodable, &resource_version).map_err(Error::Replace)?;
        self.status.counters.n_streamed.increment();
        Ok(watch.after_initial_events())
    }

    /// Sends the request for the watch (WL-01).
    async fn open_stream(&mut self) -> Result<OpenWatch, ApiError> {
        let begun_at = Instant::now();
        let resource_version = match &*self.resource_version.text() {
            _ if self.is_last_version_unavailable => "",
            // Version 0 would permit objects that are older than those seen before.
            "0" => "",
            seen => seen,
        }
        .to_owned();
        let options = WatchOptions {
            resource_version,
            timeout: self.watch_timeout(),
            allow_bookmarks: true,
            copied: self.store.copied_pointers(),
            send_initial_events: true,
            ..WatchOptions::default()
        };
        let stream = self.requests().watch(options).await?;
        self.status.watch_begins();
        Ok(OpenWatch::new(stream, begun_at))
    }

    /// Collects the initial events up to their end bookmark, and returns them with the bookmark's version
    /// (WL-02, WL-03).
    async fn receive_initial_events(&self, watch: &mut OpenWatch) -> Result<(InitialEvents, String), Error> {
        let mut events = InitialEvents::default();
        let mut late_bookmark = LateBookmark::new();
        loop {
            let has_events = watch.n_accepted > 0;
            // The bookmark is due on every server, so silence always ends this watch.
            let next = self.next_event(watch, Some(self.config.silence_limit));
            let last_event_at = || if has_events { self.status.last_sign_of_life() } else { None };
            match late_bookmark.warn_until(next, last_event_at).await? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    events.undecodable.forget(object.key());
                    match self.store.transform(object) {
                        Ok(object) => events.objects.put(self.store.intern(object)),
                        // As for an event of the watch phase (RL-51).
                        Err(error) => {
                            tracing::error!("unable to transform an initial event: {}", in_full(&*error));
                        }
                    }
                }
                WatchEvent::Deleted(object) => {
                    events.undecodable.forget(object.key());
                    events.objects.remove(object.key());
                }
                WatchEvent::Bookmark(bookmark) => {
                    self.status.counters.n_bookmarks.increment();
                    if bookmark.is_initial_events_end {
                        return Ok((events, bookmark.resource_version));
                    }
                }
                WatchEvent::Undecodable { is_deleted: false, object } => events.undecodable.note(object),
                WatchEvent::Undecodable { is_deleted: true, object } => {
                    let Some(key) = &object.key else { return Err(self.undecodable_error(object)) };
                    events.undecodable.forget(key);
                    events.objects.remove(key);
                }
                WatchEvent::Unknown { .. } | WatchEvent::Error(_) | WatchEvent::Rejected(_) => {}
            }
        }
    }

    /// Panics if a list at the same version differs (CD-01).
    async fn check_consistency(&self, objects: &[Object], resource_version: &str) {
        let timed = Timed { list_watch: &*self.list_watch, timeout: self.config.request_timeout };
        let transform = |object| self.store.transform(object);
        let options = ListOptions::default();
        let checked = consistency::check(&timed, resource_version, options, objects, &transform).await;
        if let Err(inconsistency) = checked {
            panic!("data inconsistency detected for {}, panicking: {inconsistency}", self.description());
        }
    }
}
