//! Keeps a store equal to what the API server has: lists, watches, and does both again whenever it must.
//!
//! Every clause of the protocol that is not in a submodule is decided here: when to list, when to wait, what to show as
//! status. Not here: caching (the store does that), HTTP (that is `api_list_watch`), tasks (the caller runs [`Reflector::run`]).

mod error_handler;
mod source;
mod status;
mod store;
mod timed;
mod watching;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use error_handler::WatchErrorHandler;
pub use source::{Source, Sources};
pub use status::{Failure, Phase, ReflectorStatus};
pub use store::{ReflectorStore, StoreError};

use crate::backoff::{self, Backoff};
use crate::list_watch::{ApiError, ListWatch};
use crate::names::TypeMeta;
use crate::pager;
use source::Numbered;
use status::StatusSender;
use timed::Timed;

/// The pages that a list comes in, unless configured otherwise (PG-01).
const DEFAULT_PAGE_SIZE: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);

/// No server may make a reflector wait longer than this, whatever its `Retry-After` says.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// How a reflector goes about it. The defaults are client-go's where client-go has any.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the watch's objects must be; an event with anything else is dropped (RL-05). None: anything is taken.
    pub type_meta: Option<TypeMeta>,
    /// Objects per page of a list. None: 500, or everything at once where the server's watch cache answers (RL-22).
    pub page_size: Option<NonZeroU32>,
    /// How long a try waits after a failed one.
    pub backoff: backoff::Config,
    /// Each watch is asked for this long at least and twice as long at most; less than 5 minutes is ignored (RL-01).
    pub min_watch_timeout: Duration,
    /// A list page or the beginning of a watch that takes longer than this has failed.
    pub request_timeout: Duration,
    /// A watch on which nothing came for this long is closed and resumed from where it was, if the server was ever seen to
    /// send bookmarks, which come about once a minute (RL-70).
    pub silence_limit: Duration,
    /// How often the store is asked to send everything again. None: never (RL-62).
    pub resync_period: Option<Duration>,
    /// For how long internal errors on a watch are answered with another watch instead of a list; 0 for never (RL-47).
    pub max_internal_error_retry: Duration,
    /// Who is told of failures. None: the log.
    pub watch_error_handler: Option<WatchErrorHandler>,
    /// Seed of everything random; none for another one each time.
    pub seed: Option<u64>,
}

/// Lists and watches one resource, and tells its store.
///
/// The store sees, in one unbroken order: a `replace` with a whole list, then the changes since that list, until the next
/// `replace`. Versions are never compared, what comes last counts (RL-56). After a dropped connection the watch goes on from
/// the last version; only where the server no longer has that version, or something is wrong that cannot be told apart from
/// it, is everything listed again, and the store finds out from the list what was deleted meanwhile.
///
/// A reflector never gives up and never ends by itself. What it cannot do at the moment, [`status`](Self::status) says.
pub struct Reflector {
    sources: Sources,
    store: Arc<dyn ReflectorStore>,
    config: Config,
    status: StatusSender,
}

/// A reflector at work, and what it has learned of its server.
struct Running<'r> {
    list_watch: Arc<dyn ListWatch>,
    type_meta: Option<TypeMeta>,
    store: &'r dyn ReflectorStore,
    config: &'r Config,
    status: &'r StatusSender,
    backoff: Backoff,
    random: SmallRng,
    /// The last version seen; empty before the first list.
    resource_version: String,
    /// The last version seen cannot be listed at: it has expired, or is too new for this server.
    is_last_version_unavailable: bool,
    /// Lists at version 0 came in pages: the server has no watch cache (RL-24).
    is_paginated: bool,
    /// The server sends bookmarks.
    sends_bookmarks: bool,
}

