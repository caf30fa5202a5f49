//! Everything there is as the beginning of the watch (WL, KEP-3157): no list, no second request, no gap between the two.

use std::sync::Arc;

use tokio::time::Instant;

use super::arrivals::Arrivals;
use super::late_bookmark::LateBookmark;
use super::receiving::WatchEnd;
use super::timed::Timed;
use super::undecodable::UndecodableObjects;
use super::watching::VERY_SHORT;
use super::{ConsistencyCheck, Running, StoreError, consistency, in_full};
use crate::backoff::Backoff;
use crate::list_watch::{
    ApiError, DecodeError, ListOptions, ListWatch, WatchEvent, WatchOptions, WatchStream,
};

/// After so many streams in a row that ended too early, a list in pages may be what gets through.
const MAX_BROKEN_OFF: u32 = 5;

/// Why a list has to do, this time (RL-13).
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotStream {
    #[error("the watch was refused or ended with an error")]
    Watch(#[source] ApiError),
    #[error("the watch ended too often before everything was there")]
    BrokenOff,
    #[error("the watch ended within a second and brought nothing")]
    VeryShort,
    #[error("nothing came on the watch for too long")]
    Silent,
    #[error("an object is gone whose name cannot be read")]
    Undecodable(#[source] Arc<DecodeError>),
    #[error("unable to sync what streamed in")]
    Replace(#[source] StoreError),
}

/// How the initial events of one watch ended.
enum InitialEnd {
    /// There they are, and the watch goes on at this version.
    Whole {
        arrivals: Arrivals,
        undecodable: UndecodableObjects,
        resource_version: String,
        stream: WatchStream,
    },
    /// Not all of them came.
    Broken { n_accepted: u64, end: WatchEnd },
}

// === impl Running ===

impl Running<'_> {
    /// Replaces the store's contents by what a watch brings at its beginning, and returns the watch.
    ///
    /// Nothing reaches the store before everything is there (WL-09). Whatever ends this, an error or being dropped, the
    /// stream is closed with it (WL-10).
    pub(super) async fn stream(&mut self) -> Result<WatchStream, CannotStream> {
        let mut n_broken_off = 0;
        loop {
            // Before the request is sent, as everywhere (RL-43).
            let begun_at = Instant::now();
            let stream = match self.begin_stream().await {
                Ok(stream) => stream,
                Err(error) => {
                    self.prepare_to_stream_again(error).await?;
                    continue;
                }
            };
            let (n_accepted, end) = match self.receive_initial(stream).await {
                InitialEnd::Whole { arrivals, undecodable, resource_version, stream } => {
                    self.replace_with(arrivals, undecodable, resource_version).await?;
                    return Ok(stream);
                }
                InitialEnd::Broken { n_accepted, end } => (n_accepted, end),
            };
            let lasted = begun_at.elapsed();
            match end {
                WatchEnd::Closed if n_accepted == 0 && lasted < VERY_SHORT => {
                    return Err(CannotStream::VeryShort);
                }
                // From scratch (WL-06), at once; but not again and again at once.
                WatchEnd::Closed => {
                    n_broken_off += 1;
                    if n_broken_off == MAX_BROKEN_OFF {
                        return Err(CannotStream::BrokenOff);
                    }
                    if n_broken_off > 1 && lasted < VERY_SHORT {
                        self.pause_between_streams().await;
                    }
                }
                WatchEnd::Silent => {
                    let limit = self.config.silence_limit;
                    let message = format!(
                        "nothing came on the watch for {limit:?}, nor the end of what there is: listing"
                    );
                    tracing::warn!("{message}");
                    self.status.silent(message);
                    return Err(CannotStream::Silent);
                }
                WatchEnd::Status(status) => self.prepare_to_stream_again(status.into()).await?,
                WatchEnd::Unreadable(error) => return Err(CannotStream::Watch(error)),
                WatchEnd::Undecodable(object) => return Err(CannotStream::Undecodable(object.error)),
            }
        }
    }

    /// Waits as for the first failure, however many there were: the server answers, and the back-off is for one that does not.
    async fn pause_between_streams(&mut self) {
        let pause = Backoff::new(self.config.backoff.clone()).step(&mut self.random);
        tokio::time::sleep(pause).await;
    }

    /// Asks for the watch (WL-01).
    async fn begin_stream(&mut self) -> Result<WatchStream, ApiError> {
        let resource_version = match &*self.resource_version {
            _ if self.is_last_version_unavailable => "",
            // Not what the server has at hand, which may be older than what was seen before.
            "0" => "",
            seen => seen,
        }
        .to_owned();
        let options = WatchOptions {
            resource_version,
            timeout: self.watch_timeout(),
            allow_bookmarks: true,
            send_initial_events: true,
            ..WatchOptions::default()
        };
        let stream = self.requests().watch(options).await?;
        self.status.watch_begins();
        Ok(stream)
    }

    /// Does what helps against an error before the same is tried again, or passes the error on (WL-07).
    async fn prepare_to_stream_again(&mut self, error: ApiError) -> Result<(), CannotStream> {
        if error.is_retriable_in_place() {
            self.retry_in_place(error).await;
            return Ok(());
        }
        // At once without a version, and once (RL-23): a server that has not even the newest can still be asked for a list.
        let is_for_want_of_version = error.is_expired() || error.is_too_large_rv();
        if self.is_last_version_unavailable || !is_for_want_of_version {
            return Err(CannotStream::Watch(error));
        }
        self.is_last_version_unavailable = true;
        Ok(())
    }

    /// Collects what there is until the server says that this was all (WL-02, WL-03).
    async fn receive_initial(&mut self, mut stream: WatchStream) -> InitialEnd {
        let mut arrivals = Arrivals::default();
        let mut undecodable = UndecodableObjects::default();
        let mut late = LateBookmark::new();
        let mut n_accepted = 0;
        loop {
            // A bookmark is due, so silence is no good sign, whatever is known of the server.
            let next = self.next_event(&mut stream, Some(self.config.silence_limit));
            let event = match late.warn_until(next).await {
                Ok(event) => event,
                Err(end) => return InitialEnd::Broken { n_accepted, end },
            };
            n_accepted += 1;
            late.event_came();
            match event {
                WatchEvent::Bookmark(bookmark) => {
                    self.status.note(|status| status.n_bookmarks += 1);
                    if bookmark.is_initial_events_end {
                        let resource_version = bookmark.resource_version;
                        return InitialEnd::Whole { arrivals, undecodable, resource_version, stream };
                    }
                }
                WatchEvent::Undecodable { is_deleted: false, object } => undecodable.note(object),
                WatchEvent::Undecodable { is_deleted: true, object } => {
                    let Some(key) = &object.key else {
                        return InitialEnd::Broken { n_accepted, end: WatchEnd::Undecodable(object) };
                    };
                    undecodable.forget(key);
                    arrivals.remove(key);
                }
                event => {
                    if let WatchEvent::Added(object)
                    | WatchEvent::Modified(object)
                    | WatchEvent::Deleted(object) = &event
                    {
                        undecodable.forget(object.key());
                    }
                    self.arrive(&mut arrivals, event);
                }
            }
        }
    }

    /// Puts an event where nobody sees it yet.
    fn arrive(&self, arrivals: &mut Arrivals, event: WatchEvent) {
        self.status.note(|_| {});
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                match self.store.transform(object) {
                    Ok(object) => arrivals.put(self.store.intern(object)),
                    // As of an event in the watch phase (RL-51).
                    Err(error) => tracing::error!("unable to take in an initial event: {}", in_full(&*error)),
                }
            }
            WatchEvent::Deleted(object) => arrivals.remove(object.key()),
            WatchEvent::Bookmark(_)
            | WatchEvent::Unknown { .. }
            | WatchEvent::Error(_)
            | WatchEvent::Undecodable { .. }
            | WatchEvent::Rejected(_) => {}
        }
    }

    /// Hands over what came, at the version at which it was whole (WL-04).
    async fn replace_with(
        &mut self,
        arrivals: Arrivals,
        undecodable: UndecodableObjects,
        resource_version: String,
    ) -> Result<(), CannotStream> {
        self.is_last_version_unavailable = false;
        let objects = arrivals.into_objects();
        if self.config.consistency_check == ConsistencyCheck::Panic {
            self.check_consistency(&objects, &resource_version).await;
        }
        self.replace(objects, undecodable, resource_version).map_err(CannotStream::Replace)?;
        self.status.note(|status| status.n_streamed += 1);
        Ok(())
    }

    /// Panics if a list at the same version brings anything else (CD-01).
    async fn check_consistency(&self, objects: &[crate::Object], resource_version: &str) {
        let timed = Timed { list_watch: &*self.list_watch, timeout: self.config.request_timeout };
        let transform = |object| self.store.transform(object);
        let options = ListOptions::default();
        let checked = consistency::check(&timed, resource_version, options, objects, &transform).await;
        if let Err(inconsistency) = checked {
            panic!("data inconsistency detected for {}, panicking: {inconsistency}", self.description());
        }
    }
}
