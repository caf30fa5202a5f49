//! The order of the waiting keys: those of new events go before those of initial adds.
//!
//! After a start or a replay the keys of all objects wait. A key of a new event must not wait behind them, so
//! it goes first; after every [`NEW_PER_INITIAL`] such keys one of an initial add is taken, so that those
//! wait for a bounded time as well. A key that waits for an initial add moves forward when an event adds it
//! again.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use oarlock_informer::toolkit::workqueue::Order;
use parking_lot::Mutex;

use super::Key;

/// After so many keys of new events, one of an initial add is taken.
const NEW_PER_INITIAL: u32 = 4;

/// The keys that nothing but initial adds have added since they were last taken.
pub(super) type InitialKeys = Arc<Mutex<HashSet<Key>>>;

/// The waiting keys.
#[derive(Default)]
pub(super) struct NewKeysFirst {
    initial_keys: InitialKeys,
    new: VecDeque<Key>,
    initial: BTreeMap<u64, Key>,
    /// The places of the keys in `initial`.
    tickets: HashMap<Key, u64>,
    next_ticket: u64,
    n_new_in_a_row: u32,
}

// === impl NewKeysFirst ===

impl NewKeysFirst {
    pub(super) fn new(initial_keys: InitialKeys) -> Self {
        Self { initial_keys, ..Self::default() }
    }

    fn pop_initial(&mut self) -> Option<Key> {
        let (_, key) = self.initial.pop_first()?;
        self.tickets.remove(&key);
        self.n_new_in_a_row = 0;
        Some(key)
    }
}

impl Order<Key> for NewKeysFirst {
    fn push(&mut self, key: Key) {
        if self.initial_keys.lock().contains(&key) {
            self.tickets.insert(key.clone(), self.next_ticket);
            self.initial.insert(self.next_ticket, key);
            self.next_ticket += 1;
        } else {
            self.new.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<Key> {
        if self.n_new_in_a_row >= NEW_PER_INITIAL
            && let Some(key) = self.pop_initial()
        {
            return Some(key);
        }
        let Some(key) = self.new.pop_front() else { return self.pop_initial() };
        // While no key of an initial add waits, none is kept waiting.
        self.n_new_in_a_row = if self.initial.is_empty() { 0 } else { self.n_new_in_a_row + 1 };
        Some(key)
    }

    fn len(&self) -> usize {
        self.new.len() + self.initial.len()
    }

    fn touch(&mut self, key: &Key) {
        if !self.initial_keys.lock().contains(key)
            && let Some(ticket) = self.tickets.remove(key)
        {
            self.new.extend(self.initial.remove(&ticket));
        }
    }

    fn shrink_to(&mut self, n_keys: usize) {
        self.new.shrink_to(n_keys);
        self.tickets.shrink_to(n_keys);
    }
}
