//! Keeps a store equal to the resource at the API server: lists, watches, and relists where that is needed.
//!
//! `state` has the state machine: the states, and the state that follows each success and each error.
//! `streaming`, `listing` and `watching` each carry out one state. Not here: the cache (in the store), HTTP
//! (in `api_list_watch`), and tasks (the caller runs [`Reflector::run`]).

mod config;
mod consistency;
mod initial_events;
mod internal_errors;
mod listing;
mod outcome;
mod request;
mod source;
mod state;
mod status;
mod store;
mod streaming;
mod undecodable;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use oarlock_flow_control::{ResettingBackoff, clock};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use config::{Config, ConsistencyCheck, InitialList, WatchErrorHandler};
pub use outcome::Error;
pub use source::{Source, SourceGeneration, Sources};
pub(crate) use status::StatusPublisher;
pub use status::{Failure, Phase, ReflectorStatus, UndecodableObject};
pub use store::{ReflectorStore, StoreError};

use crate::list_watch::{ApiError, ListWatch, Undecodable};
use crate::names::TypeMeta;
use crate::object::Object;
use crate::resource_version::Version;
use request::{Repeating, Timed};
use source::CurrentSource;
use undecodable::UndecodableObjects;

/// Lists and watches one resource, and writes it to a store.
///
/// The store gets, in one order without gaps: a `replace` with a whole list, then the changes since that
/// list, until the next `replace`. Versions are never compared: the last event counts (RL-56). After a broken
/// connection the watch resumes from the last version. The reflector relists only if the server no longer has
/// that version, or after an error that cannot be distinguished from that case; the store then learns from
/// the list which objects were deleted meanwhile.
///
/// A reflector never stops retrying and never ends by itself. Its [`status`](Self::status) shows the current
/// failure.
pub struct Reflector {
    sources: Sources,
    store: Arc<dyn ReflectorStore>,
    config: Config,
    status: Arc<StatusPublisher>,
}

/// A reflector while it runs, with its knowledge of the server.
struct ActiveReflector<'r> {
    list_watch: Arc<dyn ListWatch>,
    type_meta: Option<TypeMeta>,
    store: &'r dyn ReflectorStore,
    config: &'r Config,
    status: &'r StatusPublisher,
    backoff: ResettingBackoff,
    /// The waits after the end of an outage. They grow too, so that a server that answers now and then is not
    /// asked more often for it.
    backoff_after_outage: ResettingBackoff,
    /// The last back-off began in an outage.
    was_out: bool,
    random: SmallRng,
    /// The last version seen; empty before the first list.
    resource_version: Version,
    /// The server cannot list at the last version: it has expired, or is too new for this server.
    is_last_version_unavailable: bool,
    /// A list at version 0 had pages, so the server has no watch cache (RL-24).
    is_paginated: bool,
    /// The server has sent a bookmark before.
    sends_bookmarks: bool,
    /// The objects that neither the last list nor the events since then brought in decodable form.
    undecodable: UndecodableObjects,
}

// === impl Reflector ===

impl Reflector {
    /// Makes a reflector, which does nothing until it is [run](Self::run).
    pub fn new(list_watch: Arc<dyn ListWatch>, store: Arc<dyn ReflectorStore>, config: Config) -> Self {
        let source = Source { list_watch: Some(list_watch), type_meta: config.type_meta.clone() };
        Self::with_sources(Sources::new(source), store, config)
    }

    /// Makes a reflector whose source can be replaced while it runs. The source's `type_meta` replaces the
    /// one in `config`.
    pub fn with_sources(sources: Sources, store: Arc<dyn ReflectorStore>, config: Config) -> Self {
        Self::publishing_to(Arc::new(StatusPublisher::new()), sources, store, config)
    }

    /// Makes a reflector as [`with_sources`](Self::with_sources) does, which writes its status to `status`.
    pub(crate) fn publishing_to(
        status: Arc<StatusPublisher>,
        sources: Sources,
        store: Arc<dyn ReflectorStore>,
        config: Config,
    ) -> Self {
        Self { sources, store, config, status }
    }

    /// Returns the status at this moment.
    pub fn status(&self) -> ReflectorStatus {
        self.status.snapshot()
    }

