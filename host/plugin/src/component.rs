//! A compiled component that was checked against the contract, ready to be instantiated.

mod check;

use std::{fmt, sync::Arc, time::Duration};

use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use crate::{
    bindings::exports::oarlock::plugin::{handler, metadata, reconciler},
    engine::Engine,
    inspect::{self, NoComponent},
    state::State,
};

/// A component larger than this is refused before it is looked at.
pub const MAX_COMPONENT_BYTES: usize = 256 << 20;

/// A component that fits the contract. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

/// The SHA-256 of a component's bytes. Displays as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Why bytes cannot be used as a plugin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No bytes at all.
    #[error("the file is empty: is the build that writes it still running?")]
    Empty,
    /// More bytes than anyone needs.
    #[error("the component has {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// Something other than WebAssembly.
    #[error("not WebAssembly: the file does not begin with \\0asm (it begins with {begins})")]
    NotWasm {
        /// Its first bytes, readable.
        begins: String,
    },
    /// A core module, which lacks the component around it.
    #[error(
        "a core WebAssembly module, not a component: build for the component model (link with wasm-component-ld, \
         or run `wasm-tools component new` on it)"
    )]
    CoreModule,
    /// The end is missing.
    #[error(
        "the component is cut off: a section at byte {offset} of {bytes} runs past the end; was it copied whole?"
    )]
    Truncated {
        /// Where the unfinished section begins.
        offset: usize,
        /// How many bytes there are.
        bytes: usize,
    },
    /// It is made for another version of the contract.
    #[error(
        "made for {found}, this host has {wanted}: build the plugin again with the wit/ folder of this version \
         (wit/CHANGELOG.md says what changed)"
    )]
    WrongVersion {
        /// The package and version that the component names.
        found: String,
        /// The host's.
        wanted: &'static str,
    },
    /// It does not export what a plugin must.
    #[error(
        "not an Oarlock plugin: it lacks {missing}; it exports {exports}. \
         A plugin exports `metadata` and `handler`, `reconciler` or both, of {wanted}"
    )]
    WrongWorld {
        /// The interfaces that are missing.
        missing: String,
        /// What it exports.
        exports: String,
        /// The host's package.
        wanted: &'static str,
    },
    /// It wants something from the host that there is not.
    #[error("it imports {imports}, which this host does not provide: {hint}")]
    UnknownImports {
        /// The names, separated by commas.
        imports: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The names are right, the functions or types behind them are not.
    #[error("it does not fit {wanted}: {reason}; was it built with another state of the wit/ folder?")]
    Mismatch {
        /// Which function or type, in wasmtime's words.
        reason: String,
        /// The host's package.
        wanted: &'static str,
    },
    /// It is not valid, or uses a feature that the host has not.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// The thread that compiles it could not be started, or ended.
    #[error("the compiling thread failed: {0}")]
    Thread(String),
}

struct Inner {
    engine: Engine,
    digest: Digest,
    bytes: usize,
    compile_time: Duration,
    imports: Vec<String>,
    imports_wasi: bool,
    exports: Exports,
}

/// The component with its imports linked, and where its exports lie.
pub(crate) struct Exports {
    pub(crate) pre: InstancePre<State>,
    pub(crate) metadata: metadata::GuestIndices,
    pub(crate) handler: Option<handler::GuestIndices>,
    pub(crate) reconciler: Option<reconciler::GuestIndices>,
}

/// What can be called in one instance.
pub(crate) struct Guests {
    pub(crate) metadata: metadata::Guest,
    pub(crate) handler: Option<handler::Guest>,
    pub(crate) reconciler: Option<reconciler::Guest>,
}

// === impl Component ===

