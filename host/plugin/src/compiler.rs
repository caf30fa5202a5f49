//! Compiles components in child processes with limited time and memory.
//!
//! A component's author determines how much time and memory its compilation takes: four kilobytes can keep a
//! compiler busy for hours. A thread cannot be stopped, a process can. So each compilation runs in a child
//! process. The child limits itself before it reads the component ([`child`]). The host kills it if it takes
//! too long or its result is not needed any more (`process`). A panic, a stack overflow or a failed
//! allocation ends the child, and becomes the component's error.
//!
//! ```text
//!   host ── component ──> stdin │ child │ stdout ──> the host writes it to a file in the code folder
//!                                   └ stderr ──> the reason of a failure
//! ```
//!
//! While small components wait, one child compiles several of them in turn, each within limits of its own. A
//! child that refused a component, or whose memory has grown, is replaced. If all children together have a
//! limit of memory ([`Compiler::total_memory`]), each component has a child of its own.
//!
//! The child has no network, no other files and no environment. It is not a sandbox against a component that
//! exploits a bug of the compiler: the host runs the code that the child writes.

mod child;
mod process;
mod protocol;
mod queue;

use std::{
    ffi::OsString,
    hash::{Hash as _, Hasher},
    path::PathBuf,
    time::Duration,
};

use sha2::{Digest as _, Sha256};

pub use self::{
    child::{compile_here, run},
    queue::{Compilation, CompilationState},
};
pub(crate) use self::{
    process::{Process, compile},
    queue::{Queue, Turn},
};

/// The name of the default compiler, which tests and other users of this library use.
const DEFAULT_PROGRAM: &str = "oarlock-compiler";

/// The size beyond which a component is large: its compilation may take long.
const LARGE: usize = 4 << 20;

/// The program that compiles, and the resources that it may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compiler {
    /// A program that calls [`run`] with the arguments after its own. `None` means `oarlock-compiler` in the
    /// folder of the running program.
    pub program: Option<PathBuf>,
    /// The program's own arguments, such as a subcommand.
    pub arguments: Vec<OsString>,
    /// The resources of a compilation.
    pub allowance: Allowance,
    /// The address space that all compilations at the same time may use together, in bytes. `None` means that
    /// only the number of compilations bounds it.
    ///
    /// If it is enough for two small components, large ones leave the memory of a small one free.
    pub total_memory: Option<u64>,
}

/// The resources of one compilation: a base for every component, and more for each byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// CPU time for every component. Default 20 s.
    pub cpu: Duration,
    /// CPU time for each MiB of a component. Default 10 s.
    pub cpu_per_mib: Duration,
    /// Address space for every component, in bytes. Default 1 GiB.
    ///
    /// Large functions with many locals and branches determine it. The one of `k8s-openapi` that parses a
    /// Volume, 77 KiB with `opt-level = "s"`, takes 600 MiB; with the program, 850 MiB of address space.
    pub memory: u64,
    /// Address space for each byte of a component. Default 48.
    pub memory_per_byte: u64,
    /// Compiled code for every component, in bytes. Default 16 MiB.
    pub code: u64,
    /// Compiled code for each byte of a component. Default 16.
    pub code_per_byte: u64,
}

/// The limits of the process that compiles one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessLimits {
    pub(crate) cpu_seconds: u64,
    pub(crate) wall: Duration,
    pub(crate) memory: u64,
    /// The memory is all that such compilers may use together, and less than the allowance.
    pub(crate) is_all_memory: bool,
    pub(crate) code: u64,
}

/// A digest of the properties that two engines must share so that one can run the code of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineTag(pub(crate) [u8; 32]);

/// Writes a [`Hash`](std::hash::Hash) into a cryptographic digest.
#[derive(Default)]
struct Sha256Hasher(Sha256);

// === impl Compiler ===

impl Compiler {
    /// Returns the limits for a component of this size.
    pub(crate) fn limits(&self, bytes: usize) -> ProcessLimits {
        let limits = self.allowance.of(bytes);
        let most = if bytes > LARGE { self.memory_of_long() } else { self.memory_of_all() };
        match most < limits.memory {
            true => ProcessLimits { memory: most, is_all_memory: true, ..limits },
            false => limits,
        }
    }

    /// Returns the address space that all compilations may use together.
    fn memory_of_all(&self) -> u64 {
        self.total_memory.unwrap_or(u64::MAX)
    }

    /// Returns the address space that compilations which may take long may use together.
    fn memory_of_long(&self) -> u64 {
        let (all, small) = (self.memory_of_all(), self.allowance.of(LARGE).memory);
        if all / 2 >= small { all - small } else { all }
    }

    /// Returns the program to run. It may not exist.
    fn program(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(|| {
            let name = format!("{DEFAULT_PROGRAM}{}", std::env::consts::EXE_SUFFIX);
            let Some(folder) = std::env::current_exe().ok().and_then(|it| it.parent().map(PathBuf::from))
            else {
                return name.into();
            };
            // Cargo puts the executables of tests one folder below the others.
            match folder.parent().filter(|_| folder.ends_with("deps")) {
                Some(above) => above.join(name),
                None => folder.join(name),
            }
        })
    }
}

// === impl Allowance ===

impl Default for Allowance {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(20),
            cpu_per_mib: Duration::from_secs(10),
            memory: 1 << 30,
            memory_per_byte: 48,
            code: 16 << 20,
            code_per_byte: 16,
        }
    }
}

impl Allowance {
    /// Returns the limits for a component of this size.
    fn of(&self, bytes: usize) -> ProcessLimits {
        let Self { cpu, cpu_per_mib, memory, memory_per_byte, code, code_per_byte } = *self;
        let n_bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mib = u32::try_from(n_bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX) - u32::from(n_bytes < 1 << 20);
        let cpu = cpu.saturating_add(cpu_per_mib.saturating_mul(mib));
        ProcessLimits {
            cpu_seconds: cpu.as_secs().max(1),
            // On a busy machine a process gets only a part of the CPU.
            wall: cpu.saturating_mul(4).saturating_add(Duration::from_secs(60)),
            memory: memory.saturating_add(memory_per_byte.saturating_mul(n_bytes)),
            is_all_memory: false,
            code: code.saturating_add(code_per_byte.saturating_mul(n_bytes)),
        }
    }
}

// === impl EngineTag ===

impl EngineTag {
    pub(crate) fn of(engine: &wasmtime::Engine) -> Self {
        let mut hasher = Sha256Hasher::default();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Self(hasher.0.finalize().into())
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

// === impl Sha256Hasher ===

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}
