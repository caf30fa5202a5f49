//! Objects and keys that cost the plugin its instance.
//!
//! A fresh instance serves what is healthy first. A suspect is tried alone and last: when nothing else is ready, and not before its
//! back-off has passed, which doubles with each loss up to [`RetryPolicy::cap`]. Under a load that never ends it is tried once it
//! has been due for [`PATIENCE`]. After a number of tries of its own it is parked, until its next event (another version), a swap of
//! the plugin, or the slow timer gives it one more try.
//!
//! Several suspects share a back-off that grows while their tries are lost and ends with the first that is answered, so that many of
//! them cost the plugin no more instances than one.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::retry::RetryPolicy;

/// A suspect that has been due for this long is tried although something healthy is ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// While so many suspects wait for a try, what becomes one is parked at its first loss.
const MAX_WAITING: usize = 16;

/// The suspects of one plugin, by what was called for them.
#[derive(Debug)]
pub(super) struct Suspects<K> {
    entries: HashMap<K, Suspect>,
    /// Those that wait for a try, by when it is due.
    waiting: BTreeMap<Ticket, K>,
    n_tickets: u64,
    /// Tries of suspects that were lost in a row.
    lost_in_a_row: u32,
    /// No suspect is tried before.
    quiet_until: Option<Instant>,
}

/// When a try is due; the number keeps those of one moment apart.
type Ticket = (Instant, u64);

/// What to do with a call that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// Make it: it is no suspect.
    Call,
    /// It waits until [`Suspects::take`] names it.
    Defer,
    /// It had its tries in this version.
    Park,
}

/// What becomes of a call that cost the instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Loss {
    /// It was a suspect before.
    pub(super) was_suspect: bool,
    /// How often it cost the instance.
    pub(super) losses: u32,
    /// How long until it is tried again, at the earliest; none when it is parked.
    pub(super) again_after: Option<Duration>,
}

#[derive(Debug)]
struct Suspect {
    /// Changes with every change of what is called for.
    version: String,
    losses: u32,
    lost_at: Instant,
    waiting: Option<Ticket>,
    is_parked: bool,
}

// === impl Suspects ===

impl<K: Clone + Eq + Hash> Suspects<K> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            waiting: BTreeMap::new(),
            n_tickets: 0,
            lost_in_a_row: 0,
            quiet_until: None,
        }
    }

    /// Whether there is none, which is the rule.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What to do with a call that is due.
    pub(super) fn judge(&mut self, key: &K, version: &str, policy: &RetryPolicy) -> Verdict {
        let Some(suspect) = self.entries.get(key) else { return Verdict::Call };
        if suspect.is_parked && suspect.version == version {
            return Verdict::Park;
        }
        self.wait(key, policy);
        Verdict::Defer
    }

    /// The call cost the instance.
    pub(super) fn lost(&mut self, key: &K, version: &str, policy: &RetryPolicy) -> Loss {
        let now = Instant::now();
        let was_suspect = self.entries.contains_key(key);
        if was_suspect {
            self.lost_in_a_row = self.lost_in_a_row.saturating_add(1);
            // It doubles with every second loss: one suspect alone waits for its own back-off, not for this one.
            self.quiet_until = Some(now + policy.back_off(self.lost_in_a_row.div_ceil(2)));
        }
        let suspect = self.entries.entry(key.clone()).or_insert_with(|| Suspect {
            version: String::new(),
            losses: 0,
            lost_at: now,
            waiting: None,
            is_parked: false,
        });
        suspect.losses = suspect.losses.saturating_add(1);
        suspect.lost_at = now;
        version.clone_into(&mut suspect.version);
        let losses = suspect.losses;
        let is_crowded = !was_suspect && self.waiting.len() >= MAX_WAITING;
        suspect.is_parked = losses >= policy.loss_tries || is_crowded;
        let again_after = if suspect.is_parked {
            self.stop_waiting(key);
            None
        } else {
            Some(self.wait(key, policy).saturating_duration_since(now))
        };
        Loss { was_suspect, losses, again_after }
    }

    /// The call came back with an answer, whichever: it breaks nothing now.
    pub(super) fn clear(&mut self, key: &K) {
        if self.entries.is_empty() {
            return;
        }
        self.stop_waiting(key);
        if self.entries.remove(key).is_some() {
            self.lost_in_a_row = 0;
            self.quiet_until = None;
        }
    }

    /// Takes the suspect whose turn it is, among those that `may_be_tried`. While something healthy is ready that is one that has
    /// waited beyond patience.
    pub(super) fn take(
        &mut self,
        now: Instant,
        healthy_is_ready: bool,
        may_be_tried: impl Fn(&K) -> bool,
    ) -> Option<K> {
        if self.waiting.is_empty() || self.quiet_until.is_some_and(|until| until > now) {
            return None;
        }
        let patience = if healthy_is_ready { PATIENCE } else { Duration::ZERO };
        let (_, key) = self
            .waiting
            .iter()
            .take_while(|((due, _), _)| *due + patience <= now)
            .find(|(_, key)| may_be_tried(key))?;
        let key = key.clone();
        self.stop_waiting(&key);
        Some(key)
    }

    /// When the next of those that `may_be_tried` is due.
    pub(super) fn next_due(&self, may_be_tried: impl Fn(&K) -> bool) -> Option<Instant> {
        let ((due, _), _) = self.waiting.iter().find(|(_, key)| may_be_tried(key))?;
        Some(self.quiet_until.map_or(*due, |until| until.max(*due)))
    }

    /// Whether a call was deferred and waits for its turn.
    #[cfg(test)]
    fn is_waiting(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|suspect| suspect.waiting.is_some())
    }

    /// What waited for some suspects is gone, or is judged anew: they wait no more, but are suspects still.
    pub(super) fn forget_waiting(&mut self, which: impl Fn(&K) -> bool) {
        let waiting: Vec<_> = self.waiting.values().filter(|key| which(key)).cloned().collect();
        waiting.iter().for_each(|key| self.stop_waiting(key));
    }

    /// The slow timer: what is parked gets one more try, and those that were not seen for long are forgotten.
    pub(super) fn release_parked(&mut self, policy: &RetryPolicy) {
        let now = Instant::now();
        let is_old = |suspect: &Suspect| {
            suspect.waiting.is_none()
                && now.saturating_duration_since(suspect.lost_at) > policy.parked_again * 2
        };
        self.entries.retain(|_, suspect| !is_old(suspect));
        self.entries.values_mut().for_each(|suspect| suspect.is_parked = false);
    }

    /// Makes a suspect wait for its turn, and returns when that is at the earliest.
    fn wait(&mut self, key: &K, policy: &RetryPolicy) -> Instant {
        let now = Instant::now();
        self.n_tickets += 1;
        let ticket_number = self.n_tickets;
        let Some(suspect) = self.entries.get_mut(key) else { return now };
        let due = suspect.lost_at + policy.back_off(suspect.losses);
        if let Some(before) = suspect.waiting.replace((due, ticket_number)) {
            self.waiting.remove(&before);
        }
        self.waiting.insert((due, ticket_number), key.clone());
        self.quiet_until.map_or(due, |until| until.max(due))
    }

    fn stop_waiting(&mut self, key: &K) {
        if let Some(ticket) = self.entries.get_mut(key).and_then(|suspect| suspect.waiting.take()) {
            self.waiting.remove(&ticket);
        }
    }
}

#[cfg(test)]
mod tests;
