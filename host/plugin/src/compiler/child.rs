//! The child process: limits itself, and compiles one component after the other.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    process::{ExitCode, exit},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

use super::{
    EngineTag,
    protocol::{Answer, Kind, Request},
};
use crate::{component::MAX_COMPONENT_BYTES, engine::wasmtime_config, guest};

/// The arguments or the input are not those of a host.
pub(super) const EXIT_MISUSED: u8 = 11;
/// The host cannot run the code of this child's engine.
pub(super) const EXIT_OTHER_ENGINE: u8 = 12;
/// The host ended, or does not need the code any more.
const EXIT_UNWANTED: u8 = 13;
/// The compiler panicked.
const EXIT_PANICKED: u8 = 101;

/// The maximum length of a message about a component.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// The compiler recurses into nested parts of a component.
const STACK_BYTES: usize = 32 << 20;

/// By how much its priority is lower than that of other processes, as `nice` counts. That of guests in the
/// background is lower still.
const NICE: i32 = 10;

/// A process whose memory has grown by more than this does not compile another component.
const MAX_RETAINED: u64 = 256 << 20;

/// Compiles components from standard input to standard output, as the child process of a host.
///
/// `arguments` are those that the host passed after [`Compiler::arguments`](super::Compiler). This lowers the
/// limits of the process permanently: it cannot open a file any more.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match parse(arguments).and_then(Ready::prepare) {
        Ok(ready) => ready.serve(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(EXIT_MISUSED)
        }
    }
}

/// Compiles components in this process, without limits: for programs that measure the compiler with known
/// components. A host never does it, since a component determines how much time and memory it takes.
///
/// # Errors
///
/// If a component cannot be compiled.
pub fn compile_here<'a>(components: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, String> {
    let engine = engine()?;
    let compile = |it| engine.precompile_component(it).map_err(|error| format!("{error:#}"));
    components.into_iter().map(compile).collect()
}

/// Returns an engine with which the host's engine shares compiled code.
fn engine() -> Result<wasmtime::Engine, String> {
    wasmtime::Engine::new(&wasmtime_config()).map_err(|error| format!("{error:#}"))
}

/// Returns the arguments of the child.
pub(super) fn arguments(engine_tag: &EngineTag) -> [String; 1] {
    [engine_tag.hex()]
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<String, String> {
    let arguments: Option<Vec<String>> = arguments.into_iter().map(|it| it.into_string().ok()).collect();
    let arguments = arguments.and_then(|it| <[String; 1]>::try_from(it).ok());
    let [engine_tag] =
        arguments.ok_or("the host runs this program to compile components; it is not for other uses")?;
    Ok(engine_tag)
}

/// A child that has opened all its files, and has limited itself.
struct Ready {
    engine: wasmtime::Engine,
    engine_tag: String,
    usage: Usage,
}

/// What the process uses.
struct Usage {
    /// `/proc/self/statm`, opened before the limit on open files.
    statm: File,
    /// Before the first component.
    before: Memory,
}

/// The memory of the process, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    address_space: u64,
    resident: u64,
}

/// Ends the process when it is dropped: its thread panicked.
struct EndsProcess;

// === impl Ready ===

impl Ready {
    /// Opens what the compilations need, then limits the process.
    fn prepare(engine_tag: String) -> Result<Self, String> {
        let engine = engine()?;
        let usage = Usage::new().map_err(|error| format!("/proc/self/statm cannot be read: {error}"))?;
        // If memory is short, the kernel should end this process and not the host. Some systems refuse this,
        // and in a Pod the kernel ends all processes of the container.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        // Other processes have priority.
        let _ = rustix::process::nice(NICE);
        // Open files stay open. No further file or socket can be opened, no file can be written.
        for resource in [Resource::Core, Resource::Fsize, Resource::Nofile] {
            let limit = Rlimit { current: Some(0), maximum: Some(0) };
            setrlimit(resource, limit).map_err(|error| format!("cannot limit {resource:?}: {error}"))?;
        }
        Ok(Self { engine, engine_tag, usage })
    }

    /// Compiles what the host sends, until it sends no more.
    fn serve(self) -> ExitCode {
        let Self { engine, engine_tag, usage } = self;
        if EngineTag::of(&engine).hex() != engine_tag {
            return ExitCode::from(EXIT_OTHER_ENGINE);
        }
        let (components, received) = mpsc::channel();
        let usage = Arc::new(usage);
        let measured = Arc::clone(&usage);
        let compiling = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || compile_each(&engine, &measured, &received));
        if let Err(error) = compiling {
            return misused(&error.to_string());
        }
        // This thread reads during a compilation, too. The host sends the next component only after it; it
        // closes the pipe when it ends, or does not need the code any more.
        loop {
            match next_component(&usage) {
                Ok(Some(component)) => {
                    if components.send(component).is_err() {
                        return ExitCode::from(EXIT_PANICKED);
                    }
                }
                Ok(None) => exit(EXIT_UNWANTED.into()),
                Err(error) => return misused(&error),
            }
        }
    }
}

