//! Chooses the source of a running informer.
//!
//! The source has full objects while a user wants them, metadata otherwise. The informer has no source while
//! the resource is not served, or while the budget has no room for the first list. A switch of the source
//! leaves no gap ([`Sources`]): listeners get only changes of the cluster. The change to metadata happens
//! some time after the last user of full objects left, so that the swap of a plugin does not list everything
//! twice.
//!
//! [`Sources`]: oarlock_informer::reflector::Sources

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_informer::list_watch::{ItemHook, ListOptions, ListPage, WatchOptions, WatchStream};
use oarlock_informer::reflector::{Phase, Source, SourceGeneration};
use oarlock_informer::{
    SharedInformer,
    list_watch::{ApiError, ListWatch},
    object::{Content, TypeMeta},
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::InformersShared;
use super::budget::{Excess, Usage};
use super::metered::{Meter, MeteredListWatch};
use super::resource_entry::ResourceEntry;
use super::resource_probe::{Probe, ResourceProbe};
use super::resource_state::ProblemKind;

/// How long full objects stay after their last user left.
pub(super) const NARROW_AFTER: Duration = Duration::from_secs(60);

/// The interval at which the controller checks whether the budget has room for a list that did not fit.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// After this time a list that did not fit is tried again even without more room, since it may have become
/// smaller.
const RETRY_AFTER: Duration = Duration::from_secs(600);

/// The interval at which the controller checks whether the list of a resource that is served again failed.
const LIST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Chooses the source of one informer.
pub(super) struct SourceController<'e> {
    entry: &'e ResourceEntry,
    shared: &'e Arc<InformersShared>,
    type_meta: TypeMeta,
    /// The content of the current source.
    content: Content,
    /// The generation of the current source, and whether the cache has its objects.
    generation: SourceGeneration,
    is_synced: bool,
    /// Counts a list that may be aborted, because no user reads its objects yet.
    meter: Option<Arc<Meter>>,
    /// The list that did not fit into the budget.
    oversized: Option<OversizedList>,
    /// The probes since the resource was last listed.
    probe: Option<ResourceProbe>,
}

/// A list that was aborted because it did not fit.
struct OversizedList {
    wanted: Content,
    /// Its size so far, without the objects that it would have replaced.
    more: Usage,
    /// When it is tried again at the latest.
    retry_at: Instant,
}

/// A source without objects.
struct EmptySource {
    resource_version: String,
}

// === impl SourceController ===

impl<'e> SourceController<'e> {
    /// Returns the controller and the first source.
    pub(super) fn new(
        entry: &'e ResourceEntry,
        shared: &'e Arc<InformersShared>,
        type_meta: TypeMeta,
    ) -> (Self, Arc<dyn ListWatch>) {
        let mut source_controller = Self {
            entry,
            shared,
            type_meta,
            content: entry.state.lock().wanted(),
            generation: SourceGeneration::default(),
            is_synced: false,
            meter: None,
            oversized: None,
            probe: None,
        };
        let list_watch = source_controller.metered(Usage::default());
        (source_controller, list_watch)
    }

    /// Switches the source when users, the watch or the budget change. Runs until it is dropped.
    pub(super) async fn run(mut self, informer: SharedInformer) {
        let mut phases = informer.phase();
        phases.mark_changed();
        loop {
            let wanted = self.wanted();
            if self.oversized.as_ref().is_some_and(|list| list.wanted != wanted) {
                self.oversized = None;
                self.entry.clear_over_budget(self.shared);
                if !informer.has_synced() {
                    self.switch_content(&informer, wanted);
                }
            }
            if wanted > self.content && self.oversized.is_none() {
                self.switch_content(&informer, wanted);
            }
            let meter = self.meter.clone();
            tokio::select! {
                biased;
                () = self.entry.changed.notified() => {}
                (excess, more) = exceeded(meter.as_deref()) => self.abort_list(&informer, &excess, more),
                _ = informer.wait_for_source(self.generation), if !self.is_synced => self.source_synced(),
                () = self.may_narrow(wanted) => self.narrow(&informer),
                () = self.room_available() => {
                    self.oversized = None;
                    self.switch_content(&informer, wanted);
                }
                _ = phases.changed() => self.phase_changed(&informer, &mut phases).await,
            }
        }
    }

    fn wanted(&self) -> Content {
        self.entry.state.lock().wanted()
    }

    /// Switches to a source with this content.
    fn switch_content(&mut self, informer: &SharedInformer, content: Content) {
        let is_wider = content > *self.entry.content.borrow();
        self.content = content;
        let list_watch = if is_wider || !informer.has_synced() {
            self.metered(self.entry.usage())
        } else {
            self.meter = None;
            self.list_watch()
        };
        self.switch(informer, list_watch);
    }

    fn switch(&mut self, informer: &SharedInformer, list_watch: Arc<dyn ListWatch>) {
        let type_meta = Some(self.type_meta.clone());
        self.generation = informer.switch(Source { list_watch: Some(list_watch), type_meta });
        self.is_synced = false;
    }

    fn list_watch(&self) -> Arc<dyn ListWatch> {
        self.shared.source.list_watch(&self.entry.resource, &self.type_meta, self.content)
    }

    /// Returns a list and watch that counts arriving objects against the budget, without those that they
    /// replace.
    fn metered(&mut self, replaces: Usage) -> Arc<dyn ListWatch> {
        let meter = Arc::new(Meter::new(self.shared.clone(), replaces));
        self.meter = Some(meter.clone());
        Arc::new(MeteredListWatch { list_watch: self.list_watch(), meter })
    }

