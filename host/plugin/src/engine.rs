//! The wasmtime engine with its ticker, scheduler, linkers, compiler and code store. They must agree, so
//! they are built together.

mod background;
mod failures;
mod scheduler;
mod share;
mod ticker;
mod turn;

use std::{
    collections::HashMap,
    num::NonZero,
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use wasmtime::component::{HasSelf, Linker};

use self::{failures::Failures, scheduler::Scheduler};
use crate::{
    bindings,
    code::CodeStore,
    compiler::{Compilation, Compiler, EngineTag, Queue},
    component::{Component, Digest, Loaded},
    imports, intercept,
    state::StoreState,
};

pub use self::background::Run;
pub(crate) use self::background::{Stopwatch, take_ready_time};
pub use self::share::{DEFAULT_WEIGHT, MAX_WEIGHT, Share};
pub(crate) use self::turn::{Turn, TurnState};

/// Configures an engine.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The folder for compiled code. `None` compiles each component again in each process. The folder is
    /// created if missing, and only the host's user may write to it: the host runs the code in it.
    pub cache_dir: Option<PathBuf>,
    /// The maximum size of the code in that folder, in bytes. Code that was not used for the longest time is
    /// removed first.
    pub cache_bytes: u64,
    /// The number of components that may be compiled at the same time, each in a process of its own. Large
    /// components leave one slot free. Fewer are compiled while [`Compiler::total_memory`] allows no more.
    pub compile_slots: usize,
    /// The program that compiles, and the resources that it may use.
    pub compiler: Compiler,
    /// The time between two ticks. A guest computes for one to two of them before others run; the first tick
    /// of a guest that begins while no other runs or waits may take ten times as long.
    pub time_slice: Duration,
    /// The number of guests that may run at the same time: the number of the runtime's workers.
    pub concurrent_guests: usize,
}

