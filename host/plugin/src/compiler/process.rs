//! The host's side: starts compilers, sends them components, and converts what they answer, or how they end,
//! into a result.

use std::{
    convert::Infallible,
    io::{self, PipeReader, PipeWriter, Read, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, absolute},
    process::{ExitStatus, Stdio},
    sync::mpsc,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStderr, Command},
};

use super::{
    Compiler, EngineTag, ProcessLimits,
    child::{self, EXIT_MISUSED, EXIT_OTHER_ENGINE, MAX_MESSAGE_BYTES},
    protocol::{Answer, Kind, Request},
};
use crate::component::Error;

/// The maximum length of the child's output that is kept; the rest is read and dropped.
const MAX_OUTPUT: usize = 8 << 10;

/// The maximum length of the child's output in an error.
const MAX_SHOWN: usize = 1 << 10;

/// The largest component that a process compiles after or before others. Starting a process takes as long as
/// compiling a few hundred kilobytes.
const MAX_SHARED: usize = 2 << 20;

/// Signals whose numbers are the same on all supported systems.
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;

/// A compiler's process between two components. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pipes: Pipes,
    output: Output,
}

#[derive(Debug)]
struct Pipes {
    stdin: PipeWriter,
    stdout: PipeReader,
}

/// The child's standard error. It is read while the child works, which would wait for a reader otherwise.
#[derive(Debug)]
struct Output {
    from: ChildStderr,
    /// The first bytes about the present component.
    kept: Vec<u8>,
}

/// The end of a compilation.
enum Ended<T> {
    /// The code was received.
    Code {
        received: T,
        /// The process can compile another component.
        goes_on: bool,
    },
    Refused(String),
    TooMuchCode,
    /// The code could not be received.
    NotReceived(io::Error),
    /// The process ended without an answer.
    Died,
}

/// Compiles a component. `receive` gets the length of the code and reads the code.
///
/// Returns what `receive` returned, and the process if it can compile another component. Takes an idle
/// process, if there is one, for a small component. Dropping the future kills the process. After an error,
/// the process has ended.
pub(crate) async fn compile<T: Send + 'static>(
    compiler: &Compiler,
    engine_tag: EngineTag,
    component: &Bytes,
    idle: impl FnOnce() -> Option<Process>,
    receive: impl FnOnce(u64, &mut dyn Read) -> io::Result<T> + Send + 'static,
    broken: impl FnOnce(io::Error) -> Error,
) -> Result<(T, Option<Process>), Error> {
    let limits = compiler.limits(component.len());
    // The memory that a process retains is beyond the limits, whose sum is bounded with a total.
    let is_shared = component.len() <= MAX_SHARED && compiler.total_memory.is_none();
    let idle = if is_shared { idle() } else { None };
    // It may have been killed meanwhile.
    let idle = idle.and_then(|mut it| matches!(it.child.try_wait(), Ok(None)).then_some(it));
    let Process { mut child, mut pipes, mut output } = match idle {
        Some(process) => process,
        None => start(compiler, engine_tag)?,
    };
    output.kept.clear();
    let component = component.clone();
    let work = async {
        let job = tokio::task::spawn_blocking(move || {
            let ended = pipes.compile(&limits, &component, receive);
            (pipes, ended)
        });
        let ended = tokio::select! {
            biased;
            ended = job => ended,
            never = output.read() => match never {},
        };
        let (pipes, ended) = ended.map_err(|error| Error::Thread(error.to_string()))?;
        match ended {
            Ended::Died => {
                output.read_to_end().await;
                let status = child.wait().await;
                let status =
                    status.map_err(|error| Error::Compiler(format!("its exit status is unknown: {error}")));
                Err(outcome(status?, &output.text(), &limits))
            }
            Ended::Code { received, goes_on } => Ok((received, goes_on.then_some(pipes))),
            Ended::Refused(text) => Err(Error::Compile(text)),
            Ended::TooMuchCode => Err(over("compiled code", format!("{} MiB", limits.code >> 20), "")),
            Ended::NotReceived(error) => Err(broken(error)),
        }
    };
    let ended = tokio::select! {
        biased;
        ended = work => Some(ended),
        () = wall_time(limits.wall) => None,
    };
    match ended {
        Some(Ok((received, pipes))) => {
            let process = pipes.filter(|_| is_shared).map(|pipes| Process { child, pipes, output });
            Ok((received, process))
        }
        failed => {
            // Kills the child and waits for its end.
            let _ = child.kill().await;
            match failed {
                Some(Err(error)) => Err(error),
                _ => Err(over("time", format!("{} s", limits.wall.as_secs()), &output.text())),
            }
        }
    }
}

