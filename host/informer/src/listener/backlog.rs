//! What waits for one listener: a line of notifications per object.
//!
//! A plain data structure: it does not wait, lock or match, and reads the clock only for what backs off. An object is *ready*, *in
//! flight*, *backing off*, *deferred* or *parked*; it is in the map exactly while it is one of these. Among the ready objects the one whose first
//! notification arrived first goes first, so that with one line and no failures everything leaves in the order in which it came.

mod exchange;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hashbrown::hash_map::{Entry, EntryRef};
use tokio::time::Instant;

use super::account::BacklogAccount;
use super::merge;
use super::notification::{Delivery, Notification, Outcome};
use crate::clock;
use crate::names::{KeyMap, ObjectKey};
use crate::object::Object;

/// Below this many objects the map never bothers to give memory back.
const SMALL: usize = 64;

/// So many empty lines are kept for the next objects, and none that has had many notifications.
const MAX_SPARE: usize = 32;
const MAX_SPARE_CAPACITY: usize = 4;

/// The first ticket: there is room for more in front than anyone will ever put there.
const MIDDLE_TICKET: u64 = 1 << 48;

/// The notifications that wait for one listener.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Beyond this many waiting notifications those of one object merge.
    limit: usize,
    account: BacklogAccount,
    /// What of the account is this backlog's: by what waits and by what is in flight.
    held: usize,
    lines: KeyMap<Line>,
    spare: Vec<VecDeque<Pending>>,
    /// The ready objects by the ticket of their first notification.
    ready: BTreeMap<u64, ObjectKey>,
    /// The objects in back-off by when it ends.
    backing_off: BTreeMap<(Instant, u64), ObjectKey>,
    /// The objects that wait until they are asked for.
    deferred: BTreeSet<ObjectKey>,
    first_ticket: u64,
    next_ticket: u64,
    n_waiting: usize,
    n_in_flight: usize,
    n_parked: usize,
    /// Initial adds that are not finished.
    n_initial: usize,
    pub(super) n_delivered: u64,
    pub(super) n_merged: u64,
    pub(super) n_retried: u64,
}

/// One notification of an object, or what several have merged into.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) notification: Notification,
    /// Its place among all that arrived; that of the oldest when merged.
    pub(super) ticket: u64,
    pub(super) arrived: Instant,
    pub(super) attempts: u32,
    /// The consumer has been given it before.
    pub(super) tried: bool,
    /// An initial add that the listener's sync waits for is in it.
    pub(super) counts_for_sync: bool,
}

#[derive(Debug)]
struct Line {
    state: LineState,
    /// In order of arrival; not empty when the object is ready, backing off or parked.
    waiting: VecDeque<Pending>,
    /// What is billed for new states of these, or of what is in flight, that the object has not any more.
    outdated: usize,
}

#[derive(Debug)]
enum LineState {
    Ready,
    InFlight(InFlight),
    BackingOff { until: Instant },
    Deferred,
    Parked,
}

#[derive(Debug)]
struct InFlight {
    pending: Pending,
    /// A replay or a narrowing came in between.
    superseded: Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Superseded {
    No,
    /// By a replay: only a delete of an object that is not there again is worth a retry.
    ByReplay,
    /// The object is not visible any more: never to be retried.
    ByNarrowing,
}

// === impl Backlog ===

impl Backlog {
    pub(super) fn new(limit: usize, account: BacklogAccount) -> Self {
        Self {
            limit,
            account,
            held: 0,
            lines: KeyMap::default(),
            spare: Vec::new(),
            ready: BTreeMap::new(),
            backing_off: BTreeMap::new(),
            deferred: BTreeSet::new(),
            first_ticket: MIDDLE_TICKET,
            next_ticket: MIDDLE_TICKET,
            n_waiting: 0,
            n_in_flight: 0,
            n_parked: 0,
            n_initial: 0,
            n_delivered: 0,
            n_merged: 0,
            n_retried: 0,
        }
    }

    /// Makes an empty one with the same bounds.
    pub(super) fn new_like(&self) -> Self {
        Self::new(self.limit, self.account.clone())
    }

