//! Applies deltas to the cache and notifies the listeners: client-go's `HandleDeltas`.
//!
//! The cache decides whether a change is an add or an update, not the type of the delta.
//!
//! **Matching comes first.** Before it takes the lock `block_deltas`, the handler finds out which listeners a
//! change concerns, in slices of work, since texts may be long and listeners many. This is correct because
//! only this handler changes the cache: the state that a delta will replace is known beforehand, and the
//! filter of a listener never changes. Under the lock the handler applies the change and appends to the
//! backlog of each listener. If a listener was registered meanwhile, the change is matched again for all
//! listeners; a listener whose namespaces changed meanwhile is checked under the lock.
//!
//! **Locks.** The informer's one consumer owns the handler, so matching needs no lock. While a listener is
//! notified, the consumer holds the lock of the delta queue, `block_deltas`, and the lock of that listener's
//! state, taken in this order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::matcher::{Decided, Job, Matcher};
use super::{Processor, ProcessorState};
use crate::delta_fifo::{Delta, DeltaObject, Deltas};
use crate::listener::{Change, ListenerShared};
use crate::names::ObjectKey;

#[cfg(test)]
use super::matcher::Tally;

/// How much the handler matches at a time, in bytes of text: about a millisecond's worth.
pub(crate) const SLICE: usize = 1 << 20;

/// Applies deltas to the cache of one informer and notifies its listeners.
pub(crate) struct DeltaHandler {
    processor: Arc<Processor>,
    matcher: Matcher,
}

// === impl DeltaHandler ===

impl DeltaHandler {
    /// Returns the handler for the deltas of one informer, of which there must be one only.
    pub(crate) fn new(processor: Arc<Processor>) -> Self {
        Self { processor, matcher: Matcher::default() }
    }

    /// Applies the deltas of one object, each to the cache first, then to the listeners. Does all matching at
    /// once.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn handle(&mut self, deltas: &Deltas, is_in_initial_list: bool) {
        self.handle_some(deltas, is_in_initial_list, usize::MAX);
    }

    /// Applies deltas of one object, as [`handle`](Self::handle), until `work` bytes of text are matched.
    /// Returns how many deltas it has applied. [`match_some`](Self::match_some) continues to match the next
    /// one.
    pub(crate) fn handle_some(&mut self, deltas: &Deltas, is_in_initial_list: bool, work: usize) -> usize {
        let mut now = None;
        let mut n_left = work;
        let deltas = deltas.as_slice();
        let is_unmatched = |delta: &Delta| !self.handle_one(delta, is_in_initial_list, &mut now, &mut n_left);
        deltas.iter().position(is_unmatched).unwrap_or(deltas.len())
    }

    /// Continues the matching that [`handle_some`](Self::handle_some) began; returns whether more is left.
    pub(crate) fn match_some(&mut self, work: usize) -> bool {
        self.matcher.match_some(work)
    }

    /// Returns whether [`handle_some`](Self::handle_some) has begun to match a change that is not matched
    /// yet.
    pub(crate) fn is_matching(&self) -> bool {
        self.matcher.is_matching()
    }

    /// Returns the work that matching has done.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> Tally {
        self.matcher.tally
    }

    /// Makes the plan for the listeners, if some were registered or removed since the last one. The next
    /// change would do that as well, but initial adds may come before it.
    pub(crate) fn plan_if_due(&mut self) {
        let Self { processor, matcher } = self;
        if !matcher.is_planned_for(processor.registrations_version.load(Ordering::Acquire)) {
            plan(processor, matcher);
        }
    }

    /// Applies one delta; returns false if the work ran out before the change was matched.
    fn handle_one(
        &mut self,
        delta: &Delta,
        is_in_initial_list: bool,
        now: &mut Option<Instant>,
        n_left: &mut usize,
    ) -> bool {
        let Self { processor, matcher } = self;
        let version = || processor.registrations_version.load(Ordering::Acquire);
        loop {
            if !matcher.is_planned_for(version()) && !matcher.is_out_of_retries() {
                plan(processor, matcher);
            }
            if matcher.matches_everything() {
                let mut state = processor.block_deltas.lock();
                if !matcher.is_planned_for(version()) {
                    continue;
                }
                if let Some(change) = state.apply(delta, is_in_initial_list) {
                    let decided = Decided::of_unfiltered(&change);
                    state.distribute(&change, change.changes_nothing(), now, |_, _| decided);
                }
                return true;
            }
            let key = key_of(delta);
            let (slot, cached) = processor.indexer.get_with_slot(key).unzip();
            let Some(change) = Change::of_delta(delta, cached, is_in_initial_list) else {
                let mut state = processor.block_deltas.lock();
                let mut kept = processor.kept.lock();
                state.apply(delta, is_in_initial_list);
                if let Some(slot) = slot {
                    kept.set(slot, None);
                }
                return true;
            };
            if !matcher.has_begun_with(&change) {
                let is_resync_only = change.changes_nothing();
                let resyncing =
                    if is_resync_only { processor.block_deltas.lock().resyncing() } else { Vec::new() };
                let kept = processor.kept_before_change(slot);
                matcher.begin(change, kept, is_resync_only, |listener| {
                    resyncing.iter().any(|it| Arc::ptr_eq(it, listener))
                });
            }
            if !matcher.advance(n_left) {
                return false;
            }
            let mut state = processor.block_deltas.lock();
            if !matcher.is_planned_for(version()) && !matcher.is_out_of_retries() {
                continue;
            }
            // A listener that looks for kept values sees them change together with the cache.
            let mut kept = processor.kept.lock();
            state.apply(delta, is_in_initial_list);
            let slot_of = || processor.indexer.get_with_slot(key).map(|(slot, _)| slot);
            matcher.keep(&mut kept, slot, slot_of);
            drop(kept);
            if let Some((Job { change, is_resync_only, .. }, mut decisions)) = matcher.finish() {
                state.distribute(&change, is_resync_only, now, |listener, change| {
                    decisions.of(listener, change)
                });
            }
            return true;
        }
    }
}

