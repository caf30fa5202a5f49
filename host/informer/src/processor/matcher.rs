//! Matches one change after the other against the filters of all listeners.

use std::iter::Enumerate;
use std::slice;
use std::sync::Arc;

use parking_lot::Mutex;

use super::kept_values::KeptValues;
use crate::listener::{Change, ChangeCheck, Decision, ListenerShared, MatchPlan, NotificationFields};
use crate::object::{SharedPointers, StateValues};

/// How often a change is matched again because listeners were registered meanwhile. After that, listeners
/// that the plan does not have are checked one by one while deltas are blocked.
const MAX_RETRIES: usize = 3;

/// Matches one change after the other for the registered listeners.
#[derive(Default)]
pub(super) struct Matcher {
    /// The listeners of the plan, in the order of their registration.
    listeners: Vec<Arc<ListenerShared>>,
    plan: Option<MatchPlan>,
    matches_everything: bool,
    /// The version of the registrations that the plan was made for.
    version: u64,
    check: ChangeCheck,
    job: Option<Job>,
    /// How often the matching of this change was restarted.
    n_retries: usize,
    #[cfg(test)]
    pub(super) tally: Tally,
}

/// A change that is being matched.
pub(super) struct Job {
    pub(super) change: Change,
    /// Only listeners that are resyncing receive the change.
    pub(super) is_resync_only: bool,
    is_done: bool,
}

/// The decision on a change for each listener.
pub(super) struct Decisions<'m> {
    planned: Enumerate<slice::Iter<'m, Arc<ListenerShared>>>,
    plan: &'m MatchPlan,
    check: &'m ChangeCheck,
    #[cfg(test)]
    n_alone: &'m mut u64,
}

/// The decision on a change for one listener.
#[derive(Clone, Copy)]
pub(super) struct Decided<'m> {
    pub(super) decision: Decision,
    /// Plan, check and the index of the listener, if it was matched with the others.
    planned: Option<(&'m MatchPlan, &'m ChangeCheck, usize)>,
}

/// The work that matching has done.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Texts that were walked.
    pub(crate) walks: u64,
    /// Slices of work.
    pub(crate) slices: u64,
    /// Listeners that were checked one by one while deltas were blocked.
    pub(crate) alone: u64,
}

// === impl Matcher ===

impl Matcher {
    /// Returns whether the plan was made for this version of the registrations.
    pub(super) fn is_planned_for(&self, version: u64) -> bool {
        self.plan.is_some() && self.version == version
    }

    /// Returns whether the matching of the current change was restarted so often that it is not restarted
    /// again.
    pub(super) fn is_out_of_retries(&self) -> bool {
        self.job.is_some() && self.n_retries >= MAX_RETRIES
    }

    /// Makes the plan for these listeners, and sets the pointers that the decoder copies and whose values are
    /// kept. The matching of the current change restarts.
    pub(super) fn plan(
        &mut self,
        listeners: Vec<Arc<ListenerShared>>,
        version: u64,
        copied: &SharedPointers,
        kept: &Mutex<KeptValues>,
    ) {
        let mut plan = ListenerShared::plan(&listeners);
        self.matches_everything = plan.matches_everything();
        if let Some(before) = &self.plan {
            plan.continue_from(before);
        }
        kept.lock().follow(plan.number());
        copied.set(plan.to_copy());
        for (listener_idx, listener) in listeners.iter().enumerate() {
            listener.set_planned(plan.planned_fields(listener_idx));
        }
        (self.plan, self.listeners, self.version) = (Some(plan), listeners, version);
        self.n_retries += usize::from(self.job.take().is_some());
    }

    /// Returns whether every change concerns every listener, so that nothing needs to be matched.
    pub(super) fn matches_everything(&self) -> bool {
        self.matches_everything
    }

    pub(super) fn has_begun_with(&self, change: &Change) -> bool {
        self.job.as_ref().is_some_and(|job| job.change.is_same(change))
    }