fn misused(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(EXIT_MISUSED)
}

/// Reads a request, limits the process to what it allows, and reads its component.
fn next_component(usage: &Usage) -> Result<Option<Vec<u8>>, String> {
    let text = |error: io::Error| error.to_string();
    let mut stdin = io::stdin().lock();
    let Some(request) = Request::read(&mut stdin).map_err(text)? else { return Ok(None) };
    usage.limit(&request)?;
    let length = usize::try_from(request.length).unwrap_or(usize::MAX);
    if length > MAX_COMPONENT_BYTES {
        return Err("the component exceeds the maximum size".to_owned());
    }
    let mut component = vec![0; length];
    stdin.read_exact(&mut component).map_err(text)?;
    Ok(Some(component))
}

fn compile_each(engine: &wasmtime::Engine, usage: &Usage, components: &Receiver<Vec<u8>>) {
    let _ends = EndsProcess;
    for component in components {
        let compiled = engine.precompile_component(&component);
        drop(component);
        let answered = match compiled {
            Ok(code) => answer(Kind::Code, usage.may_go_on(), &code),
            Err(error) => {
                // The error may quote names of the component.
                let text = guest::text::line(format_args!("{error:#}"), MAX_MESSAGE_BYTES);
                answer(Kind::Refused, false, text.as_bytes())
            }
        };
        if let Err(error) = answered {
            eprint!("{error}");
            exit(EXIT_MISUSED.into());
        }
    }
}

fn answer(kind: Kind, goes_on: bool, bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    Answer { kind, goes_on, length }.write(&mut stdout)?;
    stdout.write_all(bytes)?;
    stdout.flush()
}

// === impl Usage ===

impl Usage {
    fn new() -> io::Result<Self> {
        let statm = File::open("/proc/self/statm")?;
        let before = memory(&statm)?;
        Ok(Self { statm, before })
    }

    /// Limits the process to what it uses already, and to what the request allows.
    fn limit(&self, request: &Request) -> Result<(), String> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime).tv_sec.cast_unsigned();
        let now = memory(&self.statm).map_err(|error| error.to_string())?;
        let retained = now.address_space.saturating_sub(self.before.address_space);
        let limits = [
            (Resource::Cpu, cpu.saturating_add(request.cpu_seconds)),
            (Resource::As, retained.saturating_add(request.memory)),
        ];
        for (resource, limit) in limits {
            let maximum = getrlimit(resource).maximum;
            let limit = Rlimit { current: Some(maximum.map_or(limit, |it| limit.min(it))), maximum };
            setrlimit(resource, limit).map_err(|error| format!("cannot limit {resource:?}: {error}"))?;
        }
        Ok(())
    }

    /// Returns whether the process is as good as a new one.
    fn may_go_on(&self) -> bool {
        let most = self.before.resident.saturating_add(MAX_RETAINED);
        memory(&self.statm).is_ok_and(|now| now.resident <= most)
    }
}

fn memory(statm: &File) -> io::Result<Memory> {
    let mut text = [0; 64];
    let n = statm.read_at(&mut text, 0)?;
    let mut pages = text[..n].split(|byte| *byte == b' ').map(|number| {
        let number = std::str::from_utf8(number).ok()?.parse::<u64>().ok()?;
        number.checked_mul(rustix::param::page_size() as u64)
    });
    match (pages.next().flatten(), pages.next().flatten()) {
        (Some(address_space), Some(resident)) => Ok(Memory { address_space, resident }),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

// === impl EndsProcess ===

impl Drop for EndsProcess {
    fn drop(&mut self) {
        // The other thread waits for its input.
        exit(EXIT_PANICKED.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_compiled_in_this_process_for_the_engine_of_a_host() {
        let empty = b"\0asm\x0d\0\x01\0".as_slice();
        let code = compile_here([empty, empty]).unwrap();
        let engine = crate::Engine::new(crate::EngineConfig::default()).unwrap();
        let of_host = engine.wasmtime().precompile_component(empty).unwrap();
        assert!(code.iter().all(|code| *code == of_host) && code.len() == 2);
        let error = compile_here([b"text".as_slice()]).unwrap_err();
        assert!(!error.is_empty());
    }
}