    /// Records that the cache has the objects of the current source.
    fn source_synced(&mut self) {
        self.is_synced = true;
        if let Some(meter) = self.meter.take() {
            meter.end();
        }
        if self.oversized.is_none() {
            self.entry.clear_over_budget(self.shared);
        }
        if self.content == Content::Full {
            self.entry.content.send_replace(Content::Full);
        }
    }

    /// Waits until no user has wanted full objects for a while.
    async fn may_narrow(&self, wanted: Content) {
        if self.content == Content::Metadata || wanted == Content::Full {
            return std::future::pending().await;
        }
        let left_at = self.entry.state.lock().full_left_at.unwrap_or_else(Instant::now);
        tokio::time::sleep_until(left_at + NARROW_AFTER).await;
    }

    /// Switches to metadata, unless a user wants full objects again.
    fn narrow(&mut self, informer: &SharedInformer) {
        // With this lock a later user sees that the cache no longer has full objects for certain.
        let state = self.entry.state.lock();
        if state.wanted() == Content::Full {
            return;
        }
        self.entry.content.send_replace(Content::Metadata);
        drop(state);
        self.switch_content(informer, Content::Metadata);
    }

    /// Aborts a list that does not fit, and returns to the source before, or to none.
    fn abort_list(&mut self, informer: &SharedInformer, excess: &Excess, more: Usage) {
        let Some(meter) = self.meter.take() else { return };
        meter.end();
        let retry_at = Instant::now() + RETRY_AFTER;
        self.oversized = Some(OversizedList { wanted: self.wanted(), more, retry_at });
        if informer.has_synced() {
            self.content = *self.entry.content.borrow();
            self.switch(informer, self.list_watch());
        } else {
            informer.switch(Source::none());
            self.is_synced = true;
        }
        self.entry.record_over_budget(self.shared, excess);
    }

    /// Waits until the budget may have room for the list that did not fit.
    async fn room_available(&self) {
        let Some(list) = &self.oversized else { return std::future::pending().await };
        loop {
            tokio::time::sleep(ROOM_CHECK_INTERVAL).await;
            let usage =
                self.shared.ledger.add_to(self.shared.usage()).and(list.more.objects, list.more.bytes);
            if self.shared.limits.exceeded_by(&usage).is_none() || Instant::now() >= list.retry_at {
                return;
            }
        }
    }

    /// Handles a new phase of the reflector.
    async fn phase_changed(&mut self, informer: &SharedInformer, phases: &mut watch::Receiver<Phase>) {
        let phase = phases.borrow_and_update().clone();
        let problem = |kind, message| self.entry.record_problem(self.shared, kind, message);
        match phase {
            Phase::Waiting | Phase::Listing => {}
            Phase::Watching => {
                self.probe = None;
                self.entry.clear_problem(self.shared);
            }
            Phase::Absent => self.wait_until_served(informer, phases).await,
            Phase::Forbidden => problem(ProblemKind::Forbidden, last_error(informer)),
            Phase::Failing { message } => problem(ProblemKind::Unreachable, message),
        }
    }

    /// Takes the source away and probes until the resource is served, then lists it. If no version serves it
    /// for a while, listeners get deletes of all its objects.
    async fn wait_until_served(&mut self, informer: &SharedInformer, phases: &mut watch::Receiver<Phase>) {
        informer.switch(Source::none());
        let mut probe = self.probe.take().unwrap_or_else(ResourceProbe::new);
        loop {
            probe.wait().await;
            match probe.check(self.shared, &self.entry.resource).await {
                Probe::Served(type_meta) => {
                    self.type_meta = type_meta;
                    break;
                }
                Probe::Absent { message, hint, is_gone } => {
                    self.entry.record_problem(self.shared, ProblemKind::Absent { hint }, message);
                    if is_gone && informer.has_synced() && !informer.indexer().is_empty() {
                        self.delete_all(informer).await;
                    }
                }
                Probe::Unknown { message } => {
                    self.entry.record_problem(self.shared, ProblemKind::Unreachable, message)
                }
            }
        }
        self.probe = Some(probe);
        let asked_at = Instant::now();
        self.switch_content(informer, self.content.max(self.wanted()));
        // Discovery may be ahead of or behind the lists.
        let has_failed = || {
            let failed = informer.status().last_error.is_some_and(|failure| failure.at >= asked_at);
            failed && *phases.borrow() == Phase::Absent
        };
        let mut next_phase = phases.clone();
        loop {
            let meter = self.meter.clone();
            tokio::select! {
                biased;
                _ = next_phase.changed() => return,
                _ = exceeded(meter.as_deref()) => return,
                () = tokio::time::sleep(LIST_CHECK_INTERVAL) => {}
            }
            if has_failed() {
                phases.mark_changed();
                return;
            }
        }
    }

    /// Deletes all objects from the cache, so that listeners get deletes.
    async fn delete_all(&self, informer: &SharedInformer) {
        let empty = EmptySource { resource_version: informer.last_resource_version() };
        let generation = informer.switch(Source { list_watch: Some(Arc::new(empty)), type_meta: None });
        informer.wait_for_source(generation).await;
        informer.switch(Source::none());
    }
}

fn last_error(informer: &SharedInformer) -> String {
    informer.status().last_error.map_or_else(String::new, |failure| failure.message)
}

async fn exceeded(meter: Option<&Meter>) -> (Excess, Usage) {
    match meter {
        Some(meter) => meter.exceeded().await,
        None => std::future::pending().await,
    }
}

// === impl EmptySource ===

#[async_trait]
impl ListWatch for EmptySource {
    async fn list(&self, _: ListOptions, _: ItemHook<'_>) -> Result<ListPage, ApiError> {
        Ok(ListPage { resource_version: self.resource_version.clone(), ..ListPage::default() })
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream, ApiError> {
        std::future::pending().await
    }

    fn supports_watch_list(&self) -> bool {
        false
    }
}
