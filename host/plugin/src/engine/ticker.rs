//! The thread that advances wasmtime's epoch while a call is in progress, and sleeps otherwise.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use wasmtime::EngineWeak;

/// Idle ticks before the thread sleeps, so that a burst of calls does not wake it for each call.
const TICKS_BEFORE_SLEEP: u32 = 50;

/// Advances the engine's epoch. The thread holds a weak reference, and ends with the engine.
pub(super) struct Ticker {
    shared: Arc<TickerState>,
    thread: Thread,
}

/// A call in progress. The epoch advances while one exists.
pub(crate) struct Running {
    shared: Arc<TickerState>,
}

#[derive(Default)]
struct TickerState {
    n_running: AtomicUsize,
    sleeping: AtomicBool,
    closed: AtomicBool,
}

// === impl Ticker ===

impl Ticker {
    pub(super) fn start(engine: &wasmtime::Engine, tick: Duration) -> io::Result<Self> {
        let shared = Arc::new(TickerState::default());
        let engine = engine.weak();
        let thread = thread::Builder::new().name("oarlock-epoch".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.tick(&engine, tick)
        })?;
        Ok(Self { shared, thread: thread.thread().clone() })
    }

    pub(super) fn running(&self) -> Running {
        // The thread sets `sleeping` before it reads the count; this function increments the count before it
        // reads `sleeping`. So at least one of them sees the change of the other.
        self.shared.n_running.fetch_add(1, Ordering::SeqCst);
        if self.shared.sleeping.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.n_running.fetch_sub(1, Ordering::SeqCst);
    }
}

// === impl TickerState ===

impl TickerState {
    fn tick(&self, engine: &EngineWeak, tick: Duration) {
        let mut idle = 0;
        while !self.closed.load(Ordering::SeqCst) {
            thread::park_timeout(tick);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
            drop(engine);
            if self.n_running.load(Ordering::SeqCst) > 0 {
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
        while self.n_running.load(Ordering::SeqCst) == 0 && !self.closed.load(Ordering::SeqCst) {
            thread::park();
        }
        self.sleeping.store(false, Ordering::SeqCst);
    }
}