    /// Appends a notification to its object's line.
    pub(super) fn push(&mut self, key: ObjectKey, notification: Notification, now: Instant) {
        let counts_for_sync = matches!(notification, Notification::Added { is_in_initial_list: true, .. });
        self.n_initial += usize::from(counts_for_sync);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let pending =
            Pending { notification, ticket, arrived: now, attempts: 0, tried: false, counts_for_sync };
        let is_full = self.n_waiting >= self.limit || self.account.is_full();
        self.hold(n_superseded(&pending.notification));
        match self.lines.entry(key) {
            Entry::Vacant(vacant) => {
                self.ready.insert(ticket, vacant.key().clone());
                let mut waiting = self.spare.pop().unwrap_or_else(|| VecDeque::with_capacity(1));
                waiting.push_back(pending);
                vacant.insert(Line { state: LineState::Ready, waiting, outdated: 0 });
                self.n_waiting += 1;
            }
            Entry::Occupied(mut occupied) => {
                let line = occupied.get_mut();
                line.waiting.push_back(pending);
                self.n_waiting += 1;
                let has_failed = line.waiting.front().is_some_and(|first| first.attempts > 0);
                match line.state {
                    LineState::Ready | LineState::InFlight(_) if !is_full && !has_failed => {}
                    LineState::Ready => {
                        let key = occupied.key().clone();
                        self.leave_ready(&key);
                        self.collapse(&key);
                        self.become_ready(key);
                    }
                    LineState::InFlight(_) => {
                        let key = occupied.key().clone();
                        self.collapse(&key);
                    }
                    LineState::BackingOff { until } => {
                        let key = occupied.key().clone();
                        self.leave_back_off(&key, until);
                        self.collapse(&key);
                        self.back_off(key, until);
                    }
                    LineState::Deferred => {
                        let key = occupied.key().clone();
                        self.collapse(&key);
                        self.defer(key);
                    }
                    LineState::Parked => {
                        let key = occupied.key().clone();
                        self.n_parked -= 1;
                        self.collapse(&key);
                        self.forget_attempts(&key);
                        self.become_ready(key);
                    }
                }
            }
        }
    }

    /// The object has another state, which differs in nothing that the consumer cares about. If the account is full what waits last for it gets
    /// that state; else the one that it has is billed from now on, since nothing else holds it.
    pub(super) fn supersede(&mut self, before: &Object, now: &Object) {
        if self.n_waiting == 0 {
            return;
        }
        let is_full = self.account.is_full();
        let Some(line) = self.lines.get_mut(now.key()) else { return };
        let Some(last) = line.waiting.back_mut() else { return };
        let held_before = n_superseded(&last.notification) + line.outdated;
        let state = match &mut last.notification {
            Notification::Added { object: new, .. } | Notification::Updated { new, .. } => new,
            Notification::Deleted { .. } => return,
        };
        let was_current = state.is_same(before);
        if is_full {
            let outdated = if was_current { 0 } else { state.json_length() };
            line.outdated = line.outdated.saturating_sub(outdated);
            *state = now.clone();
        } else if was_current {
            line.outdated += before.json_length();
        }
        let held = n_superseded(&last.notification) + line.outdated;
        self.release(held_before);
        self.hold(held);
    }

    /// Takes the oldest ready object's first notification; the object is then in flight.
    pub(super) fn take(&mut self) -> Option<Delivery> {
        self.end_back_off();
        let (_, key) = self.ready.pop_first()?;
        self.take_first(key)
    }

    /// Takes a deferred object's notification, as [`Backlog::take`]; none if the object is not deferred.
    pub(super) fn take_deferred(&mut self, key: &ObjectKey) -> Option<Delivery> {
        let key = self.deferred.take(key)?;
        self.take_first(key)
    }

    /// Makes all that is deferred ready; returns how many.
    pub(super) fn release_deferred(&mut self) -> usize {
        let deferred = std::mem::take(&mut self.deferred);
        let n_released = deferred.len();
        deferred.into_iter().for_each(|key| self.become_ready(key));
        n_released
    }

