//! Why objects and keys are parked, since when, and after how many tries.

use std::collections::{BTreeSet, HashMap, HashSet};

use oarlock_informer::object::ObjectKey;
use serde::Serialize;

use super::active_generation::{ActiveGeneration, ActiveSubscription};
use super::due_call::CallKey;
use super::queue::{Key, PluginQueue};
use crate::report::Timestamp;

/// The most parked objects and keys of one plugin that the host can explain.
pub(crate) const MAX_NOTES: usize = 1_024;

/// The most bytes of the error that the host keeps for one of them.
const MAX_ERROR_BYTES: usize = 512;

/// An object or key that is parked: the host does not try it again before its next event, a swap, the slow
/// timer, or [`Commands::redeliver`](super::Commands::redeliver).
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Parked {
    /// The subscription of an object; none for a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subscription: Option<String>,
    /// The kind of a key; none for an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    pub(crate) namespace: String,
    /// Empty for the call of `on-synced`, and for a key without an object.
    pub(crate) name: String,
    /// How many calls failed, or were lost, before it was parked.
    pub(crate) tries: u32,
    pub(crate) since: Timestamp,
    /// One of `failed`, `terminal`, `instance-lost`.
    pub(crate) reason: &'static str,
    /// The last error, cut.
    pub(crate) last_error: String,
}

/// The notes on what is parked. An entry may be outdated: the object may be gone, or have been tried again.
/// What is parked for its losses keeps its note through a replay, during which it is not parked for a moment.
#[derive(Debug, Default)]
pub(super) struct ParkedNotes {
    notes: HashMap<CallKey, ParkedNote>,
}

/// What is parked now.
struct ParkedNow {
    /// By the index of the subscription.
    objects: Vec<BTreeSet<ObjectKey>>,
    synced: Vec<bool>,
    keys: HashSet<Key>,
}

/// Why one object or key is parked.
#[derive(Clone, Debug)]
pub(super) struct ParkedNote {
    pub(super) tries: u32,
    pub(super) since: Timestamp,
    pub(super) reason: &'static str,
    pub(super) last_error: String,
}

// === impl ParkedNote ===

impl ParkedNote {
    pub(super) fn new(reason: &'static str, tries: u32, error: &str) -> Self {
        let end = (0..=error.len().min(MAX_ERROR_BYTES)).rev().find(|end| error.is_char_boundary(*end));
        let last_error = error[..end.unwrap_or(0)].to_owned();
        Self { tries, since: Timestamp::now(), reason, last_error }
    }
}

// === impl ActiveGeneration ===

impl ActiveGeneration {
    /// Notes why something was parked. Beyond the bound, nothing is noted.
    pub(super) fn note_parked(&mut self, key: CallKey, note: ParkedNote, queue: &PluginQueue) {
        if self.parked_notes.notes.len() >= MAX_NOTES {
            let in_backlogs = self.subscriptions.iter().map(|it| it.listener.stats().parked).sum::<usize>();
            if in_backlogs + queue.n_parked() >= MAX_NOTES {
                return;
            }
            self.forget_outdated_notes(&self.parked_now(queue));
            if self.parked_notes.notes.len() >= MAX_NOTES {
                return;
            }
        }
        self.parked_notes.notes.insert(key, note);
    }

    /// Returns what is parked and noted, the oldest first.
    pub(super) fn list_parked(&mut self, queue: &PluginQueue) -> Vec<Parked> {
        let now = self.parked_now(queue);
        self.forget_outdated_notes(&now);
        let subscription_name = |index: &usize| Some(self.subscriptions[*index].plan.name.clone());
        let mut parked: Vec<_> = self
            .parked_notes
            .notes
            .iter()
            .filter(|(key, _)| now.contains(key))
            .map(|(key, note)| {
                let (subscription, kind, namespace, name) = match key {
                    CallKey::Object(index, key) => {
                        (subscription_name(index), None, key.namespace(), key.name())
                    }
                    CallKey::Synced(index) => (subscription_name(index), None, "", ""),
                    CallKey::Work(key) => (None, Some(key.kind.clone()), &*key.namespace, &*key.name),
                };
                let ParkedNote { tries, since, reason, last_error } = note.clone();
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                Parked { subscription, kind, namespace, name, tries, since, reason, last_error }
            })
            .collect();
        parked.sort_by(|a, b| {
            let rest = |it: &Parked| (it.subscription.clone(), it.kind.clone(), it.namespace.clone());
            (a.since, rest(a), &a.name).cmp(&(b.since, rest(b), &b.name))
        });
        parked
    }

    fn parked_now(&self, queue: &PluginQueue) -> ParkedNow {
        let subscriptions = self.subscriptions.iter();
        ParkedNow {
            objects: subscriptions.clone().map(|it| it.listener.parked().into_iter().collect()).collect(),
            synced: subscriptions.map(ActiveSubscription::is_synced_parked).collect(),
            keys: queue.parked().into_iter().collect(),
        }
    }

    fn forget_outdated_notes(&mut self, now: &ParkedNow) {
        let Self { parked_notes, crash_backoff, .. } = self;
        parked_notes.notes.retain(|key, _| now.contains(key) || crash_backoff.is_parked(key));
    }
}

// === impl ParkedNow ===

impl ParkedNow {
    fn contains(&self, key: &CallKey) -> bool {
        match key {
            CallKey::Object(index, key) => self.objects[*index].contains(key),
            CallKey::Synced(index) => self.synced[*index],
            CallKey::Work(key) => self.keys.contains(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_4_the_error_of_what_is_parked_is_cut() {
        let note = ParkedNote::new("failed", 6, &"é".repeat(10_000));
        assert_eq!(note.last_error, "é".repeat(MAX_ERROR_BYTES / 2));
        assert_eq!(ParkedNote::new("failed", 6, "x€").last_error, "x€");
    }
}
