//! Where a running informer gets its objects from, and how much of each.
//!
//! Full objects while anybody wants them, metadata otherwise; nothing while the resource is not served, or while the budget has no room for the first
//! list. The informer goes over from one source to the next without a gap ([`Sources`]), so that whoever listens notices nothing
//! but what has changed in the cluster. It narrows only some time after the last one left who wanted full objects, or a
//! plugin that is swapped would have everything listed twice.
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
use super::resource_state::TroubleKind;

/// For how long nobody has to want full objects until there are none.
pub(super) const NARROW_AFTER: Duration = Duration::from_secs(60);

/// How often it is looked whether there is room for what there was none for.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(5);

/// After how long a list that did not fit is tried again, whether or not there is more room.
const TRY_AGAIN: Duration = Duration::from_secs(600);

/// How often it is looked whether a resource that is served again can be listed, too.
const LOOK_FOR_FAILURE: Duration = Duration::from_secs(1);

pub(super) struct SourceController<'e> {
    entry: &'e ResourceEntry,
    shared: &'e Arc<InformersShared>,
    type_meta: TypeMeta,
    /// How much of each object the source in force has.
    content: Content,
    /// The source's number, and whether the cache is what it said.
    number: SourceGeneration,
    is_held: bool,
    /// Counts a list that may yet be given up: one that nobody reads of.
    meter: Option<Arc<Meter>>,
    /// What there was no room for.
    over: Option<Over>,
    /// Since the resource was last listed.
    probe: Option<ResourceProbe>,
}

/// A list that was given up.
struct Over {
    wanted: Content,
    /// What it takes at least, beyond what there was.
    more: Usage,
    /// When it is tried again, if only to see whether it is as large as it was.
    again_at: Instant,
}

/// Has no objects, and says so once.
struct Nothing {
    resource_version: String,
}

// === impl SourceController ===

