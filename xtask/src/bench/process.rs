//! Starts programs on a core of their own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::toolchain::command;

/// The core of the process under test, and that of what it talks to.
#[derive(Clone, Copy)]
pub(crate) enum Core {
    Subject,
    Server,
}

/// A program that runs until this is dropped, and has said where it is.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Its first line.
    pub(crate) said: Value,
}

/// Returns the command that runs a program on a core; anywhere on a machine without `taskset` or with one core only.
pub(crate) fn pinned(program: &Path, core: Core) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 || !command::exists("taskset") {
        return Command::new(program);
    }
    let number = match core {
        Core::Subject => 0,
        Core::Server => 1,
    };
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", &number.to_string()]).arg(program);
    taskset
}

/// Runs a program to its end and returns the last line that it printed, which is JSON.
pub(crate) fn last_line(command: &mut Command) -> Result<Value> {
    let output = command::output(command)?;
    let line = output.lines().last().context("a subject printed nothing")?;
    serde_json::from_str(line).with_context(|| format!("a subject printed no JSON: {line}"))
}

// === impl Running ===

impl Running {
    /// Starts it, and waits for its first line, which is JSON.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut running = Self { child, stdout, said: Value::Null };
        running.said = running.next_line().with_context(|| format!("{command:?} did not begin"))?;
        Ok(running)
    }

    /// Waits for its next line, which is JSON.
    pub(crate) fn next_line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("expected a line of JSON, read {line:?}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What ends in an orderly way when its stdin closes may do so.
        drop(self.child.stdin.take());
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