/// Makes the plan for the listeners that are registered now.
fn plan(processor: &Processor, matcher: &mut Matcher) {
    let state = processor.block_deltas.lock();
    let version = processor.registrations_version.load(Ordering::Acquire);
    let listeners = state.registrations.iter().map(|it| it.listener.clone()).collect();
    drop(state);
    matcher.plan(listeners, version, &processor.copied, &processor.kept);
    processor.record_size(&mut processor.kept.lock());
}

// === impl ProcessorState ===

impl ProcessorState {
    /// Applies a delta to the cache; returns the change for the listeners, if there is one.
    fn apply(&mut self, delta: &Delta, is_in_initial_list: bool) -> Option<Change> {
        let old = match delta {
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
                self.writer.put(new.clone())
            }
            Delta::Deleted(DeltaObject::Object(object)) => self.writer.delete(object.key(), Some(object)),
            Delta::Deleted(DeltaObject::Tombstone(tombstone)) => self.writer.delete(&tombstone.key, None),
        };
        Change::of_delta(delta, old, is_in_initial_list)
    }

    /// Notifies each listener of a change, as decided for it. `is_resync_only` restricts it to the listeners
    /// that are resyncing.
    fn distribute<'m>(
        &self,
        change: &Change,
        is_resync_only: bool,
        now: &mut Option<Instant>,
        mut decide: impl FnMut(&Arc<ListenerShared>, &Change) -> Decided<'m>,
    ) {
        for registration in &self.registrations {
            if !is_resync_only || registration.resync.is_resyncing() {
                let now = *now.get_or_insert_with(Instant::now);
                let decided = decide(&registration.listener, change);
                registration.listener.notify(change, decided.decision, || decided.fields(change), now);
            }
        }
    }

    fn resyncing(&self) -> Vec<Arc<ListenerShared>> {
        let resyncing = self.registrations.iter().filter(|registration| registration.resync.is_resyncing());
        resyncing.map(|registration| registration.listener.clone()).collect()
    }
}

/// Returns the key of a delta's object in the cache.
fn key_of(delta: &Delta) -> &ObjectKey {
    match delta {
        Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
            object.key()
        }
        Delta::Deleted(DeltaObject::Object(object)) => object.key(),
        Delta::Deleted(DeltaObject::Tombstone(tombstone)) => &tombstone.key,
    }
}