    /// Begins to match a change, for the resyncing listeners alone if `is_resync_only`. `kept` are the kept
    /// values of the state before in the cache.
    pub(super) fn begin(
        &mut self,
        change: Change,
        kept: Option<StateValues>,
        is_resync_only: bool,
        is_resyncing: impl Fn(&Arc<ListenerShared>) -> bool,
    ) {
        let Some(plan) = &self.plan else { return };
        let object = change.object();
        self.check.begin(plan, &change, kept, |listener_idx| {
            let listener = &self.listeners[listener_idx];
            listener.sees(object) && (!is_resync_only || is_resyncing(listener))
        });
        self.job = Some(Job { change, is_resync_only, is_done: false });
    }

    /// Continues to match the current change and subtracts the work from `n_left`; returns whether the change
    /// is matched.
    pub(super) fn advance(&mut self, n_left: &mut usize) -> bool {
        let (Some(plan), Some(job)) = (&self.plan, &mut self.job) else { return true };
        if !job.is_done {
            #[cfg(test)]
            let n_walks = self.check.n_walks;
            job.is_done = self.check.advance(plan, &job.change, n_left);
            #[cfg(test)]
            {
                self.tally.slices += 1;
                self.tally.walks += self.check.n_walks - n_walks;
            }
        }
        job.is_done
    }

    /// Continues to match the current change for about so much work; returns whether more is left.
    pub(super) fn match_some(&mut self, work: usize) -> bool {
        !self.advance(&mut { work })
    }

    /// Returns whether a change has been begun and is not matched yet.
    pub(super) fn is_matching(&self) -> bool {
        self.job.as_ref().is_some_and(|job| !job.is_done)
    }

    /// Returns the matched change, and the decision for each listener.
    pub(super) fn finish(&mut self) -> Option<(Job, Decisions<'_>)> {
        self.n_retries = 0;
        let (job, plan) = (self.job.take()?, self.plan.as_ref()?);
        let decisions = Decisions {
            planned: self.listeners.iter().enumerate(),
            plan,
            check: &self.check,
            #[cfg(test)]
            n_alone: &mut self.tally.alone,
        };
        Some((job, decisions))
    }

    /// Keeps the values of the new state, which the cache has now. `slot_of` returns the slot of a new
    /// object; `slot` is that of the state before.
    pub(super) fn keep(
        &self,
        kept: &mut KeptValues,
        slot: Option<u32>,
        slot_of: impl FnOnce() -> Option<u32>,
    ) {
        let Some(Job { change, .. }) = &self.job else { return };
        let values = self.check.new_values();
        let (slot, values) = match change {
            Change::Updated { old, new, .. } if old.is_same(new) => return,
            Change::Added { is_in_initial_list: false, .. } if values.is_some() => (slot_of(), values),
            Change::Updated { .. } => (slot, values),
            Change::Added { .. } | Change::Deleted { .. } => (slot, None),
        };
        if let Some(slot) = slot {
            kept.set(slot, values);
        }
    }
}

// === impl Decisions ===

impl<'m> Decisions<'m> {
    /// Returns the decision for a listener. Called for the listeners in the order of their registration. A
    /// listener that was not matched with the others is checked now, by itself.
    pub(super) fn of(&mut self, listener: &Arc<ListenerShared>, change: &Change) -> Decided<'m> {
        // Skips listeners that were removed meanwhile. Those that were registered meanwhile come after all of
        // the plan.
        let planned = self.planned.find(|(_, planned)| Arc::ptr_eq(planned, listener)).map(|(idx, _)| idx);
        let decision = planned.map_or(Decision::NotChecked, |idx| self.check.decision(self.plan, idx));
        if decision != Decision::NotChecked || !listener.sees(change.object()) {
            return Decided { decision, planned: planned.map(|idx| (self.plan, self.check, idx)) };
        }
        #[cfg(test)]
        {
            *self.n_alone += 1;
        }
        Decided { decision: listener.check(change), planned: None }
    }
}

// === impl Decided ===

impl Decided<'_> {
    /// Returns the decision for a listener whose filter matches everything.
    pub(super) fn of_unfiltered(change: &Change) -> Self {
        Self { decision: Decision::of_unfiltered(change), planned: None }
    }

    /// Returns the values of the declared fields that the notification carries.
    pub(super) fn fields(&self, change: &Change) -> NotificationFields {
        self.planned
            .map_or_else(NotificationFields::default, |(plan, check, idx)| check.fields(plan, change, idx))
    }
}
