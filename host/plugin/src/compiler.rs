//! Compiling components in a process of its own, which may use so much time and memory and nothing else.
//!
//! A component's author decides how long its compilation takes and how much memory: four kilobytes can keep a compiler busy for
//! hours. A thread cannot be stopped, a process can. So each compilation runs in a child process, which limits itself before it reads
//! the first byte ([`child`]), and which the host kills when it takes too long or nobody wants its work any more
//! (`process`). A panic, a stack overflow or an allocation that fails ends the child, and becomes that component's error.
//!
//! ```text
//!   host ── component ──> stdin │ child │ stdout ──> a file in the code folder
//!                                   └ stderr ──> why not
//! ```
//!
//! The child has no network, no other files and no environment. It is no sandbox against a compiler that a component has taken over: the
//! host runs the code that the child writes, as it would run what it compiled itself.

mod child;
mod process;
mod queue;

use std::{
    ffi::OsString,
    hash::{Hash as _, Hasher},
    path::PathBuf,
    time::Duration,
};

use sha2::{Digest as _, Sha256};

pub use self::{
    child::run,
    queue::{Compilation, CompilationState},
};
pub(crate) use self::{process::compile, queue::Queue};

/// What the program beside the running one is called that tests and other users of this library compile with.
const BESIDE: &str = "oarlock-compiler";

/// Which program compiles, and what it may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compiler {
    /// A program that calls [`run`] with the arguments after its own. None: `oarlock-compiler` beside the running program.
    pub program: Option<PathBuf>,
    /// The program's own arguments, such as a subcommand.
    pub arguments: Vec<OsString>,
    /// What a compilation may use.
    pub allowance: Allowance,
}

/// What one compilation may use: something for every component, and more for each byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// CPU time for every component; 20 s if not said.
    pub cpu: Duration,
    /// CPU time for each MiB of a component; 10 s if not said.
    pub cpu_per_mib: Duration,
    /// Address space for every component; 512 MiB if not said.
    pub memory: u64,
    /// Address space for each byte of a component; 48 if not said.
    pub memory_per_byte: u64,
    /// Compiled code for every component; 16 MiB if not said.
    pub code: u64,
    /// Compiled code for each byte of a component; 16 if not said.
    pub code_per_byte: u64,
}

/// What the compilation of one component may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) cpu_seconds: u64,
    pub(crate) wall: Duration,
    pub(crate) memory: u64,
    pub(crate) code: u64,
}

/// What two engines must have in common for one to run the code of the other, as a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineTag(pub(crate) [u8; 32]);

/// Lets a [`Hash`](std::hash::Hash) flow into a cryptographic digest.
#[derive(Default)]
struct Sha256Hasher(Sha256);

// === impl Compiler ===

impl Compiler {
    /// The program to run. Whether there is one is found out by running it.
    fn program(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(|| {
            let name = format!("{BESIDE}{}", std::env::consts::EXE_SUFFIX);
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
            memory: 512 << 20,
            memory_per_byte: 48,
            code: 16 << 20,
            code_per_byte: 16,
        }
    }
}

impl Allowance {
    /// What a component of this size may use.
    pub(crate) fn of(&self, bytes: usize) -> Limits {
        let Self { cpu, cpu_per_mib, memory, memory_per_byte, code, code_per_byte } = *self;
        let n_bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mib = u32::try_from(n_bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX) - u32::from(n_bytes < 1 << 20);
        let cpu = cpu.saturating_add(cpu_per_mib.saturating_mul(mib));
        Limits {
            cpu_seconds: cpu.as_secs().max(1),
            // What is to compute and does not, on a machine with other work, is given some patience.
            wall: cpu.saturating_mul(4).saturating_add(Duration::from_secs(60)),
            memory: memory.saturating_add(memory_per_byte.saturating_mul(n_bytes)),
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
