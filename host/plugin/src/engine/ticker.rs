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
/// meanwhile is up to this long.
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
            let is_rare = idle >= TICKS_BEFORE_RARE;
            thread::park_timeout(if is_rare { tick * RARE } else { tick });
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

    fn sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
        while !self.scheduler.is_busy() && !self.closed.load(Ordering::SeqCst) {
            thread::park();
        }
        self.sleeping.store(false, Ordering::SeqCst);
    }
}
