//! Keeps a store equal to what the API server has: lists, watches, and does both again whenever it must.
//!
//! Every clause of the protocol that is not in a submodule is decided here: when to list or to have it streamed, when to
//! wait, what to show as status. Not here: caching (the store does that), HTTP (that is `api_list_watch`), tasks (the caller runs [`Reflector::run`]).

mod arrivals;
mod config;
pub mod consistency;
mod ended;
mod error_handler;
mod internal_errors;
mod late_bookmark;
mod listing;
mod receiving;
mod repeating;
mod source;
mod status;
mod store;
mod streaming;
mod timed;
mod undecodable;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use config::{Config, ConsistencyCheck, InitialList};
pub use ended::Error;
pub use error_handler::WatchErrorHandler;
pub use source::{Source, SourceGeneration, Sources};
pub use status::{Failure, Phase, ReflectorStatus, UndecodableObject};
pub use store::{ReflectorStore, StoreError};

use crate::backoff::Backoff;
use crate::clock;
use crate::list_watch::{ListWatch, WatchStream};
use crate::names::TypeMeta;
use crate::object::Object;
use ended::{Ended, in_full};
use repeating::Repeating;
use source::CurrentSource;
use status::StatusSender;
use timed::Timed;
use undecodable::UndecodableObjects;

/// No server may make a reflector wait longer than this, whatever its `Retry-After` says.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

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
    /// What the last list could not decode, and what came since.
    undecodable: UndecodableObjects,
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
            let CurrentSource { generation, source } = sources.borrow_and_update().clone();
            self.store.source_changed(generation);
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
            undecodable: UndecodableObjects::default(),
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
        let stream = match self.initial_list().await {
            Ok(stream) => stream,
            Err(ended) => return ended,
        };
        let store = self.store;
        let resync_period = self.config.resync_period;
        tokio::select! {
            ended = resync_periodically(store, resync_period) => ended,
            ended = self.watch(stream) => ended,
        }
    }

    /// Replaces the store's contents by all there is. Returns the watch, if it came as the beginning of one (RL-12).
    async fn initial_list(&mut self) -> Result<Option<WatchStream>, Ended> {
        let can_stream = match self.config.initial_list {
            InitialList::Streamed => self.list_watch.supports_watch_list(),
            InitialList::Listed => false,
        };
        if can_stream {
            match self.stream().await {
                Ok(stream) => return Ok(Some(stream)),
                // Quietly, and next time it is tried again (RL-13).
                Err(error) => tracing::debug!("listing instead: {}", in_full(&error)),
            }
        }
        self.list().await?;
        Ok(None)
    }

    /// Replaces the store's contents by what a list brought, and by what is known of the objects that it could not decode.
    fn replace(
        &mut self,
        items: Vec<Object>,
        undecodable: UndecodableObjects,
        resource_version: String,
    ) -> Result<(), StoreError> {
        let items = undecodable.with_last_known(items, self.store);
        self.store.replace(items, &resource_version)?;
        undecodable.log(&self.description(), &self.undecodable);
        self.undecodable = undecodable;
        self.resource_version = resource_version;
        self.status.note(|status| {
            status.n_lists += 1;
            status.resource_version.clone_from(&self.resource_version);
        });
        self.status.undecodable(&self.undecodable);
        Ok(())
    }

    /// Returns what is listed and watched, for messages (RL-06).
    fn description(&self) -> String {
        match (&self.config.description, &self.type_meta) {
            (Some(description), _) => description.clone(),
            (None, Some(type_meta)) => type_meta.to_string(),
            (None, None) => "<unspecified>".to_owned(),
        }
    }

    /// Returns the way to make requests.
    fn requests(&self) -> Repeating<'_> {
        let timed = Timed { list_watch: &*self.list_watch, timeout: self.config.request_timeout };
        Repeating { timed, status: self.status, what: self.description() }
    }

    async fn back_off(&mut self, retry_after: Option<Duration>) {
        let wait = self.backoff.step(&mut self.random);
        tokio::time::sleep(wait.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))).await;
    }

    /// Uniform between the least and twice the least (RL-01, RL-40).
    fn watch_timeout(&mut self) -> Duration {
        let min = self.config.min_watch_timeout.max(Duration::from_secs(300));
        let timeout = clock::scaled(min, 1.0 + self.random.random::<f64>());
        // Whole seconds, and no more of them than every server can count.
        Duration::from_secs(timeout.min(clock::FAR).as_secs())
    }

    fn report(&self, ended: &Ended) {
        match ended {
            Ended::Failed(error) => match &self.config.watch_error_handler {
                Some(handler) => handler.call(error),
                None => error.log(),
            },
            Ended::Expired => tracing::debug!("{ended}"),
            Ended::Broken { .. } | Ended::Undecodable { .. } | Ended::VeryShortWatch | Ended::Resync(_) => {
                tracing::warn!("{}", in_full(ended));
            }
        }
        if let Some(phase) = ended.phase() {
            self.status.failed(phase, in_full(ended));
        }
    }
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
