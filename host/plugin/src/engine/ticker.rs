//! The clock of the epochs: an OS thread that ticks while a guest computes, and sleeps while none does.

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

/// Idle ticks before the thread lies down: a burst of calls should not wake it for each.
const TICKS_BEFORE_REST: u32 = 50;

/// Advances the engine's epoch. It holds the engine weakly: the thread ends with it.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

/// A call in progress; while one exists, the epoch advances.
pub(crate) struct Running {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    n_running: AtomicUsize,
    resting: AtomicBool,
    closed: AtomicBool,
}

// === impl Ticker ===

impl Ticker {
    pub(super) fn start(engine: &wasmtime::Engine, tick: Duration) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let engine = engine.weak();
        let thread = thread::Builder::new().name("oarlock-epoch".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.tick(&engine, tick)
        })?;
        Ok(Self { shared, thread: thread.thread().clone() })
    }

    pub(super) fn running(&self) -> Running {
        // The thread announces its rest before it looks at the count, and here the count comes first: one of the two sees the other.
        self.shared.n_running.fetch_add(1, Ordering::SeqCst);
        if self.shared.resting.load(Ordering::SeqCst) {
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

// === impl Shared ===

impl Shared {
    fn tick(&self, engine: &EngineWeak, tick: Duration) {
        let mut idle = 0;
        while !self.closed.load(Ordering::SeqCst) {
            thread::park_timeout(tick);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
            drop(engine);
            if self.n_running.load(Ordering::SeqCst) > 0 {
                idle = 0;
            } else if idle < TICKS_BEFORE_REST {
                idle += 1;
            } else {
                self.rest();
                idle = 0;
            }
        }
    }

    fn rest(&self) {
        self.resting.store(true, Ordering::SeqCst);
        while self.n_running.load(Ordering::SeqCst) == 0 && !self.closed.load(Ordering::SeqCst) {
            thread::park();
        }
        self.resting.store(false, Ordering::SeqCst);
    }
}