/// Why one round of list and watch ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    /// Nothing is wrong, but the watch cannot go on from its version.
    #[error("the watch's version has expired")]
    Expired,
    #[error("failed to list")]
    List(#[source] ApiError),
    #[error("unable to sync list result")]
    Replace(#[source] StoreError),
    #[error("failed to watch")]
    Watch(#[source] ApiError),
    #[error("very short watch: it ended within a second and brought nothing")]
    VeryShortWatch,
    #[error("failed to resync")]
    Resync(#[source] StoreError),
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            type_meta: None,
            page_size: None,
            backoff: backoff::Config::default(),
            min_watch_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(300),
            silence_limit: Duration::from_secs(110),
            resync_period: None,
            max_internal_error_retry: Duration::ZERO,
            watch_error_handler: None,
            seed: None,
        }
    }
}

// === impl Reflector ===

impl Reflector {
    /// Makes a reflector that does nothing until it is [run](Self::run).
    pub fn new(list_watch: Arc<dyn ListWatch>, store: Arc<dyn ReflectorStore>, config: Config) -> Self {
        let source = Source { list_watch: Some(list_watch), type_meta: config.type_meta.clone() };
        Self::over(Sources::new(source), store, config)
    }

    /// Makes a reflector as [`new`](Self::new) does, whose source may be another one later. The type in `config` does not count, the
    /// source's does.
    pub fn over(sources: Sources, store: Arc<dyn ReflectorStore>, config: Config) -> Self {
        Self { sources, store, config, status: StatusSender::new() }
    }

    /// Returns the status as it is now and as it changes.
    ///
    /// Waiters are woken when the phase or the last error changes; the counters and times are there to be read, and wake
    /// nobody.
    pub fn status(&self) -> watch::Receiver<ReflectorStatus> {
        self.status.subscribe()
    }

    /// Returns the last version seen; empty before the first list (CT-04).
    pub fn last_resource_version(&self) -> String {
        self.status.subscribe().borrow().resource_version.clone()
    }

    /// Lists and watches until `token` is cancelled.
    ///
    /// Ends at the next moment in which it would wait for anything; requests that are under way are dropped. All of it is
    /// this one future: nothing is spawned, nothing is left behind.
    pub async fn run(&self, token: &CancellationToken) {
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            () = self.follow_sources() => {}
        }
    }

    /// Lists and watches at whichever source is in force.
    async fn follow_sources(&self) {
        let mut sources = self.sources.subscribe();
        let mut running = None;
        loop {
            let Numbered { number, source } = sources.borrow_and_update().clone();
            self.store.source_changed(number);
            let Source { list_watch: Some(list_watch), type_meta } = source else {
                // The sender is in what this reflector holds.
                let _ = sources.changed().await;
                continue;
            };
            let running = running.get_or_insert_with(|| Running::new(self, list_watch.clone()));
            running.list_watch = list_watch;
            running.type_meta = type_meta;
            tokio::select! {
                biased;
                _ = sources.changed() => {}
                () = running.run_forever() => {}
            }
        }
    }
}

// === impl Running ===

impl<'r> Running<'r> {
    fn new(reflector: &'r Reflector, list_watch: Arc<dyn ListWatch>) -> Self {
        let Reflector { sources: _, store, config, status } = reflector;
        Self {
            list_watch,
            type_meta: None,
            store: &**store,
            config,
            status,
            backoff: Backoff::new(config.backoff.clone()),
            random: config.seed.map_or_else(SmallRng::from_os_rng, SmallRng::seed_from_u64),
            resource_version: String::new(),
            is_last_version_unavailable: false,
            is_paginated: false,
            sends_bookmarks: false,
        }
    }

    async fn run_forever(&mut self) {
        loop {
            let ended = Box::pin(self.list_and_watch()).await;
            self.report(&ended);
            // Even when nothing is wrong, so that no server can make us list without pause (RL-10).
            self.back_off(ended.retry_after()).await;
        }
    }

    async fn list_and_watch(&mut self) -> Ended {
        self.status.list_begins();
        if let Err(ended) = self.list().await {
            return ended;
        }
        let store = self.store;
        let resync_period = self.config.resync_period;
        tokio::select! {
            ended = resync_periodically(store, resync_period) => ended,
            ended = self.watch() => ended,
        }
    }