/// Compiles components and runs their instances. Cheap to clone.
///
/// Its ticker thread ends when its last clone, component and instance are dropped.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// Why an engine cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache directory cannot be used.
    #[error("cannot use {} for compiled code: {reason}", path.display())]
    CacheDir {
        /// The directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The ticker thread cannot be started.
    #[error("cannot start the ticker thread")]
    Ticker(#[source] std::io::Error),
    /// wasmtime does not support the machine or the configuration.
    #[error("wasmtime does not support this machine or configuration: {0}")]
    Wasmtime(String),
}

struct Inner {
    wasmtime: wasmtime::Engine,
    scheduler: Arc<Scheduler>,
    ticker: ticker::Ticker,
    compiler: Compiler,
    queue: Arc<Queue>,
    code: CodeStore,
    failures: Failures,
    /// The loaded components, for plugins with the same component.
    loaded: Mutex<HashMap<Digest, Loaded>>,
    /// Links the imports of the contract.
    plain: Linker<StoreState>,
    /// Links the imports of the contract and an empty WASI.
    with_wasi: Linker<StoreState>,
    /// The same two with an interceptor, from the first record or replay on.
    intercepted: [OnceLock<Linker<StoreState>>; 2],
}

// === impl EngineConfig ===

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            cache_dir: None,
            cache_bytes: 4 << 30,
            compile_slots: 3,
            compiler: Compiler::default(),
            time_slice: Duration::from_millis(1),
            concurrent_guests: thread::available_parallelism().map_or(1, NonZero::get),
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Creates an engine and starts its ticker.
    ///
    /// # Errors
    ///
    /// When the folder for compiled code cannot be used, or wasmtime does not support the machine.
    pub fn new(config: EngineConfig) -> Result<Self, Error> {
        let EngineConfig { cache_dir, cache_bytes, compile_slots, compiler, time_slice, concurrent_guests } =
            config;
        let wasmtime = wasmtime::Engine::new(&wasmtime_config()).map_err(wasmtime_refuses)?;
        let engine_tag = EngineTag::of(&wasmtime);
        let code = match cache_dir {
            Some(path) => CodeStore::open(&path, cache_bytes, engine_tag)
                .map_err(|reason| Error::CacheDir { path, reason })?,
            None => CodeStore::temporary(engine_tag)
                .map_err(|reason| Error::CacheDir { path: std::env::temp_dir(), reason })?,
        };
        let mut plain = Linker::new(&wasmtime);
        bindings::Plugin::add_to_linker::<StoreState, HasSelf<StoreState>>(&mut plain, |state| state)
            .map_err(wasmtime_refuses)?;
        let mut with_wasi = plain.clone();
        imports::wasi::add_to_linker(&mut with_wasi).map_err(wasmtime_refuses)?;
        let scheduler = Scheduler::new(concurrent_guests);
        let ticker =
            ticker::Ticker::start(&wasmtime, Arc::clone(&scheduler), time_slice).map_err(Error::Ticker)?;
        Ok(Self {
            inner: Arc::new(Inner {
                wasmtime,
                scheduler,
                ticker,
                queue: Queue::new(compile_slots, compiler.clone()),
                compiler,
                code,
                failures: Failures::default(),
                loaded: Mutex::default(),
                plain,
                with_wasi,
                intercepted: Default::default(),
            }),
        })
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.wasmtime
    }

    pub(crate) fn linker(&self, wasi: bool) -> &Linker<StoreState> {
        if wasi { &self.inner.with_wasi } else { &self.inner.plain }
    }

    /// Returns the linker for an instance with an interceptor.
    pub(crate) fn intercepted(&self, wasi: bool) -> wasmtime::Result<&Linker<StoreState>> {
        let made = &self.inner.intercepted[usize::from(wasi)];
        if let Some(linker) = made.get() {
            return Ok(linker);
        }
        let mut linker = Linker::new(&self.inner.wasmtime);
        intercept::add_to_linker(&mut linker, wasi)?;
        Ok(made.get_or_init(|| linker))
    }

    /// Creates a plugin's share of the CPU time that guests get. The weight is between 1 and [`MAX_WEIGHT`].
    #[must_use]
    pub fn share(&self, weight: u32) -> Share {
        self.inner.scheduler.share(weight)
    }

    /// Returns the running compilations, then the waiting ones in the order of the queue.
    #[must_use]
    pub fn compilations(&self) -> Vec<Compilation> {
        self.inner.queue.compilations()
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.inner.queue
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.inner.compiler
    }

    pub(crate) fn code(&self) -> &CodeStore {
        &self.inner.code
    }

    pub(crate) fn failures(&self) -> &Failures {
        &self.inner.failures
    }

    /// Returns the component with this digest if it is loaded.
    pub(crate) fn loaded(&self, digest: &Digest) -> Option<Component> {
        self.inner.loaded.lock().get(digest).and_then(Loaded::component)
    }

    /// Returns the digests of all loaded components.
    pub(crate) fn loaded_digests(&self) -> Vec<Digest> {
        let loaded = self.inner.loaded.lock();
        loaded.iter().filter(|(_, it)| it.component().is_some()).map(|(digest, _)| *digest).collect()
    }

    /// Remembers that a component is loaded.
    pub(crate) fn remember(&self, component: &Component) {
        let mut loaded = self.inner.loaded.lock();
        loaded.retain(|_, it| it.component().is_some());
        loaded.insert(component.digest(), Loaded::of(component));
    }

    /// Decides which guests run.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.inner.scheduler
    }

    /// Makes the epoch advance while a guest runs. Call it after the guest got its permit.
    pub(crate) fn wake_ticker(&self) {
        self.inner.ticker.wake();
    }

    /// Has the next tick come soon. The caller has queued a guest.
    pub(crate) fn hurry_ticker(&self) {
        self.inner.ticker.hurry();
    }
}

/// Returns the configuration that the engine of the host and the engine of the compiler must share.
pub(crate) fn wasmtime_config() -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config
        .wasm_component_model(true)
        // The contract's pointers have 32 bits, and so have the limits on memories and tables.
        .wasm_memory64(false)
        // The contract has no async functions. Calls are three times as fast without support for them.
        .concurrency_support(false)
        .epoch_interruption(true)
        // A slot uses one thread, so that compilations leave cores to the runtime's workers.
        .parallel_compilation(false)
        // Language tools have inlined already. Further inlining only makes hostile components larger.
        .compiler_inlining(wasmtime::Inlining::No)
        .max_wasm_stack(1 << 20)
        .async_stack_size(3 << 20)
        .cranelift_opt_level(wasmtime::OptLevel::Speed);
    config
}

fn wasmtime_refuses(error: wasmtime::Error) -> Error {
    Error::Wasmtime(format!("{error:#}"))
}

/// Returns a time in nanoseconds, in the 64 bits of an atomic or of the contract.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
