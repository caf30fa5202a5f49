//! A compiled component that was checked against the contract, ready to be instantiated.
//!
//! A component is compiled in a [process of its own](crate::compiler), after its turn has come. All who have the same component share
//! its code: it is looked for among those that are loaded, then on disk.

pub(crate) mod bounds;
mod check;

use std::{
    fmt,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use crate::{
    bindings::exports::oarlock::plugin::{handler, metadata, reconciler},
    call_error, compiler,
    engine::Engine,
    guest_text,
    inspect::{self, NoComponent, Surface},
    state::State,
};

/// A component larger than this is refused before it is looked at. The largest that language tools make, with a Python or JavaScript
/// engine in them, have 12 to 40 MiB.
pub const MAX_COMPONENT_BYTES: usize = 64 << 20;

/// A component that fits the contract. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

/// The SHA-256 of a component's bytes. Displays as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Why bytes cannot be used as a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// There is more of something in it than any plugin needs.
    #[error("the component has {found} {what}, more than the {limit} that this host compiles")]
    TooComplex {
        /// Of what.
        what: &'static str,
        /// How much there is, at least.
        found: u64,
        /// How much there may be.
        limit: u64,
    },
    /// Compiling it takes more than a component of its size may use.
    #[error(
        "it does not compile: the compiler was ended when it used more than the {allowance} of {what} that a component of this \
         size may take{}; does it have very large functions, or many components in one another?",
        Said(said)
    )]
    OverAllowance {
        /// Of what.
        what: &'static str,
        /// How much it may use.
        allowance: String,
        /// What the compiler said.
        said: String,
    },
    /// The compiler broke over it.
    #[error("it does not compile: the compiler failed ({status}){}", Said(said))]
    CompilerDied {
        /// How the process ended.
        status: String,
        /// What it said.
        said: String,
    },
    /// The compiler cannot be run. The component is not to blame.
    #[error("the compiler cannot be used: {0}")]
    Compiler(String),
    /// Its code cannot be written or loaded. The component is not to blame.
    #[error("compiled code cannot be written to or loaded from {folder}: {reason}")]
    Code {
        /// Where.
        folder: String,
        /// Why.
        reason: String,
    },
    /// The thread that looks at it could not be started, or ended.
    #[error("the thread that looks at the component failed: {0}")]
    Thread(String),
}

/// What the compiler said, if it said anything.
struct Said<'a>(&'a str);

/// A component that looks like a plugin, on its way to code.
struct Candidate {
    bytes: Arc<[u8]>,
    digest: Digest,
    surface: Surface,
    claims: check::Claims,
    began: Instant,
}

/// A component that is loaded, for as long as somebody has it.
pub(crate) struct Loaded(Weak<Inner>);

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
    /// Compiles a component and checks it against the contract. See [`Component::compile_for`].
    ///
    /// # Errors
    ///
    /// Says what the bytes are instead of a plugin, and what to do about it.
    pub async fn compile(engine: &Engine, bytes: impl Into<Arc<[u8]>>) -> Result<Self, Error> {
        Self::compile_for(engine, None, bytes).await
    }

    /// Compiles a component for a plugin and checks it against the contract.
    ///
    /// Takes milliseconds if the code is there already. Otherwise waits for its turn ([`Engine::compilations`] shows how long the
    /// queue is) and for the compiler, without holding up the runtime. Dropping the future ends the compilation.
    ///
    /// # Errors
    ///
    /// Says what the bytes are instead of a plugin, and what to do about it.
    pub async fn compile_for(
        engine: &Engine,
        plugin: Option<Arc<str>>,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Self, Error> {
        let bytes = bytes.into();
        let candidate = blocking(move || Candidate::read(bytes)).await?;
        let candidate = match find(engine, candidate).await? {
            Ok(component) => return Ok(component),
            Err(candidate) => candidate,
        };
        let (size, digest) = (candidate.bytes.len(), candidate.digest);
        let turn = engine.queue().turn(plugin, size, digest).await;
        // Another plugin of the same component may have been first.
        let candidate = match find(engine, candidate).await? {
            Ok(component) => {
                turn.succeeded();
                return Ok(component);
            }
            Err(candidate) => candidate,
        };
        let compiled = compile_now(engine, candidate).await;
        match &compiled {
            Ok(_) => turn.succeeded(),
            Err(error) => engine.failures().remember(digest, error),
        }
        compiled
    }

    /// Returns the SHA-256 of the bytes it was made of.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// Tells whether it is the other one, and not only made of the same bytes: then they have one copy of the code.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns how many bytes it was made of.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.bytes
    }

    /// Returns how long it took until its code was there: compiled, the wait for its turn included, or found on disk.
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
}

