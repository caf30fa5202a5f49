//! The backlog of one listener: a queue of notifications per object.
//!
//! A plain data structure: it does not wait, lock or match, and reads the clock only for back-off. Each
//! object in the map is *ready*, *in flight*, *backing off*, *deferred* or *parked*; other objects are not
//! in the map. The initial adds of a snapshot wait in a list (`initial_adds.rs`): an object of it comes
//! into the map when it is delivered, or changes. Of the ready objects, the one whose first notification
//! came first is delivered first, save that initial adds come after new work (`ready.rs`). So without
//! failures and initial adds notifications are delivered in the order in which they came, save that an
//! object in flight waits.

mod charges;
mod initial_adds;
mod ready;
mod retries;
mod states;
mod transfer;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::hash_map::Entry;
use oarlock_flow_control::clock;
use tokio::time::Instant;

use self::charges::n_charged_bytes;
use self::ready::{Next, ReadyQueue};
use super::account::BacklogAccount;
use super::config::NamedKey;
use super::notification::{Delivery, Notification, Outcome};
use super::values::NotificationFields;
use crate::names::{KeyMap, ObjectKey};

/// The map keeps room for this many objects when it shrinks.
const MIN_CAPACITY: usize = 28;

/// How many empty queues are kept for the next objects.
const MAX_SPARE: usize = 8;
/// A queue with room for more notifications is not kept.
const MAX_SPARE_CAPACITY: usize = 4;

/// The first ticket. Lower tickets are for notifications that are pushed to the front.
const MIDDLE_TICKET: u64 = 1 << 48;

/// The notifications that wait for one listener.
#[derive(Debug)]
pub(super) struct Backlog {
    /// While this many notifications wait, those of one object merge.
    limit: usize,
    account: BacklogAccount,
    /// What merging may not hide.
    keys: Option<NamedKey>,
    /// How many bytes this backlog has charged to the account.
    charged: usize,
    objects: KeyMap<ObjectQueue>,
    /// The deliveries of the objects that are in flight: few, so that entries of `objects` are small.
    in_flight: KeyMap<InFlight>,
    spare_queues: Vec<VecDeque<Pending>>,
    ready: ReadyQueue,
    /// The objects in back-off, by its end and the ticket of their first notification.
    backing_off: BTreeMap<(Instant, u64), ObjectKey>,
    /// The deferred objects, which wait until the consumer asks for them.
    deferred: BTreeSet<ObjectKey>,
    first_ticket: u64,
    next_ticket: u64,
    n_waiting: usize,
    n_parked: usize,
    /// How many initial adds are not finished.
    n_initial: usize,
    pub(super) n_delivered: u64,
    pub(super) n_merged: u64,
    pub(super) n_retried: u64,
}

/// One notification of an object, or several that were merged into one.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) notification: Notification,
    pub(super) fields: NotificationFields,
    /// Its position among all notifications; for a merged one, that of the oldest.
    pub(super) ticket: u64,
    pub(super) arrived: Instant,
    pub(super) attempts: u32,
    /// The consumer has taken it before.
    pub(super) tried: bool,
    /// It contains an initial add that the listener's sync waits for.
    pub(super) counts_for_sync: bool,
    /// It is an initial add that nothing was merged with, so new work goes before it.
    pub(super) is_initial: bool,
    /// Several notifications were merged into it.
    pub(super) is_merged: bool,
}

/// The notifications of one object.
#[derive(Debug)]
struct ObjectQueue {
    state: ObjectState,
    /// In order of arrival. Not empty while the object is ready, backing off, deferred or parked.
    waiting: VecDeque<Pending>,
    /// The bytes charged for new states, of notifications that wait or are in flight, that the object no
    /// longer has.
    n_outdated_bytes: usize,
}

#[derive(Debug)]
enum ObjectState {
    Ready,
    /// Its delivery is in `in_flight`.
    InFlight,
    BackingOff {
        until: Instant,
    },
    Deferred,
    Parked,
}

