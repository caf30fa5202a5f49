//! Which component is compiled next: the small ones first, one of each plugin at a time, and those last whose plugin has
//! already cost time for nothing.
//!
//! There are few slots. Those that may take long (a large component, or one of a plugin in debt) leave one slot free, so that a small
//! component never waits for two interpreters. A plugin whose compilations fail, or are given up because the file changed again, is in debt:
//! it goes behind all others, and when that goes on it waits as long as they took before it may try again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use crate::component::Digest;

/// A component larger than this may take long.
const LARGE: usize = 4 << 20;

/// A plugin that has cost this much for nothing is in debt.
const DEBT: Duration = Duration::from_secs(1);

/// After this many compilations for nothing, one after another, a plugin in debt waits.
const PATIENCE: u32 = 3;

/// The longest that a plugin in debt waits.
const MOST_DEBT: Duration = Duration::from_secs(60);

/// After this long a debt is forgotten.
const FORGET: Duration = Duration::from_secs(600);

/// Beyond this many debtors, those that can be forgotten are.
const SWEEP_ABOVE: usize = 256;

/// A component that is compiled, or waits to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compilation {
    /// The plugin that it is for, if that was said.
    pub plugin: Option<Arc<str>>,
    /// Its size.
    pub bytes: usize,
    /// How far it is.
    pub state: CompilationState,
}

/// How far a compilation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompilationState {
    /// It waits for its turn.
    Waiting {
        /// How many are compiled, or will be, before it.
        before: usize,
    },
    /// It is being compiled.
    Running {
        /// For how long.
        so_far: Duration,
    },
}

/// The order in which components are compiled.
#[derive(Debug)]
pub(crate) struct Queue {
    slots: usize,
    state: Mutex<State>,
}

/// The right to compile. Ends when dropped; unless it [succeeded](Turn::succeeded), its time is the plugin's debt.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: Arc<Queue>,
    id: u64,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    running: BTreeMap<u64, Job>,
    waiting: BTreeMap<u64, (Job, oneshot::Sender<()>)>,
    debts: HashMap<Arc<str>, Debt>,
}

#[derive(Debug, Clone)]
struct Job {
    plugin: Option<Arc<str>>,
    bytes: usize,
    digest: Digest,
    in_debt: bool,
    since: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Debt {
    cost: Duration,
    /// How many compilations came to nothing since the last that succeeded.
    failures: u32,
    /// When the last of them ended.
    at: Instant,
}

// === impl Queue ===

impl Queue {
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self { slots: slots.max(1), state: Mutex::default() })
    }

    /// Waits for a turn. Dropping the future gives the place in the queue back.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        plugin: Option<Arc<str>>,
        bytes: usize,
        digest: Digest,
    ) -> Turn {
        let debt = plugin.as_ref().and_then(|plugin| self.state.lock().debt(plugin));
        let not_before = debt.and_then(Debt::not_before);
        let (granted, grant) = oneshot::channel();
        let turn = {
            let mut state = self.state.lock();
            state.next += 1;
            let id = state.next;
            let in_debt = debt.is_some();
            let job = Job { plugin, bytes, digest, in_debt, since: not_before.unwrap_or_else(Instant::now) };
            state.waiting.insert(id, (job, granted));
            // From here on dropping the future takes it out again.
            Turn { queue: Arc::clone(self), id }
        };
        if let Some(not_before) = not_before {
            tokio::time::sleep_until(not_before).await;
        }
        self.start();
        // The sender is dropped only when the turn is.
        let _ = grant.await;
        turn
    }

    /// What is being compiled, and what waits, in the order in which it will have its turn.
    pub(crate) fn compilations(&self) -> Vec<Compilation> {
        let state = self.state.lock();
        let running = state.running.values().map(|job| Compilation {
            plugin: job.plugin.clone(),
            bytes: job.bytes,
            state: CompilationState::Running { so_far: job.since.elapsed() },
        });
        let mut waiting: Vec<_> = state.waiting.iter().map(|(id, (job, _))| (job.rank(*id), job)).collect();
        waiting.sort_by_key(|(rank, _)| *rank);
        let n_running = state.running.len();
        let waiting = waiting.into_iter().enumerate().map(|(index, (_, job))| Compilation {
            plugin: job.plugin.clone(),
            bytes: job.bytes,
            state: CompilationState::Waiting { before: n_running + index },
        });
        running.chain(waiting).collect()
    }

    /// Gives free slots to those whose turn it is.
    fn start(&self) {
        let mut state = self.state.lock();
        while let Some(id) = state.next_one(self.slots) {
            let Some((job, granted)) = state.waiting.remove(&id) else { return };
            state.running.insert(id, Job { since: Instant::now(), ..job });
            // Whoever waited may be about to give up: then its turn ends with it.
            let _ = granted.send(());
        }
    }
}

