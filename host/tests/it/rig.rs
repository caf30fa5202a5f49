//! Running the binary.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::{
    io::{BufRead, BufReader, Lines},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// What a command that ended has said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

/// A command that runs, and is killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    /// None once its standard output was closed.
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

/// The binary, in a folder of its own and without an environment.
pub(crate) fn oarlock(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Said {
    let output = oarlock(folder).args(args).output().expect("the binary starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    Said { code: output.status.code(), stderr: stderr.replace(&folder.display().to_string(), "FOLDER") }
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

    /// Waits for the next JSON line that tells of this event.
    pub(crate) fn until(&mut self, event: &str) -> serde_json::Value {
        self.until_any(&[event])
    }

    /// Waits for the next JSON line that tells of one of these events.
    pub(crate) fn until_any(&mut self, events: &[&str]) -> serde_json::Value {
        for line in self.lines.iter_mut().flatten() {
            let line: serde_json::Value = serde_json::from_str(&line.expect("text")).expect("a JSON line");
            if events.iter().any(|event| line["event"] == *event) {
                return line;
            }
        }
        panic!("ended before it told of {events:?}");
    }

    /// Waits for the next line that has this in it.
    pub(crate) fn until_text(&mut self, text: &str) -> String {
        let line =
            self.lines.iter_mut().flatten().map(|line| line.expect("text")).find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("ended before it said {text:?}"))
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn close_output(&mut self) {
        self.lines = None;
    }

    /// Waits until it ends by itself; returns the exit code.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.lines.iter_mut().flatten().for_each(drop);
        self.child.wait().expect("an end").code()
    }

    /// Asks it to end, and reads nothing of what it says; returns the exit code, none if it did not end in a minute.
    pub(crate) fn end_unread(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().expect("kill").success());
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        None
    }

    /// Asks it to end by this signal; returns the exit code and the lines that came until then.
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
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