#[derive(Debug)]
struct InFlight {
    pending: Pending,
    /// Whether a replay or a change of the visible namespaces came since.
    superseded: Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Superseded {
    No,
    /// By a replay: only the delete of an object that does not exist again may be repeated.
    ByReplay,
    /// The object is not visible any more: the delivery is never repeated.
    ByNarrowing,
}

// === impl Backlog ===

impl Backlog {
    pub(super) fn new(limit: usize, account: BacklogAccount) -> Self {
        Self {
            limit,
            account,
            keys: None,
            charged: 0,
            objects: KeyMap::default(),
            in_flight: KeyMap::default(),
            spare_queues: Vec::new(),
            ready: ReadyQueue::default(),
            backing_off: BTreeMap::new(),
            deferred: BTreeSet::new(),
            first_ticket: MIDDLE_TICKET,
            next_ticket: MIDDLE_TICKET,
            n_waiting: 0,
            n_parked: 0,
            n_initial: 0,
            n_delivered: 0,
            n_merged: 0,
            n_retried: 0,
        }
    }

    /// Sets [`ListenerConfig::keys`](super::ListenerConfig::keys).
    pub(super) fn with_keys(mut self, keys: Option<NamedKey>) -> Self {
        self.keys = keys;
        self
    }

    /// Returns an empty backlog with the same settings.
    pub(super) fn new_like(&self) -> Self {
        Self::new(self.limit, self.account.clone()).with_keys(self.keys.clone())
    }

    /// Appends a notification to its object's queue, and merges the queue if the limit says so.
    pub(super) fn push(
        &mut self,
        key: ObjectKey,
        notification: Notification,
        fields: NotificationFields,
        now: Instant,
    ) {
        let is_initial = matches!(notification, Notification::Added { is_in_initial_list: true, .. });
        let pending = Pending {
            notification,
            fields,
            ticket: self.next_ticket,
            arrived: now,
            attempts: 0,
            tried: false,
            counts_for_sync: is_initial,
            is_initial,
            is_merged: false,
        };
        self.push_last(key, pending);
    }

    /// Appends a notification that gets the next ticket.
    fn push_last(&mut self, key: ObjectKey, pending: Pending) {
        self.queue_listed(&key);
        self.n_initial += usize::from(pending.counts_for_sync);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.push_pending(key, Pending { ticket, ..pending });
    }

    fn push_pending(&mut self, key: ObjectKey, pending: Pending) {
        let (ticket, is_initial) = (pending.ticket, pending.is_initial);
        let is_full = self.n_waiting >= self.limit || self.account.is_full();
        self.charge(n_charged_bytes(&pending));
        match self.objects.entry(key) {
            Entry::Vacant(vacant) => {
                self.ready.insert(ticket, vacant.key().clone(), is_initial);
                let mut waiting = self.spare_queues.pop().unwrap_or_else(|| VecDeque::with_capacity(1));
                waiting.push_back(pending);
                vacant.insert(ObjectQueue { state: ObjectState::Ready, waiting, n_outdated_bytes: 0 });
                self.n_waiting += 1;
            }
            Entry::Occupied(mut occupied) => {
                let queue = occupied.get_mut();
                queue.waiting.push_back(pending);
                self.n_waiting += 1;
                let has_failed = queue.waiting.front().is_some_and(|first| first.attempts > 0);
                match queue.state {
                    ObjectState::Ready if !is_full && !has_failed => {
                        let first = queue.waiting.front().map_or(ticket, |first| first.ticket);
                        self.ready.promote(first);
                    }
                    ObjectState::InFlight if !is_full && !has_failed => {}
                    ObjectState::Ready => {
                        let key = occupied.key().clone();
                        self.leave_ready(&key);
                        self.merge_waiting(&key);
                        self.become_ready(key);
                    }
                    ObjectState::InFlight => {
                        let key = occupied.key().clone();
                        self.merge_waiting(&key);
                    }
                    ObjectState::BackingOff { until } => {
                        let key = occupied.key().clone();
                        self.leave_back_off(&key, until);
                        self.merge_waiting(&key);
                        self.back_off(key, until);
                    }
                    ObjectState::Deferred => {
                        let key = occupied.key().clone();
                        self.merge_waiting(&key);
                        self.defer(key);
                    }
                    ObjectState::Parked => {
                        let key = occupied.key().clone();
                        self.n_parked -= 1;
                        self.merge_waiting(&key);
                        self.reset_attempts(&key);
                        self.become_ready(key);
                    }
                }
            }
        }
    }

    /// Takes the first notification of the ready object that is next; the object is in flight from then on.
    pub(super) fn take(&mut self) -> Option<Delivery> {
        self.end_back_off();
        match self.ready.pop()? {
            Next::Queued(key) => self.take_first(key),
            Next::Listed(initial) => Some(self.take_listed(initial)),
        }
    }

