//! The order in which components are compiled: small ones first, one of each plugin at a time, and plugins in
//! debt last.
//!
//! Few components are compiled at the same time. Compilations that may take long (of a large component, or
//! for a plugin in debt) leave one slot free, so that a small component never waits for two interpreters. A
//! plugin is in debt if its compilations failed, or were cancelled since its file changed again. It then
//! comes after all other plugins. After several such compilations it waits as long as they took before its
//! next turn.
//!
//! A component also waits while the limits of the compilers that run leave no room for its own: in a Pod, all
//! processes share one limit of memory, and above it Linux kills the host too. Compilations that may take
//! long leave the memory of a small component free too, if there is enough for both.
//!
//! A component of a plugin that is not in debt is overdue after a minute. It then comes before all that
//! waited less, and none of them starts while it waits for memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use super::{Compiler, LARGE, Process};
use crate::component::Digest;

/// The wait after which a component is overdue.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The time of unsuccessful compilations from which a plugin is in debt.
const MIN_DEBT: Duration = Duration::from_secs(1);

/// The number of consecutive unsuccessful compilations after which a plugin waits.
const FAILURES_BEFORE_WAIT: u32 = 3;

/// The longest wait of a plugin in debt.
const MAX_DEBT: Duration = Duration::from_secs(60);

/// The age at which a debt expires.
const DEBT_EXPIRY: Duration = Duration::from_secs(600);

/// The number of debts above which expired ones are removed.
const PRUNE_ABOVE: usize = 256;

/// A component that is compiled, or waits for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compilation {
    /// The plugin, if the caller named one.
    pub plugin: Option<Arc<str>>,
    /// The size of the component.
    pub bytes: usize,
    /// The state.
    pub state: CompilationState,
}

/// The state of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompilationState {
    /// It waits for its turn.
    Waiting {
        /// The number of compilations before it, including the running ones.
        before: usize,
    },
    /// It is being compiled.
    Running {
        /// The time since its start.
        so_far: Duration,
    },
}

/// The order in which components are compiled.
#[derive(Debug)]
pub(crate) struct Queue {
    slots: usize,
    compiler: Compiler,
    state: Mutex<QueueState>,
}

/// The right to compile. Dropping it ends the turn; unless it [succeeded](Turn::succeeded), its time is added
/// to the plugin's debt.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: Arc<Queue>,
    id: u64,
}

#[derive(Debug, Default)]
struct QueueState {
    next: u64,
    running: BTreeMap<u64, Job>,
    waiting: BTreeMap<u64, (Job, oneshot::Sender<()>)>,
    debts: HashMap<Arc<str>, Debt>,
    /// Processes that can compile another component. There are some only while components wait.
    idle: Vec<Process>,
}

#[derive(Debug, Clone)]
struct Job {
    plugin: Option<Arc<str>>,
    bytes: usize,
    /// The limit of its compiler's address space.
    memory: u64,
    digest: Digest,
    in_debt: bool,
    since: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Debt {
    cost: Duration,
    /// The number of unsuccessful compilations since the last successful one.
    failures: u32,
    /// The end of the last of them.
    at: Instant,
}

// === impl Queue ===

impl Queue {
    pub(crate) fn new(slots: usize, compiler: Compiler) -> Arc<Self> {
        Arc::new(Self { slots: slots.max(1), compiler, state: Mutex::default() })
    }

    /// Waits for a turn. Dropping the future removes it from the queue.
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
            let since = not_before.unwrap_or_else(Instant::now);
            let memory = self.compiler.limits(bytes).memory;
            let job = Job { plugin, bytes, memory, digest, in_debt, since };
            state.waiting.insert(id, (job, granted));
            // From here on, dropping the future removes the job from the queue.
            Turn { queue: Arc::clone(self), id }
        };
        if let Some(not_before) = not_before {
            tokio::time::sleep_until(not_before).await;
        }
        self.start();
        // The sender is dropped only with the turn.
        let _ = grant.await;
        turn
    }

    /// Returns the running compilations, then the waiting ones in their order.
    pub(crate) fn compilations(&self) -> Vec<Compilation> {
        let state = self.state.lock();
        let running = state.running.values().map(|job| Compilation {
            plugin: job.plugin.clone(),
            bytes: job.bytes,
            state: CompilationState::Running { so_far: job.since.elapsed() },
        });
        let n_running = state.running.len();
        let waiting = state.in_order().into_iter().enumerate().map(|(index, (_, job))| Compilation {
            plugin: job.plugin.clone(),
            bytes: job.bytes,
            state: CompilationState::Waiting { before: n_running + index },
        });
        running.chain(waiting).collect()
    }

    /// Starts the next compilations in free slots.
    fn start(&self) {
        let mut state = self.state.lock();
        while let Some(id) = state.next_one(self.slots, &self.compiler) {
            let Some((job, granted)) = state.waiting.remove(&id) else { return };
            state.running.insert(id, Job { since: Instant::now(), ..job });
            // The receiver may have been dropped; then its turn is dropped too.
            let _ = granted.send(());
        }
    }
}

