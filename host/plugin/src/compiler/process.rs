//! The parent's side: starts the child, hands it the component, and makes of its end a file of code or an error.

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
    Compiler, EngineTag, Limits,
    child::{self, EXIT_MISUSED, EXIT_OTHER_ENGINE, EXIT_REFUSED},
};
use crate::component::Error;

/// How much of what the child says is kept; the rest is drained.
const MAX_SAID: usize = 8 << 10;

/// How much of it is repeated.
const MAX_REPEATED: usize = 1 << 10;

/// Signals whose numbers are the same on all systems that matter.
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Compiles a component into an empty file.
///
/// Dropping the future kills the child. When this returns, it is gone.
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
        // Ctrl-C is for the host, which ends its children by itself.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| not_started(&program, &error))?;
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let work = async {
        // The child takes the end of its input for the end of the host: the pipe stays open until it has ended.
        let (_open, said, status) = tokio::join!(hand_over(stdin, component), listen(stderr), child.wait());
        status.map(|status| (status, said))
    };
    let ended = tokio::select! {
        biased;
        ended = work => Some(ended),
        () = wall_time(limits.wall) => None,
    };
    match ended {
        Some(Ok((status, said))) => outcome(status, &said, &limits),
        Some(Err(error)) => Err(Error::Compiler(format!("how it ended is unknown: {error}"))),
        None => {
            // Kills and reaps it.
            let _ = child.kill().await;
            Err(Error::OverAllowance { what: "time", allowance: seconds(limits.wall), said: String::new() })
        }
    }
}

/// Waits by the clock on the wall, which is the child's; tokio's may be a test's. The thread ends with the future.
async fn wall_time(limit: Duration) {
    let (_alive, ended) = mpsc::channel::<()>();
    let waiting = tokio::task::spawn_blocking(move || {
        // Nothing is ever sent.
        let _ = ended.recv_timeout(limit);
    });
    if waiting.await.is_err() {
        // The runtime ends.
        std::future::pending::<()>().await;
    }
}

/// Sends the component. A child that ends before it has read all says why by itself.
async fn hand_over(stdin: Option<ChildStdin>, component: &[u8]) -> Option<ChildStdin> {
    let mut stdin = stdin?;
    let length = u64::try_from(component.len()).unwrap_or(u64::MAX);
    stdin.write_all(&length.to_le_bytes()).await.ok()?;
    stdin.write_all(component).await.ok()?;
    Some(stdin)
}

/// Reads what the child says until it says no more.
async fn listen(stderr: Option<impl AsyncRead + Unpin>) -> String {
    let Some(stderr) = stderr else { return String::new() };
    let mut said = Vec::new();
    let mut stderr = stderr.take(MAX_SAID as u64);
    // What cannot be read is not repeated.
    let _ = stderr.read_to_end(&mut said).await;
    let _ = tokio::io::copy(&mut stderr.into_inner(), &mut tokio::io::sink()).await;
    repeatable(&String::from_utf8_lossy(&said))
}

/// What a component had a hand in, safe for terminals and logs.
fn repeatable(said: &str) -> String {
    // Rust's panics end in advice to set an environment variable.
    let lines = said.trim().lines().filter(|line| !line.starts_with("note: run with"));
    let line = lines.collect::<Vec<_>>().join(" ");
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text.truncate(text.floor_char_boundary(MAX_REPEATED));
    text
}

fn outcome(status: ExitStatus, said: &str, limits: &Limits) -> Result<(), Error> {
    if status.success() {
        return Ok(());
    }
    let over = |what, allowance| Err(Error::OverAllowance { what, allowance, said: said.to_owned() });
    let memory = || format!("{} MiB", limits.memory >> 20);
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(EXIT_REFUSED) => Err(Error::Compile(said.to_owned())),
        (Some(code), _) if code == i32::from(EXIT_OTHER_ENGINE) => Err(Error::Compiler(
            "it is of another version than the host: build or install both together".to_owned(),
        )),
        (Some(code), _) if code == i32::from(EXIT_MISUSED) => Err(Error::Compiler(said.to_owned())),
        (_, Some(SIGXCPU)) => over("CPU time", format!("{} s", limits.cpu_seconds)),
        (_, Some(SIGXFSZ)) => over("compiled code", format!("{} MiB", limits.code >> 20)),
        // Rust's answer to an allocation that fails, and to a stack that overflows.
        (_, Some(SIGABRT | SIGSEGV)) => over("memory", memory()),
        (_, Some(SIGKILL)) => Err(Error::CompilerDied {
            status: "killed, as when memory is short".to_owned(),
            said: said.to_owned(),
        }),
        _ => Err(Error::CompilerDied { status: status.to_string(), said: said.to_owned() }),
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
    fn what_a_compiler_says_is_one_line_without_escapes() {
        assert_eq!(
            repeatable("thread panicked\nat \u{1b}[31mhere\r\n"),
            r"thread panicked at \u{1b}[31mhere"
        );
        assert_eq!(repeatable(&"x".repeat(MAX_SAID)).len(), MAX_REPEATED);
    }
}
