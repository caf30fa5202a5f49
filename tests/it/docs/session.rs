//! Runs the commands of a page, in an empty folder, as a reader would in his terminals.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, ensure};
use oarlock_tests::host_process::binary;
use oarlock_tests::wait::wait_until;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::page::{Block, end_of};

/// A reader's terminals. What runs in the background is killed when it is dropped.
pub(super) struct Session {
    folder: TempDir,
    /// The folder with `oarlock` alone, for the search path.
    programs: TempDir,
    background: Vec<Child>,
    /// What was printed since the last block that compared it.
    printed: Arc<Mutex<String>>,
}

/// Keeps the folder and the variables of a shell for the next one.
const KEEP: &str = "pwd > \"$KEPT/folder\"; export -p > \"$KEPT/variables\"";

// === impl Session ===

impl Session {
    pub(super) fn begin() -> anyhow::Result<Self> {
        let programs = tempfile::tempdir()?;
        std::os::unix::fs::symlink(fs::canonicalize(binary("oarlock")?)?, programs.path().join("oarlock"))?;
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("home"))?;
        fs::create_dir(folder.path().join("kept"))?;
        fs::write(folder.path().join("kept/variables"), "")?;
        fs::write(
            folder.path().join("kept/folder"),
            folder.path().join("home").to_string_lossy().as_bytes(),
        )?;
        Ok(Self { folder, programs, background: Vec::new(), printed: Arc::default() })
    }

    /// Runs a block to its end.
    pub(super) fn run(&mut self, block: &Block, must_succeed: bool) -> anyhow::Result<()> {
        let script = match must_succeed {
            true => format!("{}\n{KEEP}", block.text),
            false => block.text.clone(),
        };
        let output = self.shell(&script).stdin(Stdio::null()).output().context("cannot run bash")?;
        let printed =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success() == must_succeed, "{}: {}\n{printed}", block.place, output.status);
        self.printed.lock().push_str(&printed);
        Ok(())
    }

    /// Starts a block of one command.
    pub(super) fn start(&mut self, block: &Block) -> anyhow::Result<()> {
        let mut shell = self.shell(&format!("exec {}", block.text));
        let mut child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        self.read(child.stdout.take().context("stdout is piped")?);
        self.read(child.stderr.take().context("stderr is piped")?);
        self.background.push(child);
        Ok(())
    }

    fn read(&self, output: impl Read + Send + 'static) {
        let printed = Arc::clone(&self.printed);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let mut printed = printed.lock();
                printed.push_str(&line);
                printed.push('\n');
            }
        });
    }

    /// Waits until the commands have printed the lines of a block, and forgets what was printed up to there.
    pub(super) async fn printed(&self, block: &Block) -> anyhow::Result<()> {
        wait_until(&format!("the output of {}", block.place), async || {
            let mut printed = self.printed.lock();
            match end_of(&block.text, &printed) {
                Ok(end) => {
                    printed.drain(..end);
                    Ok(())
                }
                Err(line) => Err(format!("{line:?} is not in, or not in this order:\n{printed}")),
            }
        })
        .await
    }

    fn shell(&self, script: &str) -> Command {
        let mut bash = Command::new("bash");
        let before = "set -euo pipefail; . \"$KEPT/variables\"; cd \"$(cat \"$KEPT/folder\")\"";
        bash.args(["-c", &format!("{before}\n{script}")]);
        let kept: PathBuf = self.folder.path().join("kept");
        bash.env("KEPT", kept).env("PATH", self.path()).env_remove("KUBECONFIG");
        // The host of this session is the only one that its commands find.
        bash.env("XDG_STATE_HOME", self.folder.path().join("state"));
        bash
    }

    /// Returns the search path, with `oarlock` first.
    fn path(&self) -> OsString {
        let mut path = self.programs.path().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        path
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in &mut self.background {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