fn start(compiler: &Compiler, engine_tag: EngineTag) -> Result<Process, Error> {
    let program = compiler.program();
    let program = absolute(&program).unwrap_or(program);
    let started = || {
        let ((child_stdin, stdin), (stdout, child_stdout)) = (io::pipe()?, io::pipe()?);
        let mut child = Command::new(&program)
            .args(&compiler.arguments)
            .args(child::arguments(&engine_tag))
            .env_clear()
            .current_dir("/")
            .stdin(child_stdin)
            .stdout(child_stdout)
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal must reach the host only, which ends its children itself.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let from = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let output = Output { from, kept: Vec::new() };
        Ok(Process { child, pipes: Pipes { stdin, stdout }, output })
    };
    started().map_err(|error| not_started(&program, &error))
}

/// Waits for real time, which tokio's paused clock of a test is not. The thread ends with the future.
async fn wall_time(limit: Duration) {
    let (_alive, ended) = mpsc::channel::<()>();
    let waiting = tokio::task::spawn_blocking(move || {
        // The sender never sends; it is dropped with the future.
        let _ = ended.recv_timeout(limit);
    });
    if waiting.await.is_err() {
        // The runtime is shutting down.
        std::future::pending::<()>().await;
    }
}

// === impl Pipes ===

impl Pipes {
    /// Sends a component and receives its code. Blocks until then, or until the process has ended.
    fn compile<T>(
        &mut self,
        limits: &ProcessLimits,
        component: &[u8],
        receive: impl FnOnce(u64, &mut dyn Read) -> io::Result<T>,
    ) -> Ended<T> {
        // Errors are ignored: a child that ends early writes the reason to its standard error.
        let _ =
            Request::new(limits, component).write(&self.stdin).and_then(|()| self.stdin.write_all(component));
        let Ok(Answer { kind, goes_on, length }) = Answer::read(&self.stdout) else {
            return Ended::Died;
        };
        let mut answer = (&self.stdout).take(length);
        match kind {
            Kind::Refused => {
                let mut text = Vec::new();
                // A text that cannot be read is left out.
                let _ = answer.take(MAX_MESSAGE_BYTES as u64).read_to_end(&mut text);
                Ended::Refused(escaped(&String::from_utf8_lossy(&text)))
            }
            Kind::Code if length > limits.code => Ended::TooMuchCode,
            Kind::Code => match receive(length, &mut answer) {
                Ok(received) => Ended::Code { received, goes_on },
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ended::Died,
                Err(error) => Ended::NotReceived(error),
            },
        }
    }
}

// === impl Output ===

impl Output {
    /// Reads what the child writes, for as long as this is polled.
    async fn read(&mut self) -> Infallible {
        self.read_to_end().await;
        std::future::pending().await
    }

    /// Reads to the end, and keeps the beginning. Cancel-safe.
    async fn read_to_end(&mut self) {
        let mut buffer = [0; 4 << 10];
        // Output that cannot be read is left out.
        while let Ok(n @ 1..) = self.from.read(&mut buffer).await {
            let room = MAX_OUTPUT.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&buffer[..n.min(room)]);
        }
    }

    fn text(&self) -> String {
        escaped(&String::from_utf8_lossy(&self.kept))
    }
}

/// Returns the child's output on one line, escaped: the component may have influenced it.
fn escaped(output: &str) -> String {
    // A panic of Rust ends with the advice to set an environment variable.
    let lines = output.trim().lines().filter(|line| !line.starts_with("note: run with"));
    let line = lines.collect::<Vec<_>>().join(" ");
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text.truncate(text.floor_char_boundary(MAX_SHOWN));
    text
}

/// Returns why a process ended without an answer.
fn outcome(status: ExitStatus, output: &str, limits: &ProcessLimits) -> Error {
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(EXIT_OTHER_ENGINE) => {
            Error::Compiler("it has another version than the host: build or install both together".to_owned())
        }
        (Some(code), _) if code == i32::from(EXIT_MISUSED) => Error::Compiler(output.to_owned()),
        (_, Some(SIGXCPU)) => over("CPU time", format!("{} s", limits.cpu_seconds), output),
        // A program in Rust ends this way after a failed allocation or a stack overflow.
        (_, Some(SIGABRT | SIGSEGV)) => {
            let mib = limits.memory >> 20;
            match limits.is_all_memory {
                true => Error::OverTotalMemory { mib, said: output.to_owned() },
                false => over("memory", format!("{mib} MiB"), output),
            }
        }
        (_, Some(SIGKILL)) => Error::CompilerDied {
            status: "killed, probably since memory is short".to_owned(),
            said: output.to_owned(),
        },
        _ => Error::CompilerDied { status: status.to_string(), said: output.to_owned() },
    }
}

fn over(what: &'static str, allowance: String, said: &str) -> Error {
    Error::OverAllowance { what, allowance, said: said.to_owned() }
}

fn not_started(program: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; build it with `cargo build -p oarlock-plugin --bin oarlock-compiler`",
        _ => "",
    };
    Error::Compiler(format!("{} cannot be run: {error}{hint}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_compiler_is_one_escaped_line() {
        assert_eq!(escaped("thread panicked\nat \u{1b}[31mhere\r\n"), r"thread panicked at \u{1b}[31mhere");
        assert_eq!(escaped(&"x".repeat(MAX_OUTPUT)).len(), MAX_SHOWN);
    }
}