// === impl State ===

impl State {
    fn next_one(&self, slots: usize) -> Option<u64> {
        if self.running.len() >= slots {
            return None;
        }
        let now = Instant::now();
        let n_long = self.running.values().filter(|job| job.takes_long()).count();
        let may_be_long = n_long < slots.saturating_sub(1).max(1);
        let may_run = |job: &Job| {
            job.since <= now
                && (may_be_long || !job.takes_long())
                && !self.running.values().any(|other| {
                    // The same component is compiled once, for all who want it.
                    other.digest == job.digest || (job.plugin.is_some() && other.plugin == job.plugin)
                })
        };
        let able = self.waiting.iter().filter(|(_, (job, _))| may_run(job));
        able.min_by_key(|(id, (job, _))| job.rank(**id)).map(|(id, _)| *id)
    }

    /// What a plugin owes, if that counts.
    fn debt(&self, plugin: &Arc<str>) -> Option<Debt> {
        self.debts.get(plugin).copied().filter(|debt| debt.cost >= DEBT && debt.at.elapsed() < FORGET)
    }

    fn ended(&mut self, job: &Job, succeeded: bool) {
        let Some(plugin) = &job.plugin else { return };
        if succeeded {
            self.debts.remove(plugin);
            return;
        }
        if self.debts.len() > SWEEP_ABOVE {
            self.debts.retain(|_, debt| debt.at.elapsed() < FORGET);
        }
        let nothing = Debt { cost: Duration::ZERO, failures: 0, at: Instant::now() };
        let before = self.debts.get(plugin).copied().filter(|debt| debt.at.elapsed() < FORGET);
        let Debt { cost, failures, at: _ } = before.unwrap_or(nothing);
        let cost = cost.saturating_add(job.since.elapsed()).min(MOST_DEBT);
        self.debts.insert(plugin.clone(), Debt { cost, failures: failures.saturating_add(1), ..nothing });
    }
}

// === impl Debt ===

impl Debt {
    /// Until when its plugin waits; none while a failure may be a mistake.
    fn not_before(self) -> Option<Instant> {
        let Self { cost, failures, at } = self;
        (failures >= PATIENCE).then(|| at + cost)
    }
}

// === impl Job ===

impl Job {
    fn takes_long(&self) -> bool {
        self.in_debt || self.bytes > LARGE
    }

    /// Who goes first.
    fn rank(&self, id: u64) -> (bool, usize, u64) {
        (self.in_debt, self.bytes, id)
    }
}

// === impl Turn ===

impl Turn {
    /// Ends the turn with nothing owed.
    pub(crate) fn succeeded(self) {
        self.end(true);
    }

    fn end(&self, succeeded: bool) {
        let mut state = self.queue.state.lock();
        state.waiting.remove(&self.id);
        if let Some(job) = state.running.remove(&self.id) {
            state.ended(&job, succeeded);
        }
        drop(state);
        self.queue.start();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // After `succeeded` there is nothing left to end.
        self.end(false);
    }
}

#[cfg(test)]
mod tests;
