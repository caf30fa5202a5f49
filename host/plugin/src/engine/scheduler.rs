//! Decides which guests run: a weighted fair queue over the CPU time of plugins.
//!
//! A guest is polled with a permit. There are as many permits as the runtime has workers. While all of them
//! are in use, guests wait here. A permit that becomes free goes to the plugin with the least *virtual time*:
//! the CPU time that its guests had, divided by its weight. A plugin that was idle begins at the virtual time
//! of the plugin that ran last, less one slice, so idleness is little credit.
//!
//! A guest that usually runs for a short time, and whose plugin has used no more than the others, need not
//! wait for a permit: as many such brief guests as there are permits run beyond them. When the slice of one
//! ends, it is queued like any other; the first tick in a poll does not end it ([`Turn::tick`]). So a plugin
//! that is called now and then does not wait behind those that always run, and at most two guests for each
//! worker are ever ready to run: the host's own tasks do not wait behind more.
//!
//! Guests that compute for long, and those that wait for a permit, run in the
//! [background](super::background).
//!
//! A permit is held during a poll, while a guest with an ended time slice is in the queue of its runtime, and
//! between two calls of a plugin that has used less than those that wait ([`kept`]): such a plugin has no
//! guest in the queue when its permit becomes free. Never during a wait for the host. Without contention a
//! poll takes and returns a permit with atomics only.

mod kept;

use std::{
    collections::{BTreeSet, HashMap, VecDeque, hash_map},
    future::Future as _,
    pin::pin,
    sync::{
        Arc,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Waker},
    time::Duration,
};

use parking_lot::Mutex;

pub(super) use self::kept::KeptPermit;
use super::{
    Share,
    background::{self, Background},
    nanos,
    turn::{Turn, TurnState},
};

/// The CPU time of guests after which a permit is handed over only when the worker has polled its sockets and
/// timers. Shorter polls in a row would otherwise cost a system call each.
const HAND_OVER_AT_ONCE: Duration = Duration::from_micros(250);

/// How far a brief guest's virtual time may be ahead of the guests that run, in nanoseconds.
const LEAD: u64 = 1_000_000;

/// How far the virtual time of a plugin may be behind that of the plugin that ran last, in nanoseconds: a
/// long slice. With less, a plugin that waits while the others have their slices would lose a part of its
/// share.
const CREDIT: u64 = 2_500_000;

/// The first key of an empty queue.
const NO_KEY: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Scheduler {
    n_permits: usize,
    n_free: AtomicUsize,
    n_waiting: AtomicUsize,
    /// The number of brief guests that run without a permit.
    n_beyond: AtomicUsize,
    /// The virtual time of the plugin that began to run last.
    virtual_time: AtomicU64,
    /// The CPU time of guests on workers since one last polled its sockets and timers, in nanoseconds.
    since_driver: AtomicU64,
    n_shares: AtomicU64,
    background: Background,
    /// The first key of the queue's order. It changes with the queue locked, and is read without: what is
    /// decided by it may be a little unfair, but loses no permit.
    first_key: AtomicU64,
    queue: Mutex<Queue>,
}

/// The plugins with waiting guests, in the order of their virtual time.
#[derive(Debug, Default)]
struct Queue {
    order: BTreeSet<(u64, u64)>,
    plugins: HashMap<u64, Waiting>,
    /// The permits that are or were kept since the last tick.
    kept: Vec<Arc<KeptPermit>>,
}

/// The waiting guests of one plugin. Its virtual time may have grown beyond `key`.
#[derive(Debug)]
struct Waiting {
    key: u64,
    share: Share,
    turns: VecDeque<Arc<Turn>>,
}

// === impl Scheduler ===

impl Scheduler {
    pub(super) fn new(n_permits: usize) -> Arc<Self> {
        let n_permits = n_permits.max(1);
        Arc::new(Self {
            n_permits,
            n_free: AtomicUsize::new(n_permits),
            n_waiting: AtomicUsize::new(0),
            n_beyond: AtomicUsize::new(0),
            virtual_time: AtomicU64::new(0),
            since_driver: AtomicU64::new(0),
            n_shares: AtomicU64::new(0),
            background: Background::new(n_permits),
            first_key: AtomicU64::new(NO_KEY),
            queue: Mutex::default(),
        })
    }

    pub(super) fn share(self: &Arc<Self>, weight: u32) -> Share {
        let id = self.n_shares.fetch_add(1, Relaxed);
        let share = Share::new(Arc::clone(self), id, weight);
        share.begin_at(self.virtual_time.load(Relaxed));
        share
    }