impl<'e> SourceController<'e> {
    /// Decides where the informer is to begin.
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
            number: SourceGeneration::default(),
            is_held: false,
            meter: None,
            over: None,
            probe: None,
        };
        let list_watch = source_controller.metered(Usage::default());
        (source_controller, list_watch)
    }

    /// Follows what is wanted, what happens to the watch, and the budget.
    pub(super) async fn run(mut self, informer: SharedInformer) {
        let mut phases = informer.phase();
        phases.mark_changed();
        loop {
            let wanted = self.wanted();
            if self.over.as_ref().is_some_and(|over| over.wanted != wanted) {
                self.over = None;
                self.entry.is_within_budget(self.shared);
                if !informer.has_synced() {
                    self.go_to(&informer, wanted);
                }
            }
            if wanted > self.content && self.over.is_none() {
                self.go_to(&informer, wanted);
            }
            let meter = self.meter.clone();
            tokio::select! {
                biased;
                () = self.entry.changed.notified() => {}
                (excess, more) = exceeded(meter.as_deref()) => self.give_up(&informer, &excess, more),
                _ = informer.wait_for_source(self.number), if !self.is_held => self.holds(),
                () = self.is_to_narrow(wanted) => self.narrow(&informer),
                () = self.finds_room() => {
                    self.over = None;
                    self.go_to(&informer, wanted);
                }
                _ = phases.changed() => self.follow(&informer, &mut phases).await,
            }
        }
    }

    fn wanted(&self) -> Content {
        self.entry.state.lock().wanted()
    }

    /// Takes up a source that has so much of each object.
    fn go_to(&mut self, informer: &SharedInformer, content: Content) {
        let is_wider = content > *self.entry.held.borrow();
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
        self.number = informer.switch(Source { list_watch: Some(list_watch), type_meta });
        self.is_held = false;
    }

    fn list_watch(&self) -> Arc<dyn ListWatch> {
        self.shared.source.list_watch(&self.entry.resource, &self.type_meta, self.content)
    }

    /// Counts what comes, but for what it takes the place of.
    fn metered(&mut self, replaces: Usage) -> Arc<dyn ListWatch> {
        let meter = Arc::new(Meter::new(self.shared.clone(), replaces));
        self.meter = Some(meter.clone());
        Arc::new(MeteredListWatch { list_watch: self.list_watch(), meter })
    }

    /// The cache is what the source said.
    fn holds(&mut self) {
        self.is_held = true;
        if let Some(meter) = self.meter.take() {
            meter.end();
        }
        if self.over.is_none() {
            self.entry.is_within_budget(self.shared);
        }
        if self.content == Content::Full {
            self.entry.held.send_replace(Content::Full);
        }
    }

    /// Waits until nobody has wanted full objects for a while.
    async fn is_to_narrow(&self, wanted: Content) {
        if self.content == Content::Metadata || wanted == Content::Full {
            return std::future::pending().await;
        }
        let left_at = self.entry.state.lock().full_left_at.unwrap_or_else(Instant::now);
        tokio::time::sleep_until(left_at + NARROW_AFTER).await;
    }

    fn narrow(&mut self, informer: &SharedInformer) {
        // Whoever enters later sees that there are no full objects to be had yet.
        let state = self.entry.state.lock();
        if state.wanted() == Content::Full {
            return;
        }
        self.entry.held.send_replace(Content::Metadata);
        drop(state);
        self.go_to(informer, Content::Metadata);
    }

    /// What arrives does not fit. What was there before is there again.
    fn give_up(&mut self, informer: &SharedInformer, excess: &Excess, more: Usage) {
        let Some(meter) = self.meter.take() else { return };
        meter.end();
        let again_at = Instant::now() + TRY_AGAIN;
        self.over = Some(Over { wanted: self.wanted(), more, again_at });
        if informer.has_synced() {
            self.content = *self.entry.held.borrow();
            self.switch(informer, self.list_watch());
        } else {
            informer.switch(Source::none());
            self.is_held = true;
        }
        self.entry.is_over_budget(self.shared, excess);
    }

    /// Waits until there may be room for what there was none for.
    async fn finds_room(&self) {
        let Some(over) = &self.over else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK_FOR_ROOM).await;
            let usage =
                self.shared.ledger.add_to(self.shared.usage()).and(over.more.objects, over.more.bytes);
            if self.shared.limits.exceeded_by(&usage).is_none() || Instant::now() >= over.again_at {
                return;
            }
        }
    }

    /// Takes note of what happens to the watch.
    async fn follow(&mut self, informer: &SharedInformer, phases: &mut watch::Receiver<Phase>) {
        let phase = phases.borrow_and_update().clone();
        let trouble = |kind, message| self.entry.in_trouble(self.shared, kind, message);
        match phase {
            Phase::Waiting | Phase::Listing => {}
            Phase::Watching => {
                self.probe = None;
                self.entry.recovered(self.shared);
            }
            Phase::Absent => self.wait_until_served(informer, phases).await,
            Phase::Forbidden => trouble(TroubleKind::Forbidden, last_error(informer)),
            Phase::Failing { message } => trouble(TroubleKind::Unreachable, message),
        }
    }

    /// Asks for nothing until the resource is served, and then for a list. If its objects are gone for good, says so to those who listen.
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
                Probe::Absent { message, is_gone } => {
                    self.entry.in_trouble(self.shared, TroubleKind::Absent, message);
                    if is_gone && informer.has_synced() && !informer.indexer().is_empty() {
                        self.empty(informer).await;
                    }
                }
                Probe::Unknown { message } => {
                    self.entry.in_trouble(self.shared, TroubleKind::Unreachable, message)
                }
            }
        }
        self.probe = Some(probe);
        let asked_at = Instant::now();
        self.go_to(informer, self.content.max(self.wanted()));
        // What is served according to discovery may not be there yet, or not any more, for those who list it.
        let is_refused = || {
            let failed = informer.status().last_error.is_some_and(|failure| failure.at >= asked_at);
            failed && *phases.borrow() == Phase::Absent
        };
        let mut news = phases.clone();
        loop {
            let meter = self.meter.clone();
            tokio::select! {
                biased;
                _ = news.changed() => return,
                _ = exceeded(meter.as_deref()) => return,
                () = tokio::time::sleep(LOOK_FOR_FAILURE) => {}
            }
            if is_refused() {
                phases.mark_changed();
                return;
            }
        }
    }

    /// Tells everyone that all objects are gone.
    async fn empty(&self, informer: &SharedInformer) {
        let nothing = Nothing { resource_version: informer.last_resource_version() };
        let number = informer.switch(Source { list_watch: Some(Arc::new(nothing)), type_meta: None });
        informer.wait_for_source(number).await;
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

// === impl Nothing ===

#[async_trait]
impl ListWatch for Nothing {
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
