//! Runs the binary for tests.
#![expect(clippy::expect_used, reason = "a test that cannot continue fails")]

use std::{
    io::{BufRead, BufReader, Lines},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use oarlock_wait_until::{LIMIT, wait_until_blocking};

/// The result of a command.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

/// A running command. Dropping it kills the process.
pub(crate) struct Running {
    child: Child,
    /// `None` if its standard output was closed or goes elsewhere.
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

/// Returns a command of the binary, in this folder and without an environment.
pub(crate) fn oarlock(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Finished {
    let output = oarlock(folder).args(args).output().expect("the binary starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    Finished { code: output.status.code(), stderr: stderr.replace(&folder.display().to_string(), "FOLDER") }
}

/// Writes a kubeconfig with this token for a server and returns its path.
pub(crate) fn kubeconfig(folder: &Path, good: &str, token: &str) -> PathBuf {
    let mut text = String::new();
    for line in good.lines() {
        match line.split_once("token:") {
            Some((before, _)) => text.push_str(&format!("{before}token: {token}\n")),
            None => text.push_str(&format!("{line}\n")),
        }
    }
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text).expect("a writable folder");
    path
}

// === impl Running ===

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("a pipe");
        Self { child, lines: Some(BufReader::new(stdout).lines()) }
    }

    /// Starts a command whose standard output goes elsewhere.
    pub(crate) fn start_redirected(mut command: Command) -> Self {
        Self { child: command.spawn().expect("the binary starts"), lines: None }
    }

    /// Waits for the next JSON line of this event.
    pub(crate) fn until(&mut self, event: &str) -> serde_json::Value {
        self.until_any(&[event])
    }

    /// Waits for the next JSON line of one of these events.
    pub(crate) fn until_any(&mut self, events: &[&str]) -> serde_json::Value {
        for line in self.lines.iter_mut().flatten() {
            let line: serde_json::Value = serde_json::from_str(&line.expect("text")).expect("a JSON line");
            if events.iter().any(|event| line["event"] == *event) {
                return line;
            }
        }
        panic!("the process ended without {events:?}");
    }

    /// Waits for the next line that contains this text.
    pub(crate) fn until_text(&mut self, text: &str) -> String {
        let line =
            self.lines.iter_mut().flatten().map(|line| line.expect("text")).find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("the process ended without a line with {text:?}"))
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn close_output(&mut self) {
        self.lines = None;
    }

    /// Waits until it ends by itself, and returns the exit code.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.lines.iter_mut().flatten().for_each(drop);
        self.child.wait().expect("an end").code()
    }

    /// Sends SIGTERM without reading the output, and returns the exit code.
    pub(crate) fn end_unread(self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().expect("kill").success());
        self.code_unread()
    }

    /// Waits until it ends by itself without reading the output, and returns the exit code.
    pub(crate) fn code_unread(mut self) -> Option<i32> {
        wait_until_blocking("the end of the process", LIMIT, || {
            self.child.try_wait().expect("a child").map(|status| status.code()).ok_or("it is still running")
        })
    }

    /// Sends a signal. Returns the exit code and the remaining lines of output.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, Vec<String>) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", signal, &pid]).status().expect("kill");
        assert!(killed.success());
        let rest = self.lines.iter_mut().flatten().map(|line| line.expect("text")).collect();
        (self.child.wait().expect("an end").code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if the test passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
