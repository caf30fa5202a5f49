//! Why bytes cannot be used as a plugin.

use std::fmt;

use crate::{call_error, guest, inspect::NotComponent};

/// Why bytes cannot be used as a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is empty.
    #[error("the file is empty: is the build that writes it still running?")]
    Empty,
    /// The component exceeds [`MAX_COMPONENT_BYTES`](super::MAX_COMPONENT_BYTES).
    #[error("the component has {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The maximum size.
        limit: usize,
    },
    /// The bytes are not WebAssembly.
    #[error("not WebAssembly: the file does not begin with \\0asm (it begins with {begins})")]
    NotWasm {
        /// The first bytes, escaped.
        begins: String,
    },
    /// The bytes are a core module, not a component.
    #[error(
        "a core WebAssembly module, not a component: build for the component model (link with wasm-component-ld, \
         or run `wasm-tools component new` on it)"
    )]
    CoreModule,
    /// The end of the component is missing.
    #[error(
        "the component is truncated: the section at byte {offset} of {bytes} exceeds the file; was it copied completely?"
    )]
    Truncated {
        /// The beginning of the incomplete section.
        offset: usize,
        /// The size of the file.
        bytes: usize,
    },
    /// The component is built for another version of the contract.
    #[error(
        "built for {found}, this host supports {wanted}: build the plugin again with the wit/ folder of this version \
         (wit/CHANGELOG.md lists the changes)"
    )]
    WrongVersion {
        /// The package and version that the component names.
        found: String,
        /// The host's.
        wanted: &'static str,
    },
    /// The component lacks exports that a plugin must have.
    #[error(
        "not an Oarlock plugin: it lacks {missing}; it exports {exports}. \
         A plugin exports `metadata` and `handler`, `reconciler` or both, of {wanted}"
    )]
    WrongWorld {
        /// The interfaces that are missing.
        missing: String,
        /// The interfaces that it exports.
        exports: String,
        /// The host's package.
        wanted: &'static str,
    },
    /// The component imports interfaces that the host does not provide.
    #[error("it imports {imports}, which this host does not provide: {hint}")]
    UnknownImports {
        /// The names, separated by commas.
        imports: String,
        /// The way to avoid that.
        hint: &'static str,
    },
    /// A function or type of an interface differs from the contract.
    #[error("it does not match {wanted}: {reason}; was it built with another version of the wit/ folder?")]
    Mismatch {
        /// The function or type that differs, from wasmtime.
        reason: String,
        /// The host's package.
        wanted: &'static str,
    },
    /// The component is not valid, or uses a feature that the host does not support.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// The component exceeds a limit of the host on its parts.
    #[error("the component has {found} {what}, more than the {limit} that this host compiles")]
    TooComplex {
        /// The parts, such as `functions`.
        what: &'static str,
        /// Their number; there may be more.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// The compilation exceeded the resources for a component of this size.
    #[error(
        "it does not compile: the compiler was ended when it used more than the {allowance} of {what} that a component of this \
         size may take{}; does it have very large functions, or many components in one another? \
         (In Rust, opt-level = \"z\" in [profile.release] of Cargo.toml makes functions smaller)",
        CompilerOutput(said)
    )]
    OverAllowance {
        /// The resource, such as `memory`.
        what: &'static str,
        /// The allowed amount.
        allowance: String,
        /// The compiler's output.
        said: String,
    },
    /// The compilation exceeded the memory that is left to compilers. A component of its size may take more.
    #[error(
        "it does not compile: the compiler was ended when it used more than the {mib} MiB of memory that this \
         container or service leaves to compilers{}. Fix: raise the limit of memory of the host's container or service",
        CompilerOutput(said)
    )]
    OverTotalMemory {
        /// The memory that is left, in MiB.
        mib: u64,
        /// The compiler's output.
        said: String,
    },
    /// The compiler failed.
    #[error("it does not compile: the compiler failed ({status}){}", CompilerOutput(said))]
    CompilerDied {
        /// How the process ended.
        status: String,
        /// The compiler's output.
        said: String,
    },
    /// The compiler cannot be run. This is not the component's fault.
    #[error("the compiler cannot be used: {0}")]
    Compiler(String),
    /// The compiled code cannot be written or loaded. This is not the component's fault.
    #[error("compiled code cannot be written to or loaded from {folder}: {reason}")]
    Code {
        /// The folder.
        folder: String,
        /// The reason.
        reason: String,
    },
    /// The thread that reads the component could not be started, or panicked.
    #[error("the thread that reads the component failed: {0}")]
    Thread(String),
}

/// The compiler's output in parentheses, or nothing.
struct CompilerOutput<'a>(&'a str);

// === impl CompilerOutput ===

impl fmt::Display for CompilerOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

// === impl NotComponent ===

impl NotComponent {
    pub(super) fn explain(self, bytes: &[u8]) -> Error {
        match self {
            Self::NotWasm => Error::NotWasm {
                begins: bytes.iter().take(8).map(|byte| byte.escape_ascii().to_string()).collect(),
            },
            Self::CoreModule => Error::CoreModule,
            Self::Truncated { offset } => Error::Truncated { offset, bytes: bytes.len() },
            Self::Malformed(reason) => {
                Error::Compile(guest::text::line(reason, call_error::MAX_MESSAGE_BYTES))
            }
        }
    }
}
