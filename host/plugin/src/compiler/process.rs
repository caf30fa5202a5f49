//! The parent's side: starts the child, sends it the component, and converts its exit status into a result.

use std::{
    fs::File,
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, absolute},
    process::{ExitStatus, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, Command},
};

use super::{
    Compiler, EngineTag, ProcessLimits,
    child::{self, EXIT_MISUSED, EXIT_OTHER_ENGINE, EXIT_REFUSED},
};
use crate::component::Error;

/// The maximum length of the child's output that is read; the rest is ignored.
const MAX_OUTPUT: usize = 8 << 10;

/// The maximum length of the child's output in an error.
const MAX_SHOWN: usize = 1 << 10;

/// Signals whose numbers are the same on all supported systems.
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Compiles a component into an empty file.
///
/// Dropping the future kills the child. When this function returns, the child has ended.
pub(crate) async fn compile(
    compiler: &Compiler,
    engine_tag: EngineTag,
    component: &Arc<[u8]>,
    code: File,
) -> Result<(), Error> {
    let limits = compiler.allowance.of(component.len());
    let program = compiler.program();
    let program = absolute(&program).unwrap_or(program);
    let mut child = Command::new(&program)
        .args(&compiler.arguments)
        .args(child::arguments(&limits, &engine_tag))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::from(code))
        .stderr(Stdio::piped())
        // Ctrl-C in a terminal must reach the host only, which ends its children itself.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| not_started(&program, &error))?;
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let work = async {
        // The child ends when its input is closed, so the pipe stays open until the child has ended.
        let (_open, output, status) = tokio::join!(send(stdin, component), read_output(stderr), child.wait());
        status.map(|status| (status, output))
    };
    let ended = tokio::select! {
        biased;
        ended = work => Some(ended),
        () = wall_time(limits.wall) => None,
    };
    match ended {
        Some(Ok((status, output))) => outcome(status, &output, &limits),
        Some(Err(error)) => Err(Error::Compiler(format!("its exit status is unknown: {error}"))),
        None => {
            // Kills the child and waits for its end.
            let _ = child.kill().await;
            Err(Error::OverAllowance { what: "time", allowance: seconds(limits.wall), said: String::new() })
        }
    }
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

/// Sends the component. Errors are ignored: a child that ends early writes the reason to its standard error.
async fn send(stdin: Option<ChildStdin>, component: &[u8]) -> Option<ChildStdin> {
    let mut stdin = stdin?;
    let length = u64::try_from(component.len()).unwrap_or(u64::MAX);
    stdin.write_all(&length.to_le_bytes()).await.ok()?;
    stdin.write_all(component).await.ok()?;
    Some(stdin)
}

/// Reads the child's standard error to its end.
async fn read_output(stderr: Option<impl AsyncRead + Unpin>) -> String {
    let Some(stderr) = stderr else { return String::new() };
    let mut output = Vec::new();
    let mut stderr = stderr.take(MAX_OUTPUT as u64);
    // Output that cannot be read is left out.
    let _ = stderr.read_to_end(&mut output).await;
    let _ = tokio::io::copy(&mut stderr.into_inner(), &mut tokio::io::sink()).await;
    escaped(&String::from_utf8_lossy(&output))
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

fn outcome(status: ExitStatus, output: &str, limits: &ProcessLimits) -> Result<(), Error> {
    if status.success() {
        return Ok(());
    }
    let over = |what, allowance| Err(Error::OverAllowance { what, allowance, said: output.to_owned() });
    let memory = || format!("{} MiB", limits.memory >> 20);
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(EXIT_REFUSED) => Err(Error::Compile(output.to_owned())),
        (Some(code), _) if code == i32::from(EXIT_OTHER_ENGINE) => Err(Error::Compiler(
            "it has another version than the host: build or install both together".to_owned(),
        )),
        (Some(code), _) if code == i32::from(EXIT_MISUSED) => Err(Error::Compiler(output.to_owned())),
        (_, Some(SIGXCPU)) => over("CPU time", format!("{} s", limits.cpu_seconds)),
        (_, Some(SIGXFSZ)) => over("compiled code", format!("{} MiB", limits.code >> 20)),
        // A program in Rust ends this way after a failed allocation or a stack overflow.
        (_, Some(SIGABRT | SIGSEGV)) => over("memory", memory()),
        (_, Some(SIGKILL)) => Err(Error::CompilerDied {
            status: "killed, probably since memory is short".to_owned(),
            said: output.to_owned(),
        }),
        _ => Err(Error::CompilerDied { status: status.to_string(), said: output.to_owned() }),
    }
}

fn not_started(program: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; build it with `cargo build -p oarlock-plugin --bin oarlock-compiler`",
        _ => "",
    };
    Error::Compiler(format!("{} cannot be run: {error}{hint}", program.display()))
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
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
