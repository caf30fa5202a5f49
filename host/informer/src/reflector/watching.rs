//! One watch: opening it, receiving its events, and passing them to the store.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::task::coop;
use tokio::time::Instant;

use super::outcome::{Error, in_full};
use super::{ActiveReflector, ReflectorStore, StoreError};
use crate::list_watch::{ApiError, ListWatch, WatchEvent, WatchOptions, WatchStream, is_table};
use crate::names::TypeMeta;
use crate::object::Object;
use crate::resource_version::Version;

/// A watch that lasted less than this and had no event is a very short one (RL-42).
pub(super) const VERY_SHORT: Duration = Duration::from_secs(1);

/// While events arrive without a pause, the reflector reads the clock once per this many events.
const EVENTS_PER_CLOCK_READING: u32 = 64;

/// A watch that the server has accepted.
pub(super) struct OpenWatch {
    stream: WatchStream,
    /// When its request was sent (RL-43).
    begun_at: Instant,
    /// The number of its events that were not dropped.
    pub(super) n_accepted: u64,
    versions: VersionOrder,
    n_since_clock_reading: u32,
}

/// Which events of a watch move the last version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VersionOrder {
    /// Every event does.
    Ordered,
    /// Events do from the first one that is not `ADDED`. The watch began at no version, so the events before
    /// are all objects, in any order (RL-52).
    UnorderedUntilFirstChange,
}

// === impl ActiveReflector ===