    pub(super) fn background(&self) -> &Background {
        &self.background
    }

    /// Returns whether a guest may run.
    pub(super) fn is_busy(&self) -> bool {
        self.n_free.load(SeqCst) < self.n_permits || self.n_beyond.load(SeqCst) > 0
    }

    /// Returns whether a guest waits for a permit.
    pub(super) fn has_waiting(&self) -> bool {
        self.n_waiting.load(SeqCst) > 0
    }

    /// Takes a permit for a guest that wants to run again after a wait. Otherwise queues it, and wakes it
    /// when it has a permit.
    pub(crate) fn acquire(&self, share: &Share, turn: &Arc<Turn>, waker: &Waker) -> bool {
        share.begin_at(self.virtual_time.load(Relaxed).saturating_sub(CREDIT));
        if share.kept().take() {
            self.runs(share.virtual_time());
            return true;
        }
        if self.n_waiting.load(SeqCst) == 0 && self.take() {
            self.runs(share.virtual_time());
            return true;
        }
        // On a worker only: the kernel may stop a thread of the background, and others would wait for its
        // place.
        if !background::is_here() && share.is_brief() && self.is_first(share) && self.take_beyond() {
            turn.begin_beyond();
            return true;
        }
        turn.wakes(waker);
        self.enqueue(share, turn);
        self.hand_out(Some(turn));
        turn.take_grant()
    }

    /// Ends the poll of a guest that now waits for the host.
    pub(crate) fn release(&self, share: &Share, turn: &Turn, ran: Duration) {
        self.charge(share, ran);
        if turn.end_beyond() {
            self.n_beyond.fetch_sub(1, SeqCst);
        } else {
            self.give_back();
        }
    }

    /// Ends the last poll of a call.
    pub(crate) fn end_call(&self, share: &Share, turn: &Turn, ran: Duration) {
        self.charge(share, ran);
        if turn.end_beyond() {
            self.n_beyond.fetch_sub(1, SeqCst);
        } else if !self.keep(share) {
            self.give_back();
        }
    }

    /// Ends the poll of a guest whose time slice ended. It is woken when it may go on.
    pub(crate) fn end_slice(&self, share: &Share, turn: &Arc<Turn>, waker: &Waker, ran: Duration) {
        self.charge(share, ran);
        if turn.end_beyond() {
            turn.wakes(waker);
            self.enqueue(share, turn);
            self.n_beyond.fetch_sub(1, SeqCst);
            self.hand_out(None);
            return;
        }
        if self.n_waiting.load(SeqCst) == 0 {
            self.runs(share.virtual_time());
            turn.set_state(TurnState::Granted);
            if share.is_brief() || background::is_here() {
                // The ticks came during a short call, behind which nothing waits for long; or the thread has
                // no sockets and timers.
                waker.wake_by_ref();
            } else {
                self.wake_after_driver(waker);
            }
            return;
        }
        turn.wakes(waker);
        self.enqueue(share, turn);
        self.give_back();
    }

    /// Removes a guest that is dropped: from the queue, or its permit.
    pub(crate) fn forget(&self, share: &Share, turn: &Arc<Turn>) {
        let had = {
            let mut queue = self.queue.lock();
            let had = turn.state();
            if had == TurnState::Waits {
                queue.remove(share.id(), turn);
                self.note_first_key(&queue);
                self.n_waiting.fetch_sub(1, SeqCst);
            }
            turn.set_state(TurnState::Idle);
            had
        };
        if had == TurnState::Granted {
            self.give_back();
        }
    }

    fn charge(&self, share: &Share, ran: Duration) {
        share.charge(ran);
        if self.n_waiting.load(Relaxed) > 0 && !background::is_here() {
            self.since_driver.fetch_add(nanos(ran), Relaxed);
        }
    }

    fn take(&self) -> bool {
        self.n_free.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok()
    }

    /// Returns whether a plugin has used no more than those that run, but for a slice.
    fn is_first(&self, share: &Share) -> bool {
        share.virtual_time() <= self.virtual_time.load(Relaxed).saturating_add(LEAD)
    }

    fn take_beyond(&self) -> bool {
        let room = |n: usize| (n < self.n_permits).then_some(n + 1);
        self.n_beyond.fetch_update(SeqCst, SeqCst, room).is_ok()
    }

    fn give_back(&self) {
        // A guest is queued and counted before it looks for a free permit; this thread returns the permit
        // before it looks for a waiting guest. So at least one of them sees the other.
        self.n_free.fetch_add(1, SeqCst);
        if self.n_waiting.load(SeqCst) > 0 {
            self.hand_out(None);
        }
    }