    fn take_first(&mut self, key: ObjectKey) -> Option<Delivery> {
        let line = self.lines.get_mut(&key)?;
        let mut pending = line.waiting.pop_front()?;
        pending.tried = true;
        let delivery = Delivery {
            key,
            notification: pending.notification.clone(),
            attempts: pending.attempts,
            arrived: pending.arrived,
        };
        line.state = LineState::InFlight(InFlight { pending, superseded: Superseded::No });
        self.n_waiting -= 1;
        self.n_in_flight += 1;
        Some(delivery)
    }

    /// Returns when the next back-off ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.backing_off.keys().next().map(|(until, _)| *until)
    }

    /// Ends an object's flight; answers false when it is not in flight.
    pub(super) fn finish(&mut self, key: &ObjectKey, outcome: Outcome) -> bool {
        if outcome == Outcome::Done && self.finish_line(key) {
            self.shrink();
            return true;
        }
        let Some(in_flight) = self.land(key) else { return false };
        let InFlight { mut pending, superseded } = in_flight;
        let is_worth_retrying = self.is_worth_retrying(key, &pending, superseded);
        match outcome {
            Outcome::Done => {
                self.n_delivered += 1;
                self.settle(key, &mut pending);
            }
            Outcome::Retry { .. } | Outcome::Defer | Outcome::Park if !is_worth_retrying => {
                self.settle(key, &mut pending);
            }
            Outcome::Retry { after } => {
                self.n_retried += 1;
                pending.attempts = pending.attempts.saturating_add(1);
                self.put_back(key, pending);
                self.collapse(key);
                if after.is_zero() {
                    self.become_ready(key.clone());
                } else {
                    self.back_off(key.clone(), clock::after(Instant::now(), after));
                }
            }
            Outcome::Defer => {
                self.put_back(key, pending);
                self.collapse(key);
                self.defer(key.clone());
            }
            Outcome::Park => {
                self.n_initial -= usize::from(std::mem::take(&mut pending.counts_for_sync));
                let has_news = self.lines.get(key).is_some_and(|line| !line.waiting.is_empty());
                self.put_back(key, pending);
                self.collapse(key);
                if has_news {
                    self.forget_attempts(key);
                    self.become_ready(key.clone());
                } else if let Some(line) = self.lines.get_mut(key) {
                    line.state = LineState::Parked;
                    self.n_parked += 1;
                }
            }
        }
        self.shrink();
        true
    }

    /// Puts everything that is in flight back to the front of its line, ready at once and not counted as failed.
    pub(super) fn abandon_in_flight(&mut self) -> usize {
        let keys: Vec<_> = self
            .lines
            .iter()
            .filter(|(_, line)| matches!(line.state, LineState::InFlight(_)))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &keys {
            let Some(InFlight { mut pending, superseded }) = self.land(key) else { continue };
            if self.is_worth_retrying(key, &pending, superseded) {
                let has_failed = pending.attempts > 0;
                self.put_back(key, pending);
                if has_failed || self.n_waiting > self.limit {
                    self.collapse(key);
                }
                self.become_ready(key.clone());
            } else {
                self.settle(key, &mut pending);
            }
        }
        keys.len()
    }

    /// Makes all dead letters ready, with a fresh count of attempts; returns how many.
    pub(super) fn retry_parked(&mut self) -> usize {
        let parked = self.parked();
        for key in &parked {
            self.n_parked -= 1;
            self.forget_attempts(key);
            self.become_ready(key.clone());
        }
        parked.len()
    }

    /// Returns the keys of the dead letters.
    pub(super) fn parked(&self) -> Vec<ObjectKey> {
        let parked = self.lines.iter().filter(|(_, line)| matches!(line.state, LineState::Parked));
        parked.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.n_waiting - self.n_parked
    }

    pub(super) fn n_parked(&self) -> usize {
        self.n_parked
    }

    pub(super) fn n_in_flight(&self) -> usize {
        self.n_in_flight
    }

