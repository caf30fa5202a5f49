//! The change that is being matched, and for which listeners.

use std::iter::Enumerate;
use std::slice;
use std::sync::Arc;

use crate::listener::{Change, Matching, Plan, Shared, Verdict};

/// So many times a change is matched again because listeners came meanwhile; then those that came last are asked under the lock.
const MAX_AGAIN: usize = 3;

/// Matches one change after the other for the listeners that there are.
#[derive(Default)]
pub(super) struct Matcher {
    /// The listeners of the plan, in the order of their registration.
    listeners: Vec<Arc<Shared>>,
    plan: Option<Plan>,
    is_trivial: bool,
    /// Which registrations and removals the plan knows of.
    version: u64,
    matching: Matching,
    job: Option<Job>,
    /// How often the matching of this change was begun again.
    n_again: usize,
    #[cfg(test)]
    pub(super) tally: Tally,
}

/// A change that is being matched.
pub(super) struct Job {
    pub(super) change: Change,
    pub(super) is_sync: bool,
    is_done: bool,
}

/// What a change is to each listener.
pub(super) struct Verdicts<'m> {
    planned: Enumerate<slice::Iter<'m, Arc<Shared>>>,
    plan: &'m Plan,
    matching: &'m Matching,
    #[cfg(test)]
    n_alone: &'m mut u64,
}

/// What matching has cost, ever.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Texts that were walked over.
    pub(crate) walks: u64,
    /// Slices of work.
    pub(crate) slices: u64,
    /// Listeners that were asked by themselves, while deltas were blocked.
    pub(crate) alone: u64,
}

// === impl Matcher ===

impl Matcher {
    /// Whether its plan is for the listeners that there are at this version.
    pub(super) fn is_at(&self, version: u64) -> bool {
        self.plan.is_some() && self.version == version
    }

    /// Whether what is being matched was begun again so often that it is not begun again once more.
    pub(super) fn is_tired(&self) -> bool {
        self.job.is_some() && self.n_again >= MAX_AGAIN
    }

    /// Makes the plan for these listeners. What was being matched begins again.
    pub(super) fn plan(&mut self, listeners: Vec<Arc<Shared>>, version: u64) {
        let plan = Shared::plan(&listeners);
        self.is_trivial = plan.is_trivial();
        (self.plan, self.listeners, self.version) = (Some(plan), listeners, version);
        self.n_again += usize::from(self.job.take().is_some());
    }

    /// Whether everything is news to all listeners.
    pub(super) fn is_trivial(&self) -> bool {
        self.is_trivial
    }

    pub(super) fn has_begun_with(&self, change: &Change) -> bool {
        self.job.as_ref().is_some_and(|job| job.change.is_same(change))
    }

    /// Begins with a change. If it is a sync, it is for those listeners alone that are syncing.
    pub(super) fn begin(&mut self, change: Change, is_sync: bool, is_syncing: impl Fn(&Arc<Shared>) -> bool) {
        let Some(plan) = &self.plan else { return };
        let object = change.object();
        self.matching.begin(plan, &change, |listener| {
            let shared = &self.listeners[listener];
            shared.sees(object) && (!is_sync || is_syncing(shared))
        });
        self.job = Some(Job { change, is_sync, is_done: false });
    }

    /// Goes on for about so much work, and takes off what it did; answers whether all is known.
    pub(super) fn advance(&mut self, n_left: &mut usize) -> bool {
        let (Some(plan), Some(job)) = (&self.plan, &mut self.job) else { return true };
        if !job.is_done {
            #[cfg(test)]
            let n_walks = self.matching.n_walks;
            job.is_done = self.matching.advance(plan, &job.change, n_left);
            #[cfg(test)]
            {
                self.tally.slices += 1;
                self.tally.walks += self.matching.n_walks - n_walks;
            }
        }
        job.is_done
    }

    /// Goes on for about so much work; answers whether there is more.
    pub(super) fn go_on(&mut self, work: usize) -> bool {
        !self.advance(&mut { work })
    }

    /// Whether a change is being matched.
    pub(super) fn is_busy(&self) -> bool {
        self.job.as_ref().is_some_and(|job| !job.is_done)
    }

    /// Returns the change that was matched, and what it is to each listener.
    pub(super) fn finish(&mut self) -> Option<(Job, Verdicts<'_>)> {
        self.n_again = 0;
        let (job, plan) = (self.job.take()?, self.plan.as_ref()?);
        let verdicts = Verdicts {
            planned: self.listeners.iter().enumerate(),
            plan,
            matching: &self.matching,
            #[cfg(test)]
            n_alone: &mut self.tally.alone,
        };
        Some((job, verdicts))
    }
}

// === impl Verdicts ===

impl Verdicts<'_> {
    /// Returns what the change is to a listener. They are to be asked for in the order of their registration; one that was not matched with
    /// the others is asked now, by itself.
    pub(super) fn of(&mut self, listener: &Arc<Shared>, change: &Change) -> Verdict {
        // A listener that was removed meanwhile is passed over; one that came stands behind all others.
        let place = self.planned.find(|(_, shared)| Arc::ptr_eq(shared, listener));
        let known = place.map_or(Verdict::Unknown, |(place, _)| self.matching.verdict(self.plan, place));
        if known != Verdict::Unknown || !listener.sees(change.object()) {
            return known;
        }
        #[cfg(test)]
        {
            *self.n_alone += 1;
        }
        listener.judge(change)
    }
}