impl ActiveReflector<'_> {
    /// Runs one watch to its end, the open one or else one from the last version, and returns why it ended.
    pub(super) async fn watch(&mut self, open: Option<OpenWatch>) -> Error {
        let mut watch = match open {
            Some(open) => open,
            None => match self.open_watch().await {
                Ok(watch) => watch,
                Err(source) => return Error::Watch { what: self.description(), source },
            },
        };
        self.status.watching();
        self.pass_events_on(&mut watch).await
    }

    async fn open_watch(&mut self) -> Result<OpenWatch, ApiError> {
        let begun_at = Instant::now();
        let resource_version = self.resource_version.text().to_owned();
        let versions = match &*resource_version {
            "" | "0" => VersionOrder::UnorderedUntilFirstChange,
            _ => VersionOrder::Ordered,
        };
        let options = WatchOptions {
            resource_version,
            timeout: self.watch_timeout(),
            allow_bookmarks: true,
            copied: self.store.copied_pointers(),
            ..WatchOptions::default()
        };
        let stream = self.requests().watch(options).await?;
        self.status.watch_begins();
        Ok(OpenWatch { versions, ..OpenWatch::new(stream, begun_at) })
    }

    /// Passes the events of a watch to the store, and returns why the watch ended.
    async fn pass_events_on(&mut self, watch: &mut OpenWatch) -> Error {
        loop {
            let silence_limit = self.sends_bookmarks.then_some(self.config.silence_limit);
            match self.next_event(watch, silence_limit).await {
                Ok(WatchEvent::Undecodable { is_deleted, object }) => {
                    // If the last list could not decode the object, another list would not either. But only a
                    // list can remove a deleted one.
                    let is_known = object.key.as_ref().is_some_and(|key| self.undecodable.contains(key));
                    if is_deleted || !is_known {
                        return self.undecodable_error(object);
                    }
                }
                Ok(event) => self.accept(event, &mut watch.versions),
                Err(error) => return error,
            }
        }
    }

    /// Waits for the next event that is not dropped, or for the end of the watch. With a limit, a watch
    /// without an event for this long has ended.
    pub(super) async fn next_event(
        &self,
        watch: &mut OpenWatch,
        silence_limit: Option<Duration>,
    ) -> Result<WatchEvent, Error> {
        loop {
            // So that a stream that is always ready does not starve the rest of the task.
            coop::consume_budget().await;
            // An event that is ready needs no timer.
            let (next, has_waited) = match watch.stream.next().now_or_never() {
                Some(next) => (next, false),
                None => match silence_limit {
                    Some(limit) => match tokio::time::timeout(limit, watch.stream.next()).await {
                        Ok(next) => (next, true),
                        Err(_) => return Err(Error::Silent { limit }),
                    },
                    None => (watch.stream.next().await, true),
                },
            };
            let event = match next {
                None => return Err(watch.closed()),
                Some(Ok(WatchEvent::Error(status))) => return Err(self.ended(status.into())),
                Some(Ok(event)) => event,
                // A broken connection is a normal end of the watch (WT-02).
                Some(Err(error @ (ApiError::Transport(_) | ApiError::Status(_)))) => {
                    tracing::debug!("the connection of a watch broke: {}", in_full(&error));
                    return Err(watch.closed());
                }
                Some(Err(error @ ApiError::Decode(_))) => return Err(self.ended(error)),
            };
            if watch.is_clock_reading_due(has_waited) {
                self.status.note_sign_of_life();
            }
            if self.is_accepted(&event) {
                watch.n_accepted += 1;
                return Ok(event);
            }
        }
    }

    /// Returns whether the reflector handles an event. A dropped event advances nothing and does not count
    /// for RL-42 (RL-55).
    fn is_accepted(&self, event: &WatchEvent) -> bool {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                self.is_expected(object.type_meta())
            }
            WatchEvent::Bookmark(bookmark) => {
                bookmark.type_meta.as_ref().is_none_or(|type_meta| self.is_expected(type_meta))
            }
            WatchEvent::Unknown { event_type, resource_version } => {
                tracing::error!("unknown type of watch event: {event_type:?}");
                resource_version.is_some()
            }
            WatchEvent::Rejected(error) => {
                tracing::error!("dropped a watch event: {}", in_full(&**error));
                false
            }
            WatchEvent::Undecodable { .. } => {
                self.status.counters.n_undecodable_events.increment();
                true
            }
            WatchEvent::Error(_) => true,
        }
    }

    /// Returns whether a watch of this reflector may bring objects of this type (RL-05).
    fn is_expected(&self, type_meta: &TypeMeta) -> bool {
        let is_expected = self.type_meta.as_ref().is_none_or(|expected| expected == type_meta);
        // A table is text for people, so it is never an object of the resource.
        let is_accepted = is_expected && !is_table(type_meta);
        if !is_accepted {
            tracing::error!("dropped a watch event with an object of another type, {type_meta}");
        }
        is_accepted
    }

    /// Passes one event to the store, and moves on to its version.
    fn accept(&mut self, event: WatchEvent, versions: &mut VersionOrder) {
        let is_add = matches!(event, WatchEvent::Added(_));
        let version = match event {
            WatchEvent::Added(object) => self.store_event(object, |store, object| store.add(object)),
            WatchEvent::Modified(object) => self.store_event(object, |store, object| store.update(object)),
            WatchEvent::Deleted(object) => self.store_event(object, |store, object| store.delete(object)),
            WatchEvent::Bookmark(bookmark) => {
                self.sends_bookmarks = true;
                self.status.counters.n_bookmarks.increment();
                self.store.bookmark(&bookmark.resource_version);
                Version::new(&bookmark.resource_version)
            }
            WatchEvent::Unknown { resource_version: Some(resource_version), .. } => {
                Version::new(&resource_version)
            }
            // These ended the watch or were dropped before.
            WatchEvent::Unknown { resource_version: None, .. }
            | WatchEvent::Error(_)
            | WatchEvent::Undecodable { .. }
            | WatchEvent::Rejected(_) => return,
        };
        if !is_add {
            *versions = VersionOrder::Ordered;
        }
        if *versions == VersionOrder::Ordered {
            self.store.update_resource_version(&version.text());
            self.status.set_resource_version(&version);
            self.resource_version = version;
        }
    }

    /// Passes an object to the store and returns its version. An error of the store does not end the watch
    /// (RL-51).
    fn store_event(
        &mut self,
        object: Object,
        call: impl FnOnce(&dyn ReflectorStore, Object) -> Result<(), StoreError>,
    ) -> Version {
        if self.undecodable.forget(object.key()) {
            self.status.set_undecodable(&self.undecodable);
        }
        self.status.counters.n_events.increment();
        let version = Version::of(&object);
        if let Err(error) = call(self.store, object) {
            tracing::error!("unable to store a watch event: {}", in_full(&*error));
        }
        version
    }
}

// === impl OpenWatch ===

impl OpenWatch {
    /// Wraps the stream of a watch whose request was sent at `begun_at`.
    pub(super) fn new(stream: WatchStream, begun_at: Instant) -> Self {
        Self { stream, begun_at, n_accepted: 0, versions: VersionOrder::Ordered, n_since_clock_reading: 0 }
    }

    /// Returns the watch as a new one, for the events after the initial events (RL-53).
    pub(super) fn after_initial_events(self) -> Self {
        Self::new(self.stream, Instant::now())
    }

    /// Returns the error of a watch that the server closed.
    fn closed(&self) -> Error {
        let lasted = self.begun_at.elapsed();
        if self.n_accepted == 0 && lasted < VERY_SHORT {
            Error::VeryShortWatch
        } else {
            Error::Closed { lasted }
        }
    }

    /// Returns whether the time of this event is to be noted: after a wait, and now and then without one.
    fn is_clock_reading_due(&mut self, has_waited: bool) -> bool {
        self.n_since_clock_reading += 1;
        let is_due = has_waited || self.n_since_clock_reading >= EVENTS_PER_CLOCK_READING;
        if is_due {
            self.n_since_clock_reading = 0;
        }
        is_due
    }
}