    /// Takes the notification of a deferred object; none if the object is not deferred.
    pub(super) fn take_deferred(&mut self, key: &ObjectKey) -> Option<Delivery> {
        let key = self.deferred.take(key)?;
        self.take_first(key)
    }

    /// Makes all deferred objects ready; returns how many.
    pub(super) fn release_deferred(&mut self) -> usize {
        let deferred = std::mem::take(&mut self.deferred);
        let n_released = deferred.len();
        deferred.into_iter().for_each(|key| self.become_ready(key));
        n_released
    }

    fn take_first(&mut self, key: ObjectKey) -> Option<Delivery> {
        let queue = self.objects.get_mut(&key)?;
        let pending = queue.waiting.pop_front()?;
        queue.state = ObjectState::InFlight;
        self.n_waiting -= 1;
        Some(self.begin_flight(key, pending))
    }

    /// Begins the delivery of a notification.
    fn begin_flight(&mut self, key: ObjectKey, mut pending: Pending) -> Delivery {
        pending.tried = true;
        let delivery = Delivery {
            key,
            notification: pending.notification.clone(),
            fields: pending.fields.clone(),
            is_merged: pending.is_merged,
            attempts: pending.attempts,
            arrived: pending.arrived,
        };
        self.in_flight.insert(delivery.key.clone(), InFlight { pending, superseded: Superseded::No });
        delivery
    }

    /// Returns when the next back-off ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.backing_off.keys().next().map(|(until, _)| *until)
    }

    /// Ends a delivery with its outcome; returns false if the object is not in flight.
    pub(super) fn finish(&mut self, key: &ObjectKey, outcome: Outcome) -> bool {
        if outcome == Outcome::Done && self.finish_last(key) {
            self.shrink();
            return true;
        }
        let Some(in_flight) = self.end_flight(key) else { return false };
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
                self.merge_waiting(key);
                if after.is_zero() {
                    self.become_ready(key.clone());
                } else {
                    self.back_off(key.clone(), clock::after(Instant::now(), after));
                }
            }
            Outcome::Defer => {
                self.put_back(key, pending);
                self.merge_waiting(key);
                self.defer(key.clone());
            }
            Outcome::Park => {
                self.n_initial -= usize::from(std::mem::take(&mut pending.counts_for_sync));
                let has_news = self.objects.get(key).is_some_and(|queue| !queue.waiting.is_empty());
                self.put_back(key, pending);
                self.merge_waiting(key);
                if has_news {
                    self.reset_attempts(key);
                    self.become_ready(key.clone());
                } else if let Some(queue) = self.objects.get_mut(key) {
                    queue.state = ObjectState::Parked;
                    self.n_parked += 1;
                }
            }
        }
        self.shrink();
        true
    }

    /// Returns all deliveries in flight to the front of their queues. They are ready at once and do not count
    /// as attempts.
    pub(super) fn abandon_in_flight(&mut self) -> usize {
        let keys: Vec<_> = self.in_flight.keys().cloned().collect();
        keys.iter().for_each(|key| self.abandon(key));
        keys.len()
    }

    /// Returns one delivery in flight to the front of its queue, like [`Backlog::abandon_in_flight`].
    pub(super) fn abandon(&mut self, key: &ObjectKey) {
        let Some(InFlight { mut pending, superseded }) = self.end_flight(key) else { return };
        if self.is_worth_retrying(key, &pending, superseded) {
            let has_failed = pending.attempts > 0;
            self.put_back(key, pending);
            if has_failed || self.n_waiting > self.limit {
                self.merge_waiting(key);
            }
            self.become_ready(key.clone());
        } else {
            self.settle(key, &mut pending);
        }
    }

    /// Frees the memory that is kept for the next notifications.
    pub(super) fn free_spare(&mut self) {
        self.spare_queues = Vec::new();
        self.objects.shrink_to_fit();
        self.in_flight.shrink_to_fit();
        self.ready.free_spare();
    }

    /// Frees memory after a burst.
    fn shrink(&mut self) {
        if self.objects.capacity() > MIN_CAPACITY && self.objects.len() < self.objects.capacity() / 8 {
            self.objects.shrink_to(MIN_CAPACITY.max(self.objects.len() * 2));
        }
    }
}
