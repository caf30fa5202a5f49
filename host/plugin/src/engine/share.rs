//! A plugin's share of the CPU time that guests get.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    background::{Background, Run},
    nanos,
    scheduler::{KeptPermit, Scheduler},
};

/// The weight of a plugin whose file has none.
pub const DEFAULT_WEIGHT: u32 = 100;

/// The maximum weight of a plugin.
pub const MAX_WEIGHT: u32 = 1_000;

/// What the host spends on a poll, for the call around it. A plugin with many short calls uses more of the
/// workers than its guests do.
const HOST_PART: Duration = Duration::from_micros(4);

/// The average length of the polls of a plugin below which its guests are brief.
pub(super) const BRIEF: Duration = Duration::from_micros(250);

/// The most that one poll counts in the average: a single one moves no plugin to the background whose polls
/// take less than 35 µs.
const LONGEST_POLL: Duration = BRIEF.saturating_mul(7);

/// A plugin's share of the CPU time that guests get, for all its generations and instances. Cheap to clone;
/// clones share one share.
///
/// While more guests want to run than may run at once, each plugin gets CPU time in proportion to its weight.
#[derive(Debug, Clone)]
pub struct Share {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    scheduler: Arc<Scheduler>,
    id: u64,
    weight: AtomicU32,
    /// The CPU time of its guests in nanoseconds, scaled to the default weight. Has room for five years of a
    /// plugin with the least weight.
    virtual_time: AtomicU64,
    /// The average length of its newest polls, in nanoseconds.
    poll: AtomicU64,
    /// How many of its guests wait for a permit.
    n_waiting: AtomicU32,
    /// Whether a permit is kept between its calls.
    keeps_permits: AtomicBool,
    kept: Arc<KeptPermit>,
}

// === impl Share ===

impl Share {
    pub(super) fn new(scheduler: Arc<Scheduler>, id: u64, weight: u32) -> Self {
        let weight = AtomicU32::new(clamp(weight));
        Self {
            shared: Arc::new(Shared {
                scheduler,
                id,
                weight,
                virtual_time: AtomicU64::new(0),
                poll: AtomicU64::new(nanos(BRIEF)),
                n_waiting: AtomicU32::new(0),
                keeps_permits: AtomicBool::new(false),
                kept: Arc::default(),
            }),
        }
    }

    /// Returns the weight.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.shared.weight.load(Relaxed)
    }

    /// Changes the weight: 1 to [`MAX_WEIGHT`]; a value outside becomes the nearest of them.
    pub fn set_weight(&self, weight: u32) {
        self.shared.weight.store(clamp(weight), Relaxed);
    }

    /// Returns whether its guests belong in the background, and there is one: they compute for long at a
    /// time, or have used more than others and wait for their turn. Call it within a runtime of tokio.
    #[must_use]
    pub fn belongs_in_background(&self) -> bool {
        (self.shared.poll.load(Relaxed) > nanos(BRIEF) || self.shared.n_waiting.load(Relaxed) > 0)
            && self.background().is_available()
    }

    /// From now on the plugin's next call gets the permit of one that ended, while the plugin has used less
    /// than the others. Otherwise these run between any two of its calls, whatever its weight.
    ///
    /// Until that call no guest has the permit. If none follows at once, the caller says so with
    /// [`pass_permit_on`](Self::pass_permit_on); if it does not, the permit is free at the second tick.
    pub fn keep_permits(&self) {
        self.shared.keeps_permits.store(true, Relaxed);
    }

    /// Gives back the permit that is kept: the next call does not follow at once.
    pub fn pass_permit_on(&self) {
        if self.shared.kept.is_there() {
            self.shared.scheduler.give_back_kept(self);
        }
    }

    pub(super) fn keeps_permits(&self) -> bool {
        self.shared.keeps_permits.load(Relaxed)
    }

    pub(super) fn kept(&self) -> &Arc<KeptPermit> {
        &self.shared.kept
    }

    /// Notes that a guest waits for a permit.
    pub(super) fn starts_waiting(&self) {
        self.shared.n_waiting.fetch_add(1, Relaxed);
    }

    /// Notes that a guest waits no more.
    pub(super) fn stops_waiting(&self) {
        self.shared.n_waiting.fetch_sub(1, Relaxed);
    }

    /// Runs work of a guest in the caller's task, until the guest [belongs in the
    /// background](Self::belongs_in_background). Call it within a runtime of tokio.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Run<T> {
        let mut run = Run::new(self, Box::pin(work));
        run.move_if_due();
        run
    }

    /// Runs work of a guest in the background, if there is one. Call it within a runtime of tokio.
    pub fn run_in_background<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Run<T> {
        let mut run = Run::new(self, Box::pin(work));
        run.move_away();
        run
    }

    pub(super) fn background(&self) -> &Background {
        self.shared.scheduler.background()
    }

    pub(super) fn id(&self) -> u64 {
        self.shared.id
    }

    pub(super) fn virtual_time(&self) -> u64 {
        self.shared.virtual_time.load(Relaxed)
    }

    /// Takes away the credit of a plugin that was idle.
    pub(super) fn begin_at(&self, virtual_time: u64) {
        if self.virtual_time() < virtual_time {
            self.shared.virtual_time.fetch_max(virtual_time, Relaxed);
        }
    }

    /// Adds CPU time of a guest, for one poll.
    pub(super) fn charge(&self, ran: Duration) {
        let used = nanos(ran.saturating_add(HOST_PART));
        // On a worker it contains the time in which the kernel ran something else.
        let ran = nanos(ran.min(LONGEST_POLL));
        let scaled = used.saturating_mul(DEFAULT_WEIGHT.into()) / u64::from(self.weight());
        self.shared.virtual_time.fetch_add(scaled, Relaxed);
        // Polls at the same time may overwrite each other: one of many is lost.
        let average = self.shared.poll.load(Relaxed);
        self.shared.poll.store(average - average / 8 + ran / 8, Relaxed);
    }

    /// Returns whether its guests usually run for a short time until they wait or end.
    pub(super) fn is_brief(&self) -> bool {
        self.shared.poll.load(Relaxed) < nanos(BRIEF)
    }
}

fn clamp(weight: u32) -> u32 {
    weight.clamp(1, MAX_WEIGHT)
}