    /// Returns the phase, as it is and as it changes. Only a change of the phase wakes the receiver; counters
    /// and times do not.
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.status.phase()
    }

    /// Returns the last version that the reflector saw; empty before the first list (CT-04).
    pub fn last_resource_version(&self) -> String {
        self.status.resource_version()
    }

    /// Lists and watches until `token` is cancelled.
    ///
    /// Returns at the next await point, and drops the requests under way. All of it is this one future: it
    /// spawns no task.
    pub async fn run(&self, token: &CancellationToken) {
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            () = self.follow_sources() => {}
        }
    }

    /// Lists and watches the current source, and switches when it is replaced.
    async fn follow_sources(&self) {
        let mut sources = self.sources.subscribe();
        let mut active = None;
        loop {
            let CurrentSource { generation, source } = sources.borrow_and_update().clone();
            self.store.source_changed(generation);
            let Source { list_watch: Some(list_watch), type_meta } = source else {
                // Cannot fail: `self` holds the sender.
                let _ = sources.changed().await;
                continue;
            };
            let active = active.get_or_insert_with(|| ActiveReflector::new(self, list_watch.clone()));
            active.list_watch = list_watch;
            active.type_meta = type_meta;
            tokio::select! {
                biased;
                _ = sources.changed() => {}
                () = active.run_forever() => {}
            }
        }
    }
}

// === impl ActiveReflector ===

impl<'r> ActiveReflector<'r> {
    fn new(reflector: &'r Reflector, list_watch: Arc<dyn ListWatch>) -> Self {
        let Reflector { sources: _, store, config, status } = reflector;
        Self {
            list_watch,
            type_meta: None,
            store: &**store,
            config,
            status,
            backoff: ResettingBackoff::new(config.backoff.clone(), config.backoff_reset_after),
            backoff_after_outage: ResettingBackoff::new(config.backoff.clone(), config.backoff_reset_after),
            was_out: false,
            random: config.seed.map_or_else(SmallRng::from_os_rng, SmallRng::seed_from_u64),
            resource_version: Version::default(),
            is_last_version_unavailable: false,
            is_paginated: false,
            sends_bookmarks: false,
            undecodable: UndecodableObjects::default(),
        }
    }

    /// Replaces the store's contents by the items of a whole list, and by the last known states of the
    /// objects that could not be decoded.
    fn replace(
        &mut self,
        items: Vec<Object>,
        undecodable: UndecodableObjects,
        resource_version: &str,
    ) -> Result<(), StoreError> {
        let items = undecodable.with_last_known(items, self.store);
        self.store.replace(items, resource_version)?;
        undecodable.log(&self.description(), &self.undecodable);
        self.undecodable = undecodable;
        self.resource_version = Version::new(resource_version);
        self.status.set_resource_version(&self.resource_version);
        self.status.set_undecodable(&self.undecodable);
        self.status.counters.n_lists.increment();
        self.status.note_sign_of_life();
        Ok(())
    }

    /// Returns the name of the resource for messages (RL-06).
    fn description(&self) -> String {
        match (&self.config.description, &self.type_meta) {
            (Some(description), _) => description.clone(),
            (None, Some(type_meta)) => type_meta.to_string(),
            (None, None) => "<unspecified>".to_owned(),
        }
    }

    fn ended(&self, source: ApiError) -> Error {
        Error::Ended { what: self.description(), source }
    }

    fn undecodable_error(&self, object: Undecodable) -> Error {
        Error::Undecodable { what: self.description(), object: object.name(), source: object.error }
    }

    /// Returns the sender of requests.
    fn requests(&self) -> Repeating<'_> {
        let timed = Timed { list_watch: &*self.list_watch, timeout: self.config.request_timeout };
        let outages = self.config.outages.as_ref();
        Repeating { timed, status: self.status, outages, what: self.description() }
    }

    /// Returns a random timeout between the minimum and twice the minimum (RL-01, RL-40).
    fn watch_timeout(&mut self) -> Duration {
        let min = self.config.min_watch_timeout.max(Duration::from_secs(300));
        let timeout = clock::scaled(min, 1.0 + self.random.random::<f64>());
        // In whole seconds, and few enough of them for every server.
        Duration::from_secs(timeout.min(clock::FAR).as_secs())
    }
}

#[cfg(test)]
pub(crate) mod tests;
