//! Crash back-off: delays a call that cost the plugin its instance, so that all other calls are made first.
//!
//! A call in crash back-off is made alone and last: when no
//! other call is ready, and not before its back-off has passed, which doubles with each loss up to
//! [`RetryPolicy::cap`]. Under a load that never ends it is made once it has been due for [`PATIENCE`]. After
//! [`RetryPolicy::loss_tries`] losses it is parked, until its next event (another version), a swap of the
//! plugin, or the slow timer gives it one more try.
//!
//! All calls in crash back-off share a pause, which grows while their tries are lost and ends with the first
//! one that is answered, so that many of them cost the plugin no more instances than one.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::retry::RetryPolicy;

/// A call that has been due for this long is made although other calls are ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// While so many calls wait for a try, a new one is parked at its first loss.
const MAX_WAITING: usize = 16;

/// The calls of one plugin in crash back-off, by their key. `V` is the version of the object or key.
#[derive(Debug)]
pub(super) struct CrashBackoff<K, V> {
    entries: HashMap<K, BackoffEntry<V>>,
    /// The calls that wait for a try, by when it is due.
    waiting: BTreeMap<Ticket, K>,
    n_tickets: u64,
    /// Tries in a row that were lost.
    lost_in_a_row: u32,
    /// The end of the shared pause.
    paused_until: Option<Instant>,
}

/// When a try is due; the number distinguishes tries that are due at the same moment.
type Ticket = (Instant, u64);

/// The decision about a due call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Decision {
    /// It is not in crash back-off: make it.
    Call,
    /// It waits until [`CrashBackoff::take`] returns it.
    Defer,
    /// It had all its tries in this version.
    Park,
}

/// The consequence of a call that cost the instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Loss {
    /// The call was in crash back-off before.
    pub(super) was_in_backoff: bool,
    /// How many instances the call has cost.
    pub(super) losses: u32,
    /// How long until it is made again, at the earliest; `None` when it is parked.
    pub(super) again_after: Option<Duration>,
}

#[derive(Debug)]
struct BackoffEntry<V> {
    /// The version that was lost last.
    version: V,
    losses: u32,
    lost_at: Instant,
    waiting: Option<Ticket>,
    is_parked: bool,
}

// === impl CrashBackoff ===