/// Looks for a component's code. Gives the candidate back if it has to be compiled, and can be.
async fn find(engine: &Engine, candidate: Candidate) -> Result<Result<Component, Candidate>, Error> {
    let engine = engine.clone();
    blocking(move || {
        if let Some(component) = engine.loaded(&candidate.digest) {
            return Ok(Ok(component));
        }
        if let Some(code) = engine.code().load(engine.wasmtime(), &candidate.digest) {
            return candidate.link(&engine, &code).map(Ok);
        }
        engine.failures().recall(&candidate.digest)?;
        bounds::check(&candidate.bytes)?;
        Ok(Err(candidate))
    })
    .await
}

async fn compile_now(engine: &Engine, candidate: Candidate) -> Result<Component, Error> {
    let broken = |engine: &Engine, reason: String| Error::Code {
        folder: engine.code().folder().display().to_string(),
        reason,
    };
    let store = engine.code();
    let part = store.part().map_err(|error| broken(engine, error.to_string()))?;
    let file = part.file().map_err(|error| broken(engine, error.to_string()))?;
    compiler::compile(engine.compiler(), store.engine_tag(), &candidate.bytes, file).await?;
    let engine = engine.clone();
    blocking(move || {
        let kept = engine.code().keep(engine.wasmtime(), &candidate.digest, part);
        let code = kept.map_err(|reason| broken(&engine, reason))?;
        candidate.link(&engine, &code)
    })
    .await
}

/// Runs what takes a thread's time beside the runtime's own threads. A panic in it is this component's error.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::Thread(error.to_string())))
}

// === impl Candidate ===

impl Candidate {
    /// Looks at the outside of a component.
    fn read(bytes: Arc<[u8]>) -> Result<Self, Error> {
        let began = Instant::now();
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if bytes.len() > MAX_COMPONENT_BYTES {
            return Err(Error::TooLarge { bytes: bytes.len(), limit: MAX_COMPONENT_BYTES });
        }
        let surface = inspect::inspect(&bytes).map_err(|no_component| no_component.explain(&bytes))?;
        let claims = check::check(&surface)?;
        let digest = Digest::of(&bytes);
        Ok(Self { bytes, digest, surface, claims, began })
    }

    /// Links compiled code to the host's functions.
    fn link(self, engine: &Engine, code: &wasmtime::component::Component) -> Result<Component, Error> {
        let Self { bytes, digest, surface, claims, began } = self;
        let pre = engine.linker(claims.wasi).instantiate_pre(code).map_err(check::mismatch)?;
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
        let component = Component {
            inner: Arc::new(Inner {
                engine: engine.clone(),
                digest,
                bytes: bytes.len(),
                compile_time: began.elapsed(),
                imports: surface.imports,
                imports_wasi: claims.wasi,
                exports,
            }),
        };
        engine.remember(&component);
        Ok(component)
    }
}

// === impl Loaded ===

impl Loaded {
    pub(crate) fn of(component: &Component) -> Self {
        Self(Arc::downgrade(&component.inner))
    }

    /// The component, if somebody still has it.
    pub(crate) fn component(&self) -> Option<Component> {
        self.0.upgrade().map(|inner| Component { inner })
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

// === impl Said ===

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

// === impl Digest ===

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

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
            Self::Malformed(reason) => {
                Error::Compile(guest_text::line(reason, call_error::MAX_MESSAGE_BYTES))
            }
        }
    }
}