    pub(super) fn n_backing_off(&self) -> usize {
        self.backing_off.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.ready.is_empty() && self.backing_off.is_empty() && self.n_waiting == 0
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.lines.capacity()
    }

    pub(super) fn n_deferred(&self) -> usize {
        self.deferred.len()
    }

    /// Returns how many objects there are that a consumer will be given without anything further happening.
    pub(super) fn n_to_come(&self) -> usize {
        self.ready.len() + self.backing_off.len()
    }

    /// Returns how many initial adds are not finished.
    pub(super) fn n_initial(&self) -> usize {
        self.n_initial
    }

    /// Returns how long the oldest notification that is ready, backing off or deferred has waited.
    pub(super) fn oldest_age(&self, now: Instant) -> Duration {
        let ready = self.ready.values().take(1);
        let waiting = ready.chain(self.backing_off.values()).chain(&self.deferred);
        let arrived =
            waiting.filter_map(|key| self.lines.get(key)?.waiting.front()).map(|first| first.arrived).min();
        arrived.map_or(Duration::ZERO, |arrived| now.saturating_duration_since(arrived))
    }

    /// Forgets an object whose delivery was handled and for which nothing else waits, which is the rule; answers whether it is so.
    fn finish_line(&mut self, key: &ObjectKey) -> bool {
        let EntryRef::Occupied(entry) = self.lines.entry_ref(key) else { return false };
        let Line { state: LineState::InFlight(in_flight), waiting, outdated } = entry.get() else {
            return false;
        };
        if !waiting.is_empty() {
            return false;
        }
        let held = n_superseded(&in_flight.pending.notification) + outdated;
        self.n_initial -= usize::from(in_flight.pending.counts_for_sync);
        self.n_in_flight -= 1;
        self.n_delivered += 1;
        let Line { waiting, .. } = entry.remove();
        self.release(held);
        self.keep_spare(waiting);
        true
    }

    fn keep_spare(&mut self, waiting: VecDeque<Pending>) {
        if self.spare.len() < MAX_SPARE && waiting.capacity() <= MAX_SPARE_CAPACITY {
            self.spare.push(waiting);
        }
    }

    /// Ends a flight, leaving the line for the caller to put into its next state.
    fn land(&mut self, key: &ObjectKey) -> Option<InFlight> {
        let line = self.lines.get_mut(key)?;
        match std::mem::replace(&mut line.state, LineState::Ready) {
            LineState::InFlight(in_flight) => {
                self.n_in_flight -= 1;
                Some(in_flight)
            }
            other => {
                line.state = other;
                None
            }
        }
    }

    fn is_worth_retrying(&self, key: &ObjectKey, pending: &Pending, superseded: Superseded) -> bool {
        match superseded {
            Superseded::No => true,
            Superseded::ByNarrowing => false,
            Superseded::ByReplay => {
                let is_there_again = self.lines.get(key).is_some_and(|line| !line.waiting.is_empty());
                matches!(pending.notification, Notification::Deleted { .. }) && !is_there_again
            }
        }
    }

    /// Is done with a landed notification: its object goes on with the next one, or is forgotten.
    fn settle(&mut self, key: &ObjectKey, pending: &mut Pending) {
        self.n_initial -= usize::from(std::mem::take(&mut pending.counts_for_sync));
        self.release(n_superseded(&pending.notification));
        if self.lines.get(key).is_some_and(|line| !line.waiting.is_empty()) {
            self.become_ready(key.clone());
        } else if let Some(Line { waiting, outdated, .. }) = self.lines.remove(key) {
            self.release(outdated);
            self.keep_spare(waiting);
        }
    }

    fn put_back(&mut self, key: &ObjectKey, pending: Pending) {
        if let Some(line) = self.lines.get_mut(key) {
            line.waiting.push_front(pending);
            self.n_waiting += 1;
        }
    }

