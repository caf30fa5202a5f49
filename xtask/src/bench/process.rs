//! Starts programs on separate cores.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::toolchain::command;

/// The core of the measured process, and the core of its server.
#[derive(Clone, Copy)]
pub(crate) enum Core {
    Subject,
    Server,
}

impl Core {
    /// Returns the CPU as `taskset` reads it: `None` where programs run anywhere.
    pub(crate) fn cpu(self) -> Option<&'static str> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (cores >= 2 && command::exists("taskset")).then_some(match self {
            Self::Subject => "0",
            Self::Server => "1",
        })
    }
}

/// A running program that has reported its address. Dropping it ends the program.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The first line of its output.
    pub(crate) first_line: Value,
}

/// Returns the command that runs a program on a core. Without `taskset`, or with one core, the program runs
/// anywhere.
pub(crate) fn pinned(program: &Path, core: Core) -> Command {
    let Some(cpu) = core.cpu() else { return Command::new(program) };
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", cpu]).arg(program);
    taskset
}

/// Runs a program to its end, and returns the last line of its output, which is JSON.
pub(crate) fn last_line(command: &mut Command) -> Result<Value> {
    let output = command::output(command)?;
    let line = output.lines().last().context("the program printed nothing")?;
    serde_json::from_str(line).with_context(|| format!("the program did not print JSON: {line}"))
}

// === impl Running ===

impl Running {
    /// Starts a program, and waits for its first line, which is JSON.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut running = Self { child, stdout, first_line: Value::Null };
        running.first_line =
            running.next_line().with_context(|| format!("{command:?} did not report its start"))?;
        Ok(running)
    }

    /// Waits for its next line, which is JSON.
    pub(crate) fn next_line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("expected a line of JSON, got {line:?}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Closing stdin lets the program end in an orderly way.
        drop(self.child.stdin.take());
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