// === impl QueueState ===

impl QueueState {
    fn next_one(&self, slots: usize, compiler: &Compiler) -> Option<u64> {
        if self.running.len() >= slots {
            return None;
        }
        let now = Instant::now();
        let used =
            |jobs: &mut dyn Iterator<Item = &Job>| jobs.map(|job| job.memory).fold(0, u64::saturating_add);
        let n_long = self.long().count();
        let may_be_long = n_long < slots.saturating_sub(1).max(1);
        let left_to_long = compiler.memory_of_long().saturating_sub(used(&mut self.long()));
        let left = compiler.memory_of_all().saturating_sub(used(&mut self.running.values()));
        for (id, job) in self.in_order() {
            let may_run = job.since <= now
                && (!job.takes_long() || (may_be_long && job.memory <= left_to_long))
                && !self.running.values().any(|other| {
                    // The same component is compiled once, for all plugins that have it.
                    other.digest == job.digest || (job.plugin.is_some() && other.plugin == job.plugin)
                });
            match may_run {
                true if job.memory <= left => return Some(id),
                true if job.is_overdue(now) => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the waiting jobs: the one to start first is first.
    fn in_order(&self) -> Vec<(u64, &Job)> {
        let now = Instant::now();
        let mut waiting: Vec<_> = self.waiting.iter().map(|(id, (job, _))| (*id, job)).collect();
        // Of overdue jobs the oldest comes first, whatever its size.
        waiting.sort_by_key(|(id, job)| match job.is_overdue(now) {
            true => (job.in_debt, false, 0, *id),
            false => (job.in_debt, true, job.bytes, *id),
        });
        waiting
    }

    /// Returns the running jobs that may take long.
    fn long(&self) -> impl Iterator<Item = &Job> {
        self.running.values().filter(|job| job.takes_long())
    }

    /// Returns a plugin's debt, if it is in debt.
    fn debt(&self, plugin: &Arc<str>) -> Option<Debt> {
        self.debts
            .get(plugin)
            .copied()
            .filter(|debt| debt.cost >= MIN_DEBT && debt.at.elapsed() < DEBT_EXPIRY)
    }

    fn ended(&mut self, job: &Job, succeeded: bool) {
        let Some(plugin) = &job.plugin else { return };
        if succeeded {
            self.debts.remove(plugin);
            return;
        }
        if self.debts.len() > PRUNE_ABOVE {
            self.debts.retain(|_, debt| debt.at.elapsed() < DEBT_EXPIRY);
        }
        let nothing = Debt { cost: Duration::ZERO, failures: 0, at: Instant::now() };
        let before = self.debts.get(plugin).copied().filter(|debt| debt.at.elapsed() < DEBT_EXPIRY);
        let Debt { cost, failures, at: _ } = before.unwrap_or(nothing);
        let cost = cost.saturating_add(job.since.elapsed()).min(MAX_DEBT);
        self.debts.insert(plugin.clone(), Debt { cost, failures: failures.saturating_add(1), ..nothing });
    }
}

// === impl Debt ===

impl Debt {
    /// Returns the time until which the plugin waits. The first failures cause no wait.
    fn not_before(self) -> Option<Instant> {
        let Self { cost, failures, at } = self;
        (failures >= FAILURES_BEFORE_WAIT).then(|| at + cost)
    }
}

// === impl Job ===

impl Job {
    fn takes_long(&self) -> bool {
        self.in_debt || self.bytes > LARGE
    }

    fn is_overdue(&self, now: Instant) -> bool {
        !self.in_debt && now.saturating_duration_since(self.since) >= MAX_WAIT
    }
}

// === impl Turn ===

impl Turn {
    /// Returns a process that has compiled another component, if there is one.
    pub(crate) fn idle_process(&self) -> Option<Process> {
        self.queue.state.lock().idle.pop()
    }

    /// Ends the turn after a successful compilation. The next one gets the process.
    pub(crate) fn succeeded(self, process: Option<Process>) {
        self.queue.state.lock().idle.extend(process);
        self.end(true);
    }

    fn end(&self, succeeded: bool) {
        let mut state = self.queue.state.lock();
        let waited = state.waiting.remove(&self.id).is_some();
        match state.running.remove(&self.id) {
            Some(job) => state.ended(&job, succeeded),
            None if waited => {}
            // It has ended already: the idle processes are for the next turn.
            None => return,
        }
        let unneeded = if state.waiting.is_empty() { std::mem::take(&mut state.idle) } else { Vec::new() };
        drop(state);
        drop(unneeded);
        self.queue.start();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Does nothing after `succeeded`.
        self.end(false);
    }
}

#[cfg(test)]
mod tests;
