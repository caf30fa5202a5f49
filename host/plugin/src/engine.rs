//! The wasmtime engine, its ticker, its linkers, its compiler and where code is kept: things that must agree, built together.

mod failures;
mod ticker;

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use wasmtime::component::{HasSelf, Linker};

use self::failures::Failures;
use crate::{
    bindings,
    code::CodeStore,
    compiler::{Compilation, Compiler, EngineTag, Queue},
    component::{Component, Digest, Loaded},
    imports,
    state::State,
};

pub(crate) use ticker::Running;

/// How an engine is made.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Where compiled code is kept between runs; none compiles anew each time. The directory is made if missing, and must be
    /// writable by the host's own user alone: what lies in it is run.
    pub cache_dir: Option<PathBuf>,
    /// How much compiled code is kept there; what was not used for the longest goes first.
    pub cache_bytes: u64,
    /// How many components may be compiled at the same time, each in a process of its own. Large ones leave one slot free.
    pub compile_slots: usize,
    /// Which program compiles, and what it may use.
    pub compiler: Compiler,
    /// How long a guest computes before other tasks get their turn.
    pub time_slice: Duration,
}

/// Compiles components and runs their instances. Cheap to clone.
///
/// Its ticker thread ends when the last clone, component and instance of it is gone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// An engine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache directory cannot be used.
    #[error("cannot use {} for compiled code: {reason}", path.display())]
    CacheDir {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No thread for the ticker.
    #[error("cannot start the ticker thread")]
    Ticker(#[source] std::io::Error),
    /// The machine or the configuration does not suit wasmtime.
    #[error("wasmtime refuses this machine or configuration: {0}")]
    Wasmtime(String),
}

struct Inner {
    wasmtime: wasmtime::Engine,
    ticker: ticker::Ticker,
    compiler: Compiler,
    queue: Arc<Queue>,
    code: CodeStore,
    failures: Failures,
    /// What is loaded, for those who have the same component.
    loaded: Mutex<HashMap<Digest, Loaded>>,
    /// Only what the contract names.
    plain: Linker<State>,
    /// The same, and an empty WASI.
    with_wasi: Linker<State>,
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
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Makes an engine and starts its ticker.
    ///
    /// # Errors
    ///
    /// When the cache directory cannot be used, or the machine does not suit.
    pub fn new(config: EngineConfig) -> Result<Self, Error> {
        let EngineConfig { cache_dir, cache_bytes, compile_slots, compiler, time_slice } = config;
        let wasmtime = wasmtime::Engine::new(&wasmtime_config()).map_err(wasmtime_refuses)?;
        let engine_tag = EngineTag::of(&wasmtime);
        let code = match cache_dir {
            Some(path) => CodeStore::open(&path, cache_bytes, engine_tag)
                .map_err(|reason| Error::CacheDir { path, reason })?,
            None => CodeStore::temporary(engine_tag)
                .map_err(|reason| Error::CacheDir { path: std::env::temp_dir(), reason })?,
        };
        let mut plain = Linker::new(&wasmtime);
        bindings::Plugin::add_to_linker::<State, HasSelf<State>>(&mut plain, |state| state)
            .map_err(wasmtime_refuses)?;
        let mut with_wasi = plain.clone();
        imports::wasi::add_to_linker(&mut with_wasi).map_err(wasmtime_refuses)?;
        let ticker = ticker::Ticker::start(&wasmtime, time_slice).map_err(Error::Ticker)?;
        Ok(Self {
            inner: Arc::new(Inner {
                wasmtime,
                ticker,
                compiler,
                queue: Queue::new(compile_slots),
                code,
                failures: Failures::default(),
                loaded: Mutex::default(),
                plain,
                with_wasi,
            }),
        })
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.wasmtime
    }

    pub(crate) fn linker(&self, wasi: bool) -> &Linker<State> {
        if wasi { &self.inner.with_wasi } else { &self.inner.plain }
    }

    /// Returns what is being compiled, and then what waits for its turn, in that order.
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

    /// Returns a component of these bytes if somebody has it loaded.
    pub(crate) fn loaded(&self, digest: &Digest) -> Option<Component> {
        self.inner.loaded.lock().get(digest).and_then(Loaded::component)
    }

    /// Notes that a component is loaded.
    pub(crate) fn remember(&self, component: &Component) {
        let mut loaded = self.inner.loaded.lock();
        loaded.retain(|_, it| it.component().is_some());
        loaded.insert(component.digest(), Loaded::of(component));
    }

    /// Keeps the ticker ticking until the guard is dropped.
    pub(crate) fn running(&self) -> Running {
        self.inner.ticker.running()
    }
}

/// What code is made with and run with: the host's engine and the compiler's must have it in common.
pub(crate) fn wasmtime_config() -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config
        .wasm_component_model(true)
        // The contract's pointers have 32 bits, and so have the limits on memories and tables.
        .wasm_memory64(false)
        // The contract has no async functions; without them a call costs a third.
        .concurrency_support(false)
        .epoch_interruption(true)
        // A slot is one thread: compilation must not take every core from the runtime's workers.
        .parallel_compilation(false)
        // Language tools have inlined already; from there on it only makes hostile components larger.
        .compiler_inlining(wasmtime::Inlining::No)
        .max_wasm_stack(1 << 20)
        .async_stack_size(3 << 20)
        .cranelift_opt_level(wasmtime::OptLevel::Speed);
    config
}

fn wasmtime_refuses(error: wasmtime::Error) -> Error {
    Error::Wasmtime(format!("{error:#}"))
}
