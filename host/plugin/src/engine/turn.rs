//! The turn of one instance: whether it waits for a permit to run, and when its call must end.

use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    task::Waker,
    time::{Duration, Instant},
};

use futures::task::AtomicWaker;

use super::{background::cpu_time, nanos, share::BRIEF};

/// The part of an instance that the scheduler and the guest's own time slices share.
#[derive(Debug)]
pub(crate) struct Turn {
    state: AtomicU8,
    waker: AtomicWaker,
    /// The guest has seen a tick in the poll in progress.
    has_ticked: AtomicBool,
    /// The guest's time slice ended, and it wants to go on.
    slice_ended: AtomicBool,
    /// Its poll is beyond the number of permits.
    is_beyond: AtomicBool,
    made: Instant,
    /// When its poll began, in nanoseconds since `made`.
    poll_began: AtomicU64,
    /// The CPU time of its thread then, in nanoseconds. 0 on a worker.
    cpu_began: AtomicU64,
    /// The time at which the call must end, in nanoseconds since `made`.
    deadline: AtomicU64,
}

/// The states of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TurnState {
    /// It neither waits nor has a permit that it did not use yet.
    Idle,
    /// It is in the queue.
    Waits,
    /// It has a permit for its next poll.
    Granted,
}

// === impl Turn ===

impl Turn {
    pub(crate) fn new() -> Self {
        Self::made_at(Instant::now())
    }

    pub(crate) fn made_at(made: Instant) -> Self {
        Self {
            state: AtomicU8::new(TurnState::Idle as u8),
            waker: AtomicWaker::new(),
            has_ticked: AtomicBool::new(false),
            slice_ended: AtomicBool::new(false),
            is_beyond: AtomicBool::new(false),
            made,
            poll_began: AtomicU64::new(0),
            cpu_began: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> TurnState {
        match self.state.load(Ordering::Acquire) {
            0 => TurnState::Idle,
            1 => TurnState::Waits,
            _ => TurnState::Granted,
        }
    }

    pub(super) fn set_state(&self, state: TurnState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Returns whether it has a permit, which its next poll uses.
    pub(crate) fn take_grant(&self) -> bool {
        let granted = self.state() == TurnState::Granted;
        if granted {
            self.set_state(TurnState::Idle);
        }
        granted
    }

    /// Sets the waker for the grant. Call it before [`Turn::take_grant`], or a grant may be missed.
    pub(crate) fn wakes(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Notes that its poll is beyond the number of permits.
    pub(super) fn begin_beyond(&self) {
        self.is_beyond.store(true, Ordering::Relaxed);
    }

    /// Returns whether its poll was beyond the number of permits.
    pub(super) fn end_beyond(&self) -> bool {
        self.is_beyond.load(Ordering::Relaxed) && self.is_beyond.swap(false, Ordering::Relaxed)
    }

    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.waker.take()
    }

    /// Notes that a poll begins.
    pub(crate) fn begin_poll(&self, now: Instant) {
        self.poll_began.store(nanos(now.saturating_duration_since(self.made)), Ordering::Relaxed);
        self.has_ticked.store(false, Ordering::Relaxed);
        self.cpu_began.store(cpu_time().map_or(0, nanos), Ordering::Relaxed);
    }

    /// Returns for how long the kernel has stopped the guest in the poll in progress. A worker does not ask.
    pub(crate) fn stopped(&self, now: Instant) -> Duration {
        let Some(cpu) = cpu_time() else { return Duration::ZERO };
        let ran = cpu.saturating_sub(Duration::from_nanos(self.cpu_began.load(Ordering::Relaxed)));
        let began = Duration::from_nanos(self.poll_began.load(Ordering::Relaxed));
        now.saturating_duration_since(self.made).saturating_sub(began).saturating_sub(ran)
    }

    /// Notes that the guest has seen a tick. Returns whether that ends its time slice.
    ///
    /// The ticks are those of all guests, so the first one in a poll does not: a brief call is not
    /// interrupted by chance, nor because the kernel has stopped its thread for several ticks, of which it
    /// sees one. A tick at the begin of a poll does not count at all: it may be one from before the poll.
    pub(crate) fn tick(&self, now: Instant) -> bool {
        let began = self.made + Duration::from_nanos(self.poll_began.load(Ordering::Relaxed));
        now.saturating_duration_since(began) >= BRIEF && self.has_ticked.swap(true, Ordering::Relaxed)
    }

    /// Notes that the guest's time slice ended.
    pub(crate) fn end_slice(&self) {
        self.slice_ended.store(true, Ordering::Relaxed);
    }

    /// Returns whether the last poll ended with its time slice, and not with a wait for the host.
    pub(crate) fn take_slice_ended(&self) -> bool {
        self.slice_ended.load(Ordering::Relaxed) && self.slice_ended.swap(false, Ordering::Relaxed)
    }

    /// Sets the deadline of a call.
    pub(crate) fn set_deadline(&self, began: Instant, limit: Duration) {
        let at = began.saturating_duration_since(self.made).saturating_add(limit);
        self.deadline.store(nanos(at), Ordering::Relaxed);
    }

    /// Moves the deadline: a guest does not pay for the time in which others run.
    pub(crate) fn extend_deadline(&self, by: Duration) {
        self.deadline.fetch_add(nanos(by), Ordering::Relaxed);
    }

    /// Returns the time until `grace` after the deadline.
    pub(crate) fn time_left(&self, grace: Duration, now: Instant) -> Duration {
        let deadline = Duration::from_nanos(self.deadline.load(Ordering::Relaxed));
        deadline.saturating_add(grace).saturating_sub(now.saturating_duration_since(self.made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_4_the_first_tick_of_a_poll_does_not_end_the_time_slice() {
        let made = Instant::now();
        let turn = Turn::made_at(made);
        let mut began = made + Duration::from_secs(5);
        for _ in 0..3 {
            turn.begin_poll(began);
            assert!(!turn.tick(began), "it may be from before the poll");
            assert!(!turn.tick(began + BRIEF - Duration::from_nanos(1)));
            assert!(!turn.tick(began + BRIEF), "the first one");
            assert!(turn.tick(began + BRIEF));
            began += BRIEF;
        }
    }
}
