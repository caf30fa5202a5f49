//! Runs other programs, and shows their output only if they fail.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The number of lines that are shown of a failed program's output.
const SHOWN_LINES: usize = 60;

/// Runs a command to its end, and returns its standard output. The error contains the end of all its output.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{shown}`"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let text = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    bail!("`{shown}` failed ({}):\n{}", output.status, last_lines(&text));
}

/// Runs a compiler to its end, and returns what it wrote to standard error, such as warnings. The error has
/// the beginning of its output, since the first message of a compiler is the one to read.
pub fn compile(compiler: &str, command: &mut Command) -> Result<String> {
    let shown = show(command);
    // Some compilers are written in Rust, and would print their own stack.
    command.env("RUST_BACKTRACE", "0").env_remove("RUST_LIB_BACKTRACE");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{shown}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(stderr);
    }
    let text = format!("{}{stderr}", String::from_utf8_lossy(&output.stdout));
    bail!("{compiler} failed ({}):\n{}", output.status, first_lines(&text));
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs a command, and kills it if it takes longer than `limit`.
pub fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    let shown = show(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    let stderr = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut text));
        text
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("`{shown}` did not end within {} s", limit.as_secs());
        }
        thread::park_timeout(Duration::from_millis(50));
    };
    if status.success() {
        return Ok(());
    }
    let text = reader.join().unwrap_or_default();
    bail!("`{shown}` failed ({status}):\n{}", last_lines(&text));
}

/// Returns whether this program can be started.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    let mut shown = lines[..lines.len().min(SHOWN_LINES)].join("\n");
    if lines.len() > SHOWN_LINES {
        shown += &format!("\n… {} more lines", lines.len() - SHOWN_LINES);
    }
    shown
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_messages_of_a_compiler_and_the_last_of_other_programs_are_shown() {
        let shell = |script: &str| {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script);
            shell
        };
        let failing = "for i in $(seq 100); do echo line $i >&2; done; exit 3";
        let error = compile("the compiler", &mut shell(failing)).unwrap_err().to_string();
        assert!(error.starts_with("the compiler failed (exit status: 3):\nline 1\n"), "{error}");
        assert!(error.ends_with("line 60\n… 40 more lines"), "{error}");
        let error = run(&mut shell(failing)).unwrap_err().to_string();
        assert!(error.ends_with("line 99\nline 100"), "{error}");
        assert_eq!(compile("the compiler", &mut shell("echo warning >&2")).unwrap(), "warning\n");
    }
}