    /// Merges all that waits for an object. The line may be empty afterwards.
    fn collapse(&mut self, key: &ObjectKey) {
        let Some(line) = self.lines.get_mut(key) else { return };
        let before = line.waiting.len();
        if before < 2 {
            return;
        }
        let initial =
            |line: &VecDeque<Pending>| line.iter().filter(|pending| pending.counts_for_sync).count();
        let n_initial = initial(&line.waiting);
        let held_before = n_superseded_in(&line.waiting) + std::mem::take(&mut line.outdated);
        line.waiting = merge::fold(std::mem::take(&mut line.waiting)).into();
        let held = n_superseded_in(&line.waiting);
        self.n_initial -= n_initial - initial(&line.waiting);
        self.n_waiting -= before - line.waiting.len();
        self.n_merged += (before - line.waiting.len()) as u64;
        self.release(held_before);
        self.hold(held);
    }

    fn forget_attempts(&mut self, key: &ObjectKey) {
        if let Some(first) = self.lines.get_mut(key).and_then(|line| line.waiting.front_mut()) {
            first.attempts = 0;
        }
    }

    /// Makes an object ready, or forgets it when nothing waits for it.
    fn become_ready(&mut self, key: ObjectKey) {
        let Some(line) = self.lines.get_mut(&key) else { return };
        if let Some(first) = line.waiting.front() {
            line.state = LineState::Ready;
            self.ready.insert(first.ticket, key);
        } else {
            self.forget(&key);
        }
    }

    fn leave_ready(&mut self, key: &ObjectKey) {
        let Some(line) = self.lines.get(key) else { return };
        if let (LineState::Ready, Some(first)) = (&line.state, line.waiting.front()) {
            self.ready.remove(&first.ticket);
        }
    }

    /// Makes those ready that have waited for long enough.
    fn end_back_off(&mut self) {
        if self.backing_off.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(entry) = self.backing_off.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.become_ready(key);
        }
    }

    /// Makes an object wait, or forgets it when nothing waits for it.
    fn back_off(&mut self, key: ObjectKey, until: Instant) {
        let Some(line) = self.lines.get_mut(&key) else { return };
        if let Some(first) = line.waiting.front() {
            line.state = LineState::BackingOff { until };
            self.backing_off.insert((until, first.ticket), key);
        } else {
            self.forget(&key);
        }
    }

    /// Makes an object wait until it is asked for, or forgets it when nothing waits for it.
    fn defer(&mut self, key: ObjectKey) {
        let Some(line) = self.lines.get_mut(&key) else { return };
        if line.waiting.is_empty() {
            self.deferred.remove(&key);
            self.lines.remove(&key);
        } else {
            line.state = LineState::Deferred;
            self.deferred.insert(key);
        }
    }

    fn leave_back_off(&mut self, key: &ObjectKey, until: Instant) {
        if let Some(first) = self.lines.get(key).and_then(|line| line.waiting.front()) {
            self.backing_off.remove(&(until, first.ticket));
        }
    }

    /// Forgets an object for which nothing waits.
    fn forget(&mut self, key: &ObjectKey) {
        if let Some(Line { outdated, .. }) = self.lines.remove(key) {
            self.release(outdated);
        }
    }

    fn hold(&mut self, n_bytes: usize) {
        self.held += n_bytes;
        self.account.add(n_bytes);
    }

    fn release(&mut self, n_bytes: usize) {
        self.held -= n_bytes;
        self.account.take_off(n_bytes);
    }

    /// Gives memory back after a burst.
    fn shrink(&mut self) {
        if self.lines.capacity() > SMALL && self.lines.len() < self.lines.capacity() / 8 {
            self.lines.shrink_to(SMALL.max(self.lines.len() * 2));
        }
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.release(self.held);
    }
}

/// Returns how many bytes of states a notification holds that the cache has not any more.
fn n_superseded(notification: &Notification) -> usize {
    match notification {
        Notification::Added { .. } => 0,
        Notification::Updated { old, new } if old.is_same(new) => 0,
        Notification::Updated { old: superseded, .. } | Notification::Deleted { object: superseded, .. } => {
            superseded.json_length()
        }
    }
}

fn n_superseded_in(line: &VecDeque<Pending>) -> usize {
    line.iter().map(|pending| n_superseded(&pending.notification)).sum()
}