    /// Notes that a plugin at this virtual time begins to run.
    fn runs(&self, virtual_time: u64) {
        if self.virtual_time.load(Relaxed) < virtual_time {
            self.virtual_time.fetch_max(virtual_time, Relaxed);
        }
    }

    fn enqueue(&self, share: &Share, turn: &Arc<Turn>) {
        let mut queue = self.queue.lock();
        turn.set_state(TurnState::Waits);
        queue.push(share, Arc::clone(turn));
        self.note_first_key(&queue);
        self.n_waiting.fetch_add(1, SeqCst);
    }

    /// Notes a change of the queue, which is locked.
    fn note_first_key(&self, queue: &Queue) {
        let first = queue.order.first().map_or(NO_KEY, |(key, _)| *key);
        self.first_key.store(first, Relaxed);
    }

    /// Gives the free permits to the waiting guests that are first, and wakes these, but not `caller`.
    fn hand_out(&self, caller: Option<&Arc<Turn>>) {
        while let Some(turn) = self.grant_next() {
            if caller.is_some_and(|caller| Arc::ptr_eq(caller, &turn)) {
                continue;
            }
            let Some(waker) = turn.take_waker() else { continue };
            let since_driver = Duration::from_nanos(self.since_driver.load(Relaxed));
            if since_driver < HAND_OVER_AT_ONCE || background::is_here() {
                waker.wake();
            } else {
                self.wake_after_driver(&waker);
            }
        }
    }

    fn grant_next(&self) -> Option<Arc<Turn>> {
        let mut queue = self.queue.lock();
        if queue.order.is_empty() || !self.take() {
            return None;
        }
        let popped = queue.pop();
        self.note_first_key(&queue);
        let Some((virtual_time, turn)) = popped else {
            self.n_free.fetch_add(1, SeqCst);
            return None;
        };
        self.n_waiting.fetch_sub(1, SeqCst);
        self.runs(virtual_time);
        turn.set_state(TurnState::Granted);
        Some(turn)
    }

    /// Wakes a task when the worker has run its other tasks and polled its sockets and timers. Outside of a
    /// runtime: at once.
    fn wake_after_driver(&self, waker: &Waker) {
        self.since_driver.store(0, Relaxed);
        // The first poll passes the waker to tokio, which keeps it when the future is dropped.
        let _ = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(waker));
    }
}

// === impl Queue ===

impl Queue {
    fn push(&mut self, share: &Share, turn: Arc<Turn>) {
        share.starts_waiting();
        match self.plugins.entry(share.id()) {
            hash_map::Entry::Occupied(mut waiting) => waiting.get_mut().turns.push_back(turn),
            hash_map::Entry::Vacant(entry) => {
                let key = share.virtual_time();
                self.order.insert((key, share.id()));
                entry.insert(Waiting { key, share: share.clone(), turns: VecDeque::from([turn]) });
            }
        }
    }

    /// Removes the guest that waits longest, of the plugin with the least virtual time.
    fn pop(&mut self) -> Option<(u64, Arc<Turn>)> {
        while let Some((key, id)) = self.order.pop_first() {
            let Some(waiting) = self.plugins.get_mut(&id) else { continue };
            let virtual_time = waiting.share.virtual_time();
            let is_behind = self.order.first().is_some_and(|(next, _)| *next < virtual_time);
            if virtual_time > key && is_behind {
                // Guests of the plugin ran since it was queued.
                waiting.key = virtual_time;
                self.order.insert((virtual_time, id));
                continue;
            }
            let turn = waiting.turns.pop_front();
            if turn.is_some() {
                waiting.share.stops_waiting();
            }
            if waiting.turns.is_empty() {
                self.plugins.remove(&id);
            } else {
                waiting.key = virtual_time;
                self.order.insert((virtual_time, id));
            }
            if let Some(turn) = turn {
                return Some((virtual_time, turn));
            }
        }
        None
    }

    fn remove(&mut self, id: u64, turn: &Arc<Turn>) {
        let Some(waiting) = self.plugins.get_mut(&id) else { return };
        let n_before = waiting.turns.len();
        waiting.turns.retain(|other| !Arc::ptr_eq(other, turn));
        (waiting.turns.len()..n_before).for_each(|_| waiting.share.stops_waiting());
        if waiting.turns.is_empty() {
            self.order.remove(&(waiting.key, id));
            self.plugins.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
