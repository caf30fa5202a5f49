//! The mount, network and process namespaces of one node, and commands in them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::wait_until;

/// Namespaces, and the process that holds them. Dropping them ends every process in them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    unshare: Child,
    /// The first process, as processes outside know it.
    init: u32,
}

// === impl Namespaces ===

impl Namespaces {
    /// Makes the namespaces. Their first process ends with this process: it reads a pipe of which nothing but
    /// this process has the other end.
    pub(crate) fn create(init: &Path, log: File) -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "--"]).arg(init);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.try_clone()?);
        // A Ctrl-C in the terminal goes to every process of the foreground group. The node ends in order.
        command.process_group(0);
        let mut unshare = command.spawn().context("cannot run unshare")?;
        let stdout = unshare.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line != "started\n" {
            let status = unshare.wait()?;
            anyhow::bail!("the namespaces of a node cannot be made: unshare ended with {status}");
        }
        let init = child_of(unshare.id()).context("the first process of the namespaces has ended")?;
        Ok(Self { unshare, init })
    }

    /// Returns a command that runs a program in the namespaces.
    pub(crate) fn enter(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--net", "--pid", "--target", &self.init.to_string(), "--"]).arg(program);
        command.process_group(0).stdin(Stdio::null()).current_dir("/");
        command
    }

    /// Returns the file that names the network namespace.
    pub(crate) fn network(&self) -> Result<File> {
        let path = format!("/proc/{}/ns/net", self.init);
        File::open(&path).with_context(|| format!("cannot open {path}"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        drop(self.unshare.stdin.take());
        // The kernel ends every process of the namespace before its first process has ended.
        let _ = self.unshare.wait();
    }
}

/// Returns the only child of a process, such as what `nsenter` has started.
pub(crate) fn child_of(parent: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        (parent_in(&stat)? == parent).then_some(pid)
    })
}

/// Returns the parent in a line of `/proc/PID/stat`: `PID (NAME) STATE PARENT …`, where NAME may contain
/// anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// Kills the process that a command of [`Namespaces::enter`] runs, and waits until the command has ended.
pub(crate) fn kill(entered: &mut Child) -> Result<()> {
    wait_until("the end of a killed process", || {
        if let Some(pid) = child_of(entered.id())
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(rustix::process::Pid::from_raw)
        {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        match entered.try_wait() {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("it runs".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Runs a command to its end, and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{shown}` failed ({}): {}", output.status, stderr.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_behind_a_hostile_name() {
        assert_eq!(parent_in("31 (a) S 7) S 42 31 31 0"), Some(42));
        assert_eq!(parent_in("31"), None);
    }

    #[test]
    fn the_child_of_a_process_is_found() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut parent = Command::new("sh").args(["-c", "sleep 60; true"]).spawn().unwrap();
        let found = wait_until("the shell's child", || child_of(parent.id()).ok_or("none")).unwrap();
        assert_ne!(found, child.id());
        kill(&mut parent).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
