//! The thread that advances wasmtime's epoch while a guest runs, and sleeps otherwise.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use wasmtime::EngineWeak;

use super::scheduler::Scheduler;

/// Idle ticks after which the thread ticks more rarely.
const TICKS_BEFORE_RARE: u32 = 2;

/// The time between rare ticks, in ticks. Calls that are short but frequent, a thousand a second, would
/// otherwise cost a tick each, which is a wake-up of the thread. The first time slice of a guest that begins
/// meanwhile is up to this long, unless another guest has to wait for it.
const RARE: u32 = 10;

/// Idle ticks before the thread sleeps, so that a burst of calls does not wake it for each call.
const TICKS_BEFORE_SLEEP: u32 = 7;

/// Advances the engine's epoch. The thread holds a weak reference, and ends with the engine.
pub(super) struct Ticker {
    shared: Arc<TickerState>,
    thread: Thread,
}

struct TickerState {
    scheduler: Arc<Scheduler>,
    sleeping: AtomicBool,
    /// The next tick is a rare one.
    is_rare: AtomicBool,
    closed: AtomicBool,
}

// === impl Ticker ===

impl Ticker {
    pub(super) fn start(
        engine: &wasmtime::Engine,
        scheduler: Arc<Scheduler>,
        tick: Duration,
    ) -> io::Result<Self> {
        let shared = Arc::new(TickerState {
            scheduler,
            sleeping: AtomicBool::new(false),
            is_rare: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let engine = engine.weak();
        let thread = thread::Builder::new().name("oarlock-epoch".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.tick(&engine, tick)
        })?;
        Ok(Self { shared, thread: thread.thread().clone() })
    }

    /// Ends the thread's sleep. The caller has a permit of the scheduler.
    pub(super) fn wake(&self) {
        // The thread sets `sleeping` before it asks whether a permit is in use; the caller took its permit
        // before it reads `sleeping`. So at least one of them sees the change of the other.
        if self.shared.sleeping.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    /// Ends the wait for a rare tick. The caller has queued a guest in the scheduler.
    pub(super) fn hurry(&self) {
        if self.shared.is_rare.load(Ordering::SeqCst) && self.shared.is_rare.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

// === impl TickerState ===

impl TickerState {
    fn tick(&self, engine: &EngineWeak, tick: Duration) {
        let mut idle = 0;
        while !self.closed.load(Ordering::SeqCst) {
            thread::park_timeout(if self.next_is_rare(idle) { tick * RARE } else { tick });
            self.is_rare.store(false, Ordering::SeqCst);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
            drop(engine);
            self.scheduler.tick();
            if self.scheduler.is_busy() {
                idle = 0;
            } else if idle < TICKS_BEFORE_SLEEP {
                idle += 1;
            } else {
                self.sleep();
                idle = 0;
            }
        }
    }

    /// Decides whether the next tick, after so many idle ones, is a rare one.
    fn next_is_rare(&self, idle: u32) -> bool {
        if idle < TICKS_BEFORE_RARE {
            return false;
        }
        // A guest is queued before `hurry` reads `is_rare`. So this thread sees the guest, or `hurry` wakes
        // it.
        self.is_rare.store(true, Ordering::SeqCst);
        let waits = self.scheduler.has_waiting();
        if waits {
            self.is_rare.store(false, Ordering::SeqCst);
        }
        !waits
    }

    fn sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
        while !self.scheduler.is_busy() && !self.closed.load(Ordering::SeqCst) {
            thread::park();
        }
        self.sleeping.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, time::Instant};

    use super::*;
    use crate::engine::Turn;

    #[test]
    fn promise_4_a_guest_that_waits_does_not_wait_for_a_rare_tick() {
        let scheduler = Scheduler::new(1);
        let state = TickerState {
            scheduler: Arc::clone(&scheduler),
            sleeping: AtomicBool::new(false),
            is_rare: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        };
        let ticker = Ticker { shared: Arc::new(state), thread: thread::current() };
        assert!(!ticker.shared.next_is_rare(TICKS_BEFORE_RARE - 1));
        assert!(ticker.shared.next_is_rare(TICKS_BEFORE_RARE));
        ticker.hurry();
        assert!(!ticker.shared.is_rare.load(Ordering::SeqCst), "it wakes the thread");
        let began = Instant::now();
        thread::park_timeout(Duration::from_secs(60));
        assert!(began.elapsed() < Duration::from_secs(60), "nothing wakes the thread");

        let share = scheduler.share(100);
        let runs_at_once = || scheduler.acquire(&share, &Arc::new(Turn::new()), Waker::noop());
        assert!(runs_at_once());
        assert!(ticker.shared.next_is_rare(TICKS_BEFORE_RARE), "no guest waits");
        // Brief guests run without a permit, up to a limit.
        while runs_at_once() {}
        assert!(!ticker.shared.next_is_rare(TICKS_BEFORE_RARE));
    }
}
