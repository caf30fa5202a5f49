//! A compiled component that matches the contract, ready to be instantiated.
//!
//! A component is compiled in a [process of its own](crate::compiler), in the order of a queue. Plugins with
//! the same component share its code, which is looked up among the loaded components first, then on disk.

pub(crate) mod bounds;
mod check;
mod error;

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

pub use self::error::Error;
use crate::{
    bindings::exports::oarlock::plugin::{handler, metadata, reconciler},
    compiler,
    engine::Engine,
    inspect::{self, Surface},
    state::StoreState,
};

/// The maximum size of a component. The largest that language tools build, with a Python or JavaScript
/// engine, have 12 to 40 MiB.
pub const MAX_COMPONENT_BYTES: usize = 64 << 20;

/// A component that matches the contract. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

/// The SHA-256 digest of a component's bytes. Displays as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A component whose names match the contract, and whose code is not loaded yet.
struct Candidate {
    bytes: Arc<[u8]>,
    digest: Digest,
    surface: Surface,
    interfaces: check::Interfaces,
    began: Instant,
}

/// A loaded component, for as long as a plugin uses it.
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

/// The component with its imports linked, and the indices of its exports.
pub(crate) struct Exports {
    pub(crate) pre: InstancePre<StoreState>,
    pub(crate) metadata: metadata::GuestIndices,
    pub(crate) handler: Option<handler::GuestIndices>,
    pub(crate) reconciler: Option<reconciler::GuestIndices>,
}

/// The functions of one instance that the host can call.
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
    /// When the bytes are not a plugin that this host can compile. The error says what to change.
    pub async fn compile(engine: &Engine, bytes: impl Into<Arc<[u8]>>) -> Result<Self, Error> {
        Self::compile_for(engine, None, bytes).await
    }

    /// Compiles a component for a plugin and checks it against the contract.
    ///
    /// Takes milliseconds if the code is loaded or on disk. Otherwise waits for its turn
    /// ([`Engine::compilations`] returns the queue) and for the compiler, without blocking the runtime.
    /// Dropping the future ends the compilation.
    ///
    /// # Errors
    ///
    /// When the bytes are not a plugin that this host can compile. The error says what to change.
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
        // Another plugin may have compiled the same component meanwhile.
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

    /// Returns the SHA-256 digest of its bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// Returns whether both are clones of one component, and so share one copy of the code.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns its size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.bytes
    }

    /// Returns the time until its code was loaded: from disk, or after the wait in the queue and the
    /// compilation.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.inner.compile_time
    }

    /// Returns whether it exports `handler`.
    #[must_use]
    pub fn exports_handler(&self) -> bool {
        self.inner.exports.handler.is_some()
    }

    /// Returns whether it exports `reconciler`.
    #[must_use]
    pub fn exports_reconciler(&self) -> bool {
        self.inner.exports.reconciler.is_some()
    }

    /// Returns whether it imports WASI, of which it gets the empty version.
    #[must_use]
    pub fn imports_wasi(&self) -> bool {
        self.inner.imports_wasi
    }

    /// Returns the full names of its imports, such as `oarlock:plugin/events@0.1.0`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.inner.imports
    }

    /// Notes that the code on disk is in use, so that other code is evicted first. Blocks.
    pub fn keep_code(&self) {
        self.inner.engine.code().touch(&self.inner.digest);
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn exports(&self) -> &Exports {
        &self.inner.exports
    }
}

/// Looks up a component's code. Returns the candidate if it has to be compiled, and may be.
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
        let kept = engine.code().keep(engine.wasmtime(), &candidate.digest, part, &engine.loaded_digests());
        let code = kept.map_err(|reason| broken(&engine, reason))?;
        candidate.link(&engine, &code)
    })
    .await
}

/// Runs blocking work on a thread for blocking work. A panic in it becomes the component's error.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::Thread(error.to_string())))
}

// === impl Candidate ===

impl Candidate {
    /// Reads the names of a component's imports and exports, and checks them.
    fn read(bytes: Arc<[u8]>) -> Result<Self, Error> {
        let began = Instant::now();
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if bytes.len() > MAX_COMPONENT_BYTES {
            return Err(Error::TooLarge { bytes: bytes.len(), limit: MAX_COMPONENT_BYTES });
        }
        let surface = inspect::inspect(&bytes).map_err(|not_component| not_component.explain(&bytes))?;
        let interfaces = check::check(&surface)?;
        let digest = Digest::of(&bytes);
        Ok(Self { bytes, digest, surface, interfaces, began })
    }

    /// Links compiled code to the host's functions.
    fn link(self, engine: &Engine, code: &wasmtime::component::Component) -> Result<Component, Error> {
        let Self { bytes, digest, surface, interfaces, began } = self;
        let pre = engine.linker(interfaces.wasi).instantiate_pre(code).map_err(check::mismatch)?;
        let exports = Exports {
            metadata: metadata::GuestIndices::new(&pre).map_err(check::mismatch)?,
            handler: interfaces
                .handler
                .then(|| handler::GuestIndices::new(&pre).map_err(check::mismatch))
                .transpose()?,
            reconciler: interfaces
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
                imports_wasi: interfaces.wasi,
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

    /// Returns the component, if a plugin still uses it.
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
    pub(crate) fn load(
        &self,
        store: &mut Store<StoreState>,
        instance: &Instance,
    ) -> wasmtime::Result<Guests> {
        let Self { pre: _, metadata, handler, reconciler } = self;
        Ok(Guests {
            metadata: metadata.load(&mut *store, instance)?,
            handler: handler.as_ref().map(|indices| indices.load(&mut *store, instance)).transpose()?,
            reconciler: reconciler.as_ref().map(|indices| indices.load(&mut *store, instance)).transpose()?,
        })
    }
}

// === impl Digest ===

impl Digest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = ();

    /// Parses what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.as_bytes();
        let digit = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = digit(pair[0]).zip(digit(pair[1])).ok_or(())?;
            *byte = u8::try_from(value.0 * 16 + value.1).map_err(|_| ())?;
        }
        Ok(Self(bytes))
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