impl Component {
    /// Compiles a component and checks it against the contract.
    ///
    /// Waits for one of the engine's compile slots, then for a thread of its own: from microseconds (in the cache) to seconds, without
    /// holding up the runtime. A compilation that has begun cannot be stopped: dropping the future leaves it its slot
    /// until it ends.
    ///
    /// # Errors
    ///
    /// Says what the bytes are instead of a plugin, and what to do about it.
    pub async fn compile(engine: &Engine, bytes: impl Into<Arc<[u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let slot = engine.compile_slots().acquire_owned().await.map_err(|e| Error::Thread(e.to_string()))?;
        let (done, result) = oneshot::channel();
        let engine = engine.clone();
        std::thread::Builder::new()
            .name("oarlock-compile".to_owned())
            .spawn(move || {
                let component = Self::compile_here(engine, &bytes);
                drop(slot);
                // The receiver is gone when the caller lost interest.
                let _ = done.send(component);
            })
            .map_err(|e| Error::Thread(e.to_string()))?;
        result.await.map_err(|e| Error::Thread(e.to_string()))?
    }

    /// Returns the SHA-256 of the bytes it was made of.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// Returns how many bytes it was made of.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.bytes
    }

    /// Returns how long the compilation took, or the look into the cache.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.inner.compile_time
    }

    /// Tells whether it can be called with notifications.
    #[must_use]
    pub fn exports_handler(&self) -> bool {
        self.inner.exports.handler.is_some()
    }

    /// Tells whether it can be called with keys.
    #[must_use]
    pub fn exports_reconciler(&self) -> bool {
        self.inner.exports.reconciler.is_some()
    }

    /// Tells whether its language runtime gets an empty WASI.
    #[must_use]
    pub fn imports_wasi(&self) -> bool {
        self.inner.imports_wasi
    }

    /// Returns the names that it imports, as they are written in it, such as `oarlock:plugin/events@0.1.0`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.inner.imports
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn exports(&self) -> &Exports {
        &self.inner.exports
    }

    fn compile_here(engine: Engine, bytes: &[u8]) -> Result<Self, Error> {
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if bytes.len() > MAX_COMPONENT_BYTES {
            return Err(Error::TooLarge { bytes: bytes.len(), limit: MAX_COMPONENT_BYTES });
        }
        let surface = inspect::inspect(bytes).map_err(|no_component| no_component.explain(bytes))?;
        let claims = check::check(&surface)?;
        let start = std::time::Instant::now();
        let compiled = wasmtime::component::Component::from_binary(engine.wasmtime(), bytes)
            .map_err(|e| Error::Compile(format!("{e:#}")))?;
        let compile_time = start.elapsed();
        let pre = engine.linker(claims.wasi).instantiate_pre(&compiled).map_err(check::mismatch)?;
        let exports = Exports {
            metadata: metadata::GuestIndices::new(&pre).map_err(check::mismatch)?,
            handler: claims
                .handler
                .then(|| handler::GuestIndices::new(&pre).map_err(check::mismatch))
                .transpose()?,
            reconciler: claims
                .reconciler
                .then(|| reconciler::GuestIndices::new(&pre).map_err(check::mismatch))
                .transpose()?,
            pre,
        };
        let digest = Digest(Sha256::digest(bytes).into());
        let imports_wasi = claims.wasi;
        let bytes = bytes.len();
        Ok(Self {
            inner: Arc::new(Inner {
                engine,
                digest,
                bytes,
                compile_time,
                imports: surface.imports,
                imports_wasi,
                exports,
            }),
        })
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component")
            .field("digest", &self.inner.digest)
            .field("bytes", &self.inner.bytes)
            .finish_non_exhaustive()
    }
}

// === impl Exports ===

impl Exports {
    pub(crate) fn load(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Guests> {
        let Self { pre: _, metadata, handler, reconciler } = self;
        Ok(Guests {
            metadata: metadata.load(&mut *store, instance)?,
            handler: handler.as_ref().map(|indices| indices.load(&mut *store, instance)).transpose()?,
            reconciler: reconciler.as_ref().map(|indices| indices.load(&mut *store, instance)).transpose()?,
        })
    }
}

// === impl Digest ===

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl NoComponent ===

impl NoComponent {
    fn explain(self, bytes: &[u8]) -> Error {
        match self {
            Self::NotWasm => Error::NotWasm {
                begins: bytes.iter().take(8).map(|byte| byte.escape_ascii().to_string()).collect(),
            },
            Self::CoreModule => Error::CoreModule,
            Self::Truncated { offset } => Error::Truncated { offset, bytes: bytes.len() },
            Self::Malformed(reason) => Error::Compile(reason),
        }
    }
}