impl<K: Clone + Eq + Hash, V: Eq> CrashBackoff<K, V> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            waiting: BTreeMap::new(),
            n_tickets: 0,
            lost_in_a_row: 0,
            paused_until: None,
        }
    }

    /// Returns whether no call is in crash back-off, which is the normal case.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Decides what happens to a due call. The version is computed only for a call that is parked.
    pub(super) fn check(&mut self, key: &K, version: impl FnOnce() -> V, policy: &RetryPolicy) -> Decision {
        let Some(entry) = self.entries.get(key) else { return Decision::Call };
        if entry.is_parked && entry.version == version() {
            return Decision::Park;
        }
        self.wait(key, policy);
        Decision::Defer
    }

    /// Notes that a call cost the instance.
    pub(super) fn lost(&mut self, key: K, version: V, policy: &RetryPolicy) -> Loss {
        let now = Instant::now();
        let was_in_backoff = self.entries.contains_key(&key);
        if was_in_backoff {
            self.lost_in_a_row = self.lost_in_a_row.saturating_add(1);
            // The pause doubles with every second loss: a single call waits for its own back-off, not for the
            // pause.
            self.paused_until = Some(now + policy.back_off(self.lost_in_a_row.div_ceil(2)));
        }
        let losses = self.entries.get(&key).map_or(0, |entry| entry.losses).saturating_add(1);
        let is_crowded = !was_in_backoff && self.waiting.len() >= MAX_WAITING;
        let is_parked = losses >= policy.loss_tries || is_crowded;
        self.stop_waiting(&key);
        self.entries
            .insert(key.clone(), BackoffEntry { version, losses, lost_at: now, waiting: None, is_parked });
        let again_after = (!is_parked).then(|| self.wait(&key, policy).saturating_duration_since(now));
        Loss { was_in_backoff, losses, again_after }
    }

    /// Notes that a call was answered, with success or failure: it leaves crash back-off.
    pub(super) fn clear(&mut self, key: &K) {
        self.stop_waiting(key);
        if self.entries.remove(key).is_some() {
            self.lost_in_a_row = 0;
            self.paused_until = None;
        }
    }

    /// Takes the call that is to be made next, among those that `may_call` accepts. While other calls are
    /// ready, only one that has been due for [`PATIENCE`] is taken.
    pub(super) fn take(
        &mut self,
        now: Instant,
        others_are_ready: bool,
        may_call: impl Fn(&K) -> bool,
    ) -> Option<K> {
        if self.waiting.is_empty() || self.paused_until.is_some_and(|until| until > now) {
            return None;
        }
        let patience = if others_are_ready { PATIENCE } else { Duration::ZERO };
        let (_, key) = self
            .waiting
            .iter()
            .take_while(|((due, _), _)| *due + patience <= now)
            .find(|(_, key)| may_call(key))?;
        let key = key.clone();
        self.stop_waiting(&key);
        Some(key)
    }

    /// Returns when the next call that `may_call` accepts is due.
    pub(super) fn next_due(&self, may_call: impl Fn(&K) -> bool) -> Option<Instant> {
        let ((due, _), _) = self.waiting.iter().find(|(_, key)| may_call(key))?;
        Some(self.paused_until.map_or(*due, |until| until.max(*due)))
    }

    /// Returns whether a call is parked if it is due again in the version that was lost.
    pub(super) fn is_parked(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_parked)
    }

    /// Returns whether a call was deferred and waits for its try.
    #[cfg(test)]
    fn is_waiting(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.waiting.is_some())
    }

    /// Ends the wait of the calls that `which` selects, since they are gone or will be checked again. They
    /// stay in crash back-off.
    pub(super) fn forget_waiting(&mut self, which: impl Fn(&K) -> bool) {
        let waiting: Vec<_> = self.waiting.values().filter(|key| which(key)).cloned().collect();
        waiting.iter().for_each(|key| self.stop_waiting(key));
    }

    /// Gives each parked call one more try, and forgets calls that were not made for a long time. The slow
    /// timer calls this.
    pub(super) fn release_parked(&mut self, policy: &RetryPolicy) {
        let now = Instant::now();
        let is_old = |entry: &BackoffEntry<V>| {
            entry.waiting.is_none() && now.saturating_duration_since(entry.lost_at) > policy.parked_again * 2
        };
        self.entries.retain(|_, entry| !is_old(entry));
        self.release_those(|_| true);
    }

    /// Gives a parked call one more try.
    pub(super) fn release(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.is_parked = false;
        }
    }

    /// Gives each parked call that `which` selects one more try.
    pub(super) fn release_those(&mut self, which: impl Fn(&K) -> bool) {
        let selected = self.entries.iter_mut().filter(|(key, _)| which(key));
        selected.for_each(|(_, entry)| entry.is_parked = false);
    }

    /// Makes a call wait for its try, and returns when that is due at the earliest.
    fn wait(&mut self, key: &K, policy: &RetryPolicy) -> Instant {
        let now = Instant::now();
        self.n_tickets += 1;
        let ticket_number = self.n_tickets;
        let Some(entry) = self.entries.get_mut(key) else { return now };
        let due = entry.lost_at + policy.back_off(entry.losses);
        if let Some(before) = entry.waiting.replace((due, ticket_number)) {
            self.waiting.remove(&before);
        }
        self.waiting.insert((due, ticket_number), key.clone());
        self.paused_until.map_or(due, |until| until.max(due))
    }

    fn stop_waiting(&mut self, key: &K) {
        if let Some(ticket) = self.entries.get_mut(key).and_then(|entry| entry.waiting.take()) {
            self.waiting.remove(&ticket);
        }
    }
}

#[cfg(test)]
mod tests;
