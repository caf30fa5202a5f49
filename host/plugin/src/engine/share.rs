//! A plugin's share of the CPU time that guests get.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    background::{Background, Run},
    nanos,
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

/// The average pause below which a plugin keeps a permit between two polls: see
/// [`Scheduler`](super::scheduler::Scheduler).
const BRIEF_PAUSE: Duration = BRIEF;

/// The most that one pause counts in the average, as for polls.
const LONGEST_PAUSE: Duration = BRIEF_PAUSE.saturating_mul(7);

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
    background: Arc<Background>,
    id: u64,
    weight: AtomicU32,
    /// The CPU time of its guests in nanoseconds, scaled to the default weight. Has room for five years of a
    /// plugin with the least weight.
    virtual_time: AtomicU64,
    /// The average length of its newest polls, in nanoseconds.
    poll: AtomicU64,
    /// How many of its guests wait for a permit.
    n_waiting: AtomicU32,
    /// When one of its guests returned a permit, in nanoseconds of the scheduler's clock. 0 when another one
    /// has asked for a permit since then, or if no guest of others waited.
    paused_at: AtomicU64,
    /// The average length of its newest pauses, in nanoseconds: from then to the next request.
    pause: AtomicU64,
}

// === impl Share ===

impl Share {
    pub(super) fn new(background: Arc<Background>, id: u64, weight: u32) -> Self {
        let weight = AtomicU32::new(clamp(weight));
        Self {
            shared: Arc::new(Shared {
                background,
                id,
                weight,
                virtual_time: AtomicU64::new(0),
                poll: AtomicU64::new(nanos(BRIEF)),
                n_waiting: AtomicU32::new(0),
                paused_at: AtomicU64::new(0),
                pause: AtomicU64::new(nanos(BRIEF_PAUSE)),
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
        &self.shared.background
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
        self.shared.virtual_time.fetch_add(self.scaled(ran.saturating_add(HOST_PART)), Relaxed);
        // On a worker it contains the time in which the kernel ran something else.
        count(&self.shared.poll, ran.min(LONGEST_POLL));
    }

    /// Adds the time for which the plugin kept a permit.
    pub(super) fn charge_kept(&self, kept: Duration) {
        self.shared.virtual_time.fetch_add(self.scaled(kept), Relaxed);
    }

    /// Notes that one of its guests returns its permit while others wait.
    pub(super) fn pauses(&self, now: u64) {
        self.shared.paused_at.store(now, Relaxed);
    }

    /// Returns whether one of its guests has returned its permit, and none has asked for one since then.
    pub(super) fn is_paused(&self) -> bool {
        self.shared.paused_at.load(Relaxed) > 0
    }

    /// Notes that one of its guests asks for a permit.
    pub(super) fn resumes(&self, now: u64) {
        let since = self.shared.paused_at.swap(0, Relaxed);
        if since > 0 {
            count(&self.shared.pause, Duration::from_nanos(now.saturating_sub(since)).min(LONGEST_PAUSE));
        }
    }

    /// Notes that none of its guests has asked for a permit for long.
    pub(super) fn stays_away(&self) {
        self.shared.paused_at.store(0, Relaxed);
        count(&self.shared.pause, LONGEST_PAUSE);
    }

    /// Returns the virtual time that it has after its next pause if it keeps a permit until then. `None` if
    /// it must not: it usually pauses for longer, its polls are brief and need no permit, or another of its
    /// guests waits.
    pub(super) fn virtual_time_after_pause(&self) -> Option<u64> {
        let pause = self.shared.pause.load(Relaxed);
        let may_keep =
            pause < nanos(BRIEF_PAUSE) && !self.is_brief() && self.shared.n_waiting.load(Relaxed) == 0;
        may_keep.then(|| self.virtual_time().saturating_add(self.scaled(Duration::from_nanos(pause))))
    }

    fn scaled(&self, time: Duration) -> u64 {
        nanos(time).saturating_mul(DEFAULT_WEIGHT.into()) / u64::from(self.weight())
    }

    /// Returns whether its guests usually run for a short time until they wait or end.
    pub(super) fn is_brief(&self) -> bool {
        self.shared.poll.load(Relaxed) < nanos(BRIEF)
    }
}

/// Adds a length to an average of the newest ones.
fn count(average: &AtomicU64, length: Duration) {
    // Two at the same time may overwrite each other: one of many is lost.
    let before = average.load(Relaxed);
    average.store(before - before / 8 + nanos(length) / 8, Relaxed);
}

fn clamp(weight: u32) -> u32 {
    weight.clamp(1, MAX_WEIGHT)
}