    /// Lists everything and replaces the store's contents (RL-20 to RL-29).
    async fn list(&mut self) -> Result<(), Ended> {
        let resource_version = match &*self.resource_version {
            _ if self.is_last_version_unavailable => "",
            "" => "0",
            seen => seen,
        }
        .to_owned();
        let limit = match (self.config.page_size, &*resource_version) {
            (Some(page_size), _) => Some(page_size),
            (None, "" | "0") => Some(DEFAULT_PAGE_SIZE),
            (None, _) if self.is_paginated => Some(DEFAULT_PAGE_SIZE),
            // Not paged, so that the server may answer from its watch cache.
            (None, _) => None,
        };
        let mut result = self.list_at(&resource_version, limit).await;
        if let Err(error) = &result
            && (error.is_expired() || error.is_too_large_rv())
        {
            self.is_last_version_unavailable = true;
            result = self.list_at("", limit).await;
        }
        let listing = result.map_err(Ended::List)?;
        self.is_last_version_unavailable = false;
        self.is_paginated |= resource_version == "0" && listing.is_paginated;

        self.store.replace(listing.items, &listing.resource_version).map_err(Ended::Replace)?;
        self.resource_version = listing.resource_version;
        self.status.note(|status| {
            status.n_lists += 1;
            status.resource_version.clone_from(&self.resource_version);
        });
        Ok(())
    }

    async fn list_at(
        &self,
        resource_version: &str,
        limit: Option<NonZeroU32>,
    ) -> Result<pager::Listing, ApiError> {
        let timed = Timed { list_watch: &*self.list_watch, timeout: self.config.request_timeout };
        let keep = |item| {
            self.status.note(|_| {});
            self.store.arrived(item)
        };
        pager::list(&timed, resource_version, limit, &keep).await
    }

    async fn back_off(&mut self, retry_after: Option<Duration>) {
        let wait = self.backoff.step(&mut self.random);
        tokio::time::sleep(wait.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))).await;
    }

    /// Uniform between the least and twice the least (RL-01, RL-40).
    fn watch_timeout(&mut self) -> Duration {
        let min = self.config.min_watch_timeout.max(Duration::from_secs(300));
        Duration::from_secs(min.mul_f64(1.0 + self.random.random::<f64>()).as_secs())
    }

    fn report(&self, ended: &Ended) {
        let message = in_full(ended);
        let phase = match ended {
            Ended::Expired => {
                tracing::debug!("{message}");
                return;
            }
            Ended::List(error) | Ended::Watch(error) => phase_of(error, &message),
            Ended::Replace(_) | Ended::VeryShortWatch | Ended::Resync(_) => {
                Phase::Failing { message: message.clone() }
            }
        };
        match &self.config.watch_error_handler {
            Some(handler) => handler.call(ended),
            None => tracing::warn!("{message}"),
        }
        self.status.failed(phase, message);
    }
}

// === impl Ended ===

impl Ended {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::List(error) | Self::Watch(error) => error.retry_after(),
            Self::Expired | Self::Replace(_) | Self::VeryShortWatch | Self::Resync(_) => None,
        }
    }
}

fn phase_of(error: &ApiError, message: &str) -> Phase {
    if error.is_not_found() {
        Phase::Absent
    } else if error.is_forbidden() {
        Phase::Forbidden
    } else {
        Phase::Failing { message: message.to_owned() }
    }
}

/// Returns an error's text with its causes behind it.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        source = error.source();
    }
    message
}

/// Lets the store resync each time the period has passed; ends only when it fails (RL-60 to RL-62, RL-46).
async fn resync_periodically(store: &dyn ReflectorStore, period: Option<Duration>) -> Ended {
    let Some(period) = period.filter(|period| !period.is_zero()) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(period).await;
        if store.should_resync()
            && let Err(error) = store.resync()
        {
            return Ended::Resync(error);
        }
    }
}

#[cfg(test)]
mod tests;
