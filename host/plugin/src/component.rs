//! A compiled component that matches the contract, ready to be instantiated.
//!
//! A component is compiled in a [process of its own](crate::compiler), in the order of a queue. Plugins with
//! the same component share its code, which is looked up among the loaded components first, then on disk.

pub(crate) mod bounds;
mod check;
mod digest;
mod error;
mod file;
mod handler;
mod loaded;

use std::{
    fmt, io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

pub use self::{digest::Digest, error::Error, file::ComponentFile};

pub(crate) use self::{
    file::FileState,
    handler::{Handler, HandlerIndices},
    loaded::Loaded,
};
use crate::{
    bindings::exports::oarlock::plugin::{metadata, reconciler},
    code::{InMemory, Kept, Known},
    compiler::{self, Process},
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

/// A component whose names match the contract, and whose code is not loaded yet.
struct Candidate {
    digest: Digest,
    /// The size of the component.
    bytes: usize,
    surface: Surface,
    interfaces: check::Interfaces,
    began: Instant,
}

struct Inner {
    engine: Engine,
    digest: Digest,
    bytes: usize,
    compile_time: Duration,
    surface: Surface,
    imports_wasi: bool,
    exports: Exports,
    stored: Stored,
}

/// Where the code of a component is.
#[derive(Default)]
struct Stored {
    /// Why it is not on disk.
    trouble: Option<String>,
    _in_memory: Option<InMemory>,
}

/// The component with its imports linked, and the indices of its exports.
pub(crate) struct Exports {
    pub(crate) pre: InstancePre<StoreState>,
    pub(crate) metadata: metadata::GuestIndices,
    pub(crate) handler: Option<HandlerIndices>,
    pub(crate) reconciler: Option<reconciler::GuestIndices>,
}

/// The functions of one instance that the host can call.
pub(crate) struct Guests {
    pub(crate) metadata: metadata::Guest,
    pub(crate) handler: Option<Handler>,
    pub(crate) reconciler: Option<reconciler::Guest>,
}

// === impl Component ===

impl Component {
    /// Compiles a component and checks it against the contract. See [`Component::compile_for`].
    ///
    /// # Errors
    ///
    /// When the bytes are not a plugin that this host can compile. The error says what to change.
    pub async fn compile(engine: &Engine, bytes: impl Into<Bytes>) -> Result<Self, Error> {
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
        bytes: impl Into<Bytes>,
    ) -> Result<Self, Error> {
        let bytes = bytes.into();
        let read = bytes.clone();
        let looks_up = engine.clone();
        let found = blocking(move || {
            let candidate = Candidate::read(&read)?;
            find(&looks_up, candidate, &read)
        });
        let candidate = match found.await? {
            Ok(component) => return Ok(component),
            Err(candidate) => candidate,
        };
        let (size, digest) = (candidate.bytes, candidate.digest);
        let turn = engine.queue().turn(plugin, size, digest).await;
        // Another plugin may have compiled the same component meanwhile.
        let (looks_up, read) = (engine.clone(), bytes.clone());
        let candidate = match blocking(move || find(&looks_up, candidate, &read)).await? {
            Ok(component) => {
                turn.succeeded(None);
                return Ok(component);
            }
            Err(candidate) => candidate,
        };
        let compiled = compile_now(engine, candidate, &bytes, &turn).await;
        match compiled {
            Ok((component, process)) => {
                turn.succeeded(process);
                Ok(component)
            }
            Err(error) => {
                engine.failures().remember(digest, &error);
                Err(error)
            }
        }
    }

    /// Loads the component of a file, without reading the file, if this or an earlier host has
    /// [noted](Self::note_file) the file in its present state, and the code is loaded or on disk.
    ///
    /// `None` says that the file has to be read. It also stands for every error.
    pub async fn find(engine: &Engine, file: &ComponentFile) -> Option<Self> {
        let (engine, file) = (engine.clone(), file.clone());
        let find = move || match engine.code().known(&file) {
            Some(known) => Ok(Candidate::known(known)?.find(&engine)?.ok()),
            None => Ok(None),
        };
        // Reading the file leads to the same error, or to none.
        blocking(find).await.ok().flatten()
    }

    /// Notes that this component was read from a file, which had this state before and after. A file that
    /// changed a moment before is not noted, since a further change might leave no trace. Blocks.
    pub fn note_file(&self, file: &ComponentFile) {
        let Inner { digest, bytes, surface, .. } = &*self.inner;
        let known = Known { digest: *digest, bytes: *bytes, surface: surface.clone() };
        self.inner.engine.code().note(file, &known);
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
        &self.inner.surface.imports
    }

    /// Returns why its code could not be stored, if this host compiled it and could not. The next host
    /// compiles it again.
    #[must_use]
    pub fn not_stored(&self) -> Option<&str> {
        self.inner.stored.trouble.as_deref()
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

/// Looks up a component's code. Returns the candidate if it has to be compiled, and may be. Blocks.
fn find(engine: &Engine, candidate: Candidate, bytes: &[u8]) -> Result<Result<Component, Candidate>, Error> {
    let candidate = match candidate.find(engine)? {
        Ok(component) => return Ok(Ok(component)),
        Err(candidate) => candidate,
    };
    engine.failures().recall(&candidate.digest)?;
    bounds::check(bytes)?;
    Ok(Err(candidate))
}

/// Compiles a component. Returns with it the process, if it can compile another one.
async fn compile_now(
    engine: &Engine,
    candidate: Candidate,
    bytes: &Bytes,
    turn: &compiler::Turn,
) -> Result<(Component, Option<Process>), Error> {
    let folder = engine.code().folder().display().to_string();
    let broken = move |reason: String| Error::Code { folder: folder.clone(), reason };
    let not_received = broken.clone();
    let receives = engine.clone();
    let receive = move |length, code: &mut dyn io::Read| {
        receives.code().receive(length, code, &receives.loaded_digests())
    };
    let (part, process) = compiler::compile(
        engine.compiler(),
        engine.code().engine_tag(),
        bytes,
        || turn.idle_process(),
        receive,
        move |error| not_received(error.to_string()),
    )
    .await?;
    let engine = engine.clone();
    let kept = blocking(move || {
        let kept = engine.code().keep(engine.wasmtime(), &candidate.digest, part, &engine.loaded_digests());
        let Kept { code, trouble, in_memory } = kept.map_err(broken)?;
        candidate.link(&engine, &code, Stored { trouble, _in_memory: in_memory })
    });
    Ok((kept.await?, process))
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
    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let began = Instant::now();
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if bytes.len() > MAX_COMPONENT_BYTES {
            return Err(Error::TooLarge { bytes: bytes.len(), limit: MAX_COMPONENT_BYTES });
        }
        let surface = inspect::inspect(bytes).map_err(|not_component| not_component.explain(bytes))?;
        let interfaces = check::check(&surface)?;
        Ok(Self { digest: Digest::of(bytes), bytes: bytes.len(), surface, interfaces, began })
    }

    /// Returns a candidate that was read before.
    fn known(known: Known) -> Result<Self, Error> {
        let Known { digest, bytes, surface } = known;
        let interfaces = check::check(&surface)?;
        Ok(Self { digest, bytes, surface, interfaces, began: Instant::now() })
    }

    /// Looks up its code: among the loaded components, then on disk. Returns the candidate if there is none.
    /// Blocks.
    fn find(self, engine: &Engine) -> Result<Result<Component, Self>, Error> {
        if let Some(component) = engine.loaded(&self.digest) {
            return Ok(Ok(component));
        }
        match engine.code().load(engine.wasmtime(), &self.digest) {
            Some(code) => self.link(engine, &code, Stored::default()).map(Ok),
            None => Ok(Err(self)),
        }
    }

    /// Links compiled code to the host's functions.
    fn link(
        self,
        engine: &Engine,
        code: &wasmtime::component::Component,
        stored: Stored,
    ) -> Result<Component, Error> {
        let Self { digest, bytes, surface, interfaces, began } = self;
        let pre = engine.linker(interfaces.wasi).instantiate_pre(code).map_err(check::mismatch)?;
        let exports = Exports {
            metadata: metadata::GuestIndices::new(&pre).map_err(check::mismatch)?,
            handler: interfaces
                .handler
                .then(|| HandlerIndices::new(&pre).map_err(check::mismatch))
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
                bytes,
                compile_time: began.elapsed(),
                surface,
                imports_wasi: interfaces.wasi,
                exports,
                stored,
            }),
        };
        engine.remember(&component);
        Ok(component)
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
