//! The wasmtime engine, its ticker, its linkers and its compile slots: things that must agree, built together.

mod ticker;

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use wasmtime::component::{HasSelf, Linker};

use crate::{bindings, imports, state::State};

pub(crate) use ticker::Running;

/// How an engine is made.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Where compiled code is kept between runs; none compiles anew each time. The directory is made if missing, and must be
    /// writable by the host's own user alone: what lies in it is run.
    pub cache_dir: Option<PathBuf>,
    /// How many components may be compiled at the same time, each on a thread of its own.
    pub compile_slots: usize,
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
    compile_slots: Arc<Semaphore>,
    /// Only what the contract names.
    plain: Linker<State>,
    /// The same, and an empty WASI.
    with_wasi: Linker<State>,
}

// === impl EngineConfig ===

impl Default for EngineConfig {
    fn default() -> Self {
        Self { cache_dir: None, compile_slots: 2, time_slice: Duration::from_millis(1) }
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
        let EngineConfig { cache_dir, compile_slots, time_slice } = config;
        let mut wasmtime_config = wasmtime_config();
        if let Some(path) = cache_dir {
            wasmtime_config.cache(Some(open_cache(path)?));
        }
        let wasmtime = wasmtime::Engine::new(&wasmtime_config).map_err(wasmtime_refuses)?;
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
                compile_slots: Arc::new(Semaphore::new(compile_slots.max(1))),
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

    pub(crate) fn compile_slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.inner.compile_slots)
    }

    /// Keeps the ticker ticking until the guard is dropped.
    pub(crate) fn running(&self) -> Running {
        self.inner.ticker.running()
    }
}

fn wasmtime_config() -> wasmtime::Config {
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
        .max_wasm_stack(1 << 20)
        .async_stack_size(3 << 20)
        .cranelift_opt_level(wasmtime::OptLevel::Speed);
    config
}

fn open_cache(path: PathBuf) -> Result<wasmtime::Cache, Error> {
    let fails = |reason: String| Error::CacheDir { path: path.clone(), reason };
    // An absolute path is asked for below, and only what exists has one.
    create_private(&path).map_err(|e| fails(e.to_string()))?;
    let absolute = path.canonicalize().map_err(|e| fails(e.to_string()))?;
    check_private(&absolute).map_err(fails)?;
    let mut config = wasmtime::CacheConfig::new();
    config.with_directory(absolute);
    wasmtime::Cache::new(config).map_err(|e| fails(e.to_string()))
}

#[cfg(unix)]
fn create_private(path: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private(path: &std::path::Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)
}

#[cfg(unix)]
fn check_private(path: &std::path::Path) -> Result<(), String> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let metadata = std::fs::metadata(path).map_err(|e| e.to_string())?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("others may write to it (mode {mode:o}): run chmod 700 on it"));
    }
    // This process belongs to the user it runs as; where there is no /proc, the mode has to do.
    match std::fs::metadata("/proc/self") {
        Ok(process) if process.uid() != metadata.uid() => {
            Err(format!("it belongs to another user (uid {})", metadata.uid()))
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_private(_path: &std::path::Path) -> Result<(), String> {
    Ok(())
}

fn wasmtime_refuses(error: wasmtime::Error) -> Error {
    Error::Wasmtime(format!("{error:#}"))
}
