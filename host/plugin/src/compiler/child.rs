//! The child process: limits itself, reads a component, writes its code, and ends.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::AsFd as _,
    process::{ExitCode, exit},
    thread,
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::EngineTag;
use crate::{component::MAX_COMPONENT_BYTES, engine::wasmtime_config, guest};

/// The component is not valid; stderr has the reason.
pub(super) const EXIT_REFUSED: u8 = 10;
/// The arguments or the input are not those of a host.
pub(super) const EXIT_MISUSED: u8 = 11;
/// The host cannot run the code of this child's engine.
pub(super) const EXIT_OTHER_ENGINE: u8 = 12;
/// The host ended, or does not need the code any more.
const EXIT_UNWANTED: u8 = 13;

/// The maximum length of a message about a component.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// The compiler recurses into nested parts of a component.
const STACK_BYTES: usize = 32 << 20;

/// Compiles one component from standard input to standard output, as the child process of a host.
///
/// `arguments` are those that the host passed after [`Compiler::arguments`](super::Compiler). This lowers the
/// limits of the process permanently: it cannot open a file any more.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match Job::parse(arguments).and_then(Job::prepare) {
        Ok(ready) => ready.compile(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(EXIT_MISUSED)
        }
    }
}

/// The request of the host.
struct Job {
    cpu_seconds: u64,
    memory: u64,
    code: u64,
    engine_tag: String,
}

/// A child that has opened all its files, and has limited itself.
struct Ready {
    engine: wasmtime::Engine,
    engine_tag: String,
    output: File,
}

// === impl Job ===

impl Job {
    /// Returns the arguments of the child.
    pub(super) fn arguments(limits: &super::ProcessLimits, engine_tag: &EngineTag) -> [String; 4] {
        let super::ProcessLimits { cpu_seconds, wall: _, memory, code } = limits;
        [cpu_seconds.to_string(), memory.to_string(), code.to_string(), engine_tag.hex()]
    }

    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let misused =
            || "the host runs this program to compile one component; it is not for other uses".to_owned();
        let arguments: Option<Vec<String>> = arguments.into_iter().map(|it| it.into_string().ok()).collect();
        let [cpu_seconds, memory, code, engine_tag] =
            <[String; 4]>::try_from(arguments.ok_or_else(misused)?).map_err(|_| misused())?;
        let number = |text: String| text.parse::<u64>().map_err(|_| misused());
        Ok(Self {
            cpu_seconds: number(cpu_seconds)?,
            memory: number(memory)?,
            code: number(code)?,
            engine_tag,
        })
    }

    /// Opens what the compilation needs, then limits the process.
    fn prepare(self) -> Result<Ready, String> {
        let Self { cpu_seconds, memory, code, engine_tag } = self;
        let engine = wasmtime::Engine::new(&wasmtime_config()).map_err(|error| format!("{error:#}"))?;
        let output = io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        // If memory is short, the kernel should end this process and not the host. Some systems refuse this.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        // Other processes have priority.
        let _ = rustix::process::nice(5);
        let limits = [
            (Resource::Cpu, cpu_seconds),
            (Resource::As, memory),
            (Resource::Fsize, code),
            (Resource::Core, 0),
            // Open files stay open. No further file or socket can be opened.
            (Resource::Nofile, 0),
        ];
        for (resource, limit) in limits {
            // At the hard limit of CPU time the kernel sends SIGKILL, which has no specific meaning.
            let hard = if matches!(resource, Resource::Cpu) { limit + 1 } else { limit };
            let limit = Rlimit { current: Some(limit), maximum: Some(hard) };
            setrlimit(resource, limit).map_err(|error| format!("cannot limit {resource:?}: {error}"))?;
        }
        Ok(Ready { engine, engine_tag, output: output.into() })
    }
}

// === impl Ready ===

impl Ready {
    fn compile(self) -> ExitCode {
        let Self { engine, engine_tag, mut output } = self;
        if EngineTag::of(&engine).hex() != engine_tag {
            return ExitCode::from(EXIT_OTHER_ENGINE);
        }
        let component = match read_component() {
            Ok(component) => component,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(EXIT_MISUSED);
            }
        };
        let compiling = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let code = match engine.precompile_component(&component) {
                Ok(code) => code,
                Err(error) => {
                    // The error may quote names of the component.
                    eprint!("{}", guest::text::line(format_args!("{error:#}"), MAX_MESSAGE_BYTES));
                    exit(EXIT_REFUSED.into());
                }
            };
            match output.write_all(&code) {
                Ok(()) => exit(0),
                Err(error) => {
                    eprint!("{error}");
                    exit(EXIT_MISUSED.into());
                }
            }
        });
        match compiling {
            Ok(compiling) => {
                // The host sends nothing more. It closes the pipe when it ends, or does not need the code any
                // more.
                thread::spawn(|| {
                    let _ = io::stdin().read(&mut [0]);
                    exit(EXIT_UNWANTED.into());
                });
                // The thread returns only after a panic.
                let _ = compiling.join();
                ExitCode::from(101)
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(EXIT_MISUSED)
            }
        }
    }
}

/// Reads a length and as many bytes.
fn read_component() -> io::Result<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    let mut length = [0; 8];
    stdin.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_COMPONENT_BYTES {
        return Err(io::Error::other("the component exceeds the maximum size"));
    }
    let mut component = vec![0; length];
    stdin.read_exact(&mut component)?;
    Ok(component)
}

/// Returns the arguments of the child for a compilation.
pub(super) fn arguments(limits: &super::ProcessLimits, engine_tag: &EngineTag) -> [String; 4] {
    Job::arguments(limits, engine_tag)
}
