//! The binary `oarlock` as a process, and its output. The variable `OARLOCK_TESTS_SHOW` has the output shown
//! as it comes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::received::ReceivedNotification;
use crate::wait::WAIT_LIMIT;

/// The environment variable that names another binary of the host than the one beside the test.
const HOST: &str = "OARLOCK_TESTS_HOST";

/// A running host whose standard output is one JSON object a line. Killed when dropped.
#[derive(Debug)]
pub struct HostProcess {
    child: Child,
    printed: watch::Receiver<Arc<Printed>>,
    /// Owned by the readers, so that the channel closes when they end.
    sender: Weak<watch::Sender<Arc<Printed>>>,
    readers: [JoinHandle<()>; 2],
    /// What the host keeps, unless a test names a folder with `--state-dir`.
    _state: TempDir,
}

/// The output of a host so far.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// Lines of standard output, without the notifications that guests report.
    pub lines: Vec<Arc<Value>>,
    /// The notifications that guests report.
    pub notifications: Vec<Arc<Reported>>,
    /// Lines of standard error.
    pub errors: Vec<String>,
}

/// A notification that a guest reported.
#[derive(Clone, Debug)]
pub struct Reported {
    /// The notification.
    pub notification: ReceivedNotification,
    /// When the line was read.
    pub read_at: Instant,
}

/// Returns the path of a binary that was built beside the one that runs, or of the host that the environment
/// names.
///
/// # Errors
///
/// When it is not there.
pub fn binary(name: &str) -> anyhow::Result<PathBuf> {
    if name == "oarlock"
        && let Some(host) = std::env::var_os(HOST)
    {
        return Ok(host.into());
    }
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(2);
    match folders.map(|folder| folder.join(name)).find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("{name} is not built beside {}: run `cargo build --workspace --bins`", own.display()),
    }
}

/// Returns the checkout's root.
#[must_use]
pub fn checkout() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

// === impl HostProcess ===

impl HostProcess {
    /// Starts `oarlock` with these arguments and `--output json`.
    ///
    /// # Errors
    ///
    /// When the binary is missing or cannot be started.
    pub fn start<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> anyhow::Result<Self> {
        Self::start_program(Command::new(binary("oarlock")?), arguments)
    }

    /// Starts this program with these arguments and `--output json`.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start_program<A: AsRef<std::ffi::OsStr>>(
        mut command: Command,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<Self> {
        // A host must not go back to a version that another test's host kept.
        let state = tempfile::tempdir()?;
        let mut child = command
            .args(arguments)
            .env("OARLOCK_STATE_DIR", state.path())
            .args(["--output", "json"])
            // Every informer compares what it has streamed in with a list.
            .env("KUBE_WATCHLIST_INCONSISTENCY_DETECTOR", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start oarlock")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let (sender, printed) = watch::channel(Arc::new(Printed::default()));
        let sender = Arc::new(sender);
        let (errors, weak) = (sender.clone(), Arc::downgrade(&sender));
        let readers = [
            each_line(stdout, move |line| {
                // A line that is not JSON is kept as text, so that a test can show it.
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                let read_at = Instant::now();
                // Millions of notifications are kept, so they are not kept as JSON.
                let received = ReceivedNotification::parse(&value);
                let reported = received.map(|notification| Arc::new(Reported { notification, read_at }));
                sender.send_modify(|printed| {
                    let printed = Arc::make_mut(printed);
                    match reported {
                        Some(reported) => printed.notifications.push(reported),
                        None => printed.lines.push(Arc::new(value)),
                    }
                });
            }),
            each_line(stderr, move |line| {
                errors.send_modify(|printed| Arc::make_mut(printed).errors.push(line));
            }),
        ];
        Ok(Self { child, printed, sender: weak, readers, _state: state })
    }

    /// Returns the output so far.
    #[must_use]
    pub fn printed(&self) -> Arc<Printed> {
        self.printed.borrow().clone()
    }

    /// Forgets the first `n` notifications, so that a long run needs no more memory than a short one.
    pub fn forget_notifications(&self, n: usize) {
        // Without the readers the host has ended, and prints no more.
        if let Some(sender) = self.sender.upgrade() {
            sender.send_modify(|printed| {
                let notifications = &mut Arc::make_mut(printed).notifications;
                notifications.drain(..n.min(notifications.len()));
            });
        }
    }

    /// Waits until all initial adds of a plugin are delivered. A host in an election leads then.
    ///
    /// # Errors
    ///
    /// Those of [`HostProcess::wait_for`].
    pub async fn until_synced(&mut self) -> anyhow::Result<()> {
        self.wait_for("all initial adds are delivered", |printed| {
            printed.events("subscription-synced").find(|line| line["remaining"] == 0).map(|_| ())
        })
        .await
    }

    /// Waits until `found` returns something for the output so far.
    ///
    /// # Errors
    ///
    /// When the host ends first, or after [`WAIT_LIMIT`]; the last lines of its output are in the error.
    pub async fn wait_for<T>(
        &mut self,
        what: &str,
        found: impl Fn(&Printed) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = tokio::time::Instant::now() + WAIT_LIMIT;
        loop {
            if let Some(found) = found(&self.printed.borrow_and_update()) {
                return Ok(found);
            }
            match tokio::time::timeout_at(deadline, self.printed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => {
                    let status = self.child.wait().await?;
                    bail!(
                        "oarlock ended ({status}) while a test waited for: {what}; the last lines were:\n{}",
                        self.printed().tail()
                    );
                }
                Err(_) => bail!(
                    "waited {WAIT_LIMIT:?} for: {what}; the last lines were:\n{}",
                    self.printed().tail()
                ),
            }
        }
    }

    /// Returns the process id, or `None` after the end of the process.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills the host with SIGKILL and returns its output.
    ///
    /// # Errors
    ///
    /// When it cannot be killed.
    pub async fn kill(mut self) -> anyhow::Result<Arc<Printed>> {
        self.child.kill().await?;
        self.drain().await;
        Ok(self.printed())
    }

    /// Sends a signal, such as `STOP`.
    ///
    /// # Errors
    ///
    /// When the host has ended already.
    pub async fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let id = self.id().context("oarlock has ended already")?.to_string();
        Command::new("kill").args(["-s", signal, &id]).status().await?;
        Ok(())
    }

    /// Sends SIGINT, as Ctrl-C does, and returns the exit status and the output.
    ///
    /// # Errors
    ///
    /// When the host has ended already, or does not end within a minute.
    pub async fn interrupt(self) -> anyhow::Result<(std::process::ExitStatus, Arc<Printed>)> {
        self.signal("INT").await?;
        self.ended_soon().await
    }

    /// Sends SIGTERM, as a kubelet does, and returns the exit status and the output.
    ///
    /// # Errors
    ///
    /// When the host has ended already, or does not end within a minute.
    pub async fn terminate(self) -> anyhow::Result<(std::process::ExitStatus, Arc<Printed>)> {
        self.signal("TERM").await?;
        self.ended_soon().await
    }

    async fn ended_soon(mut self) -> anyhow::Result<(std::process::ExitStatus, Arc<Printed>)> {
        let minute = Duration::from_secs(60);
        let status =
            tokio::time::timeout(minute, self.child.wait()).await.context("oarlock does not end")??;
        self.drain().await;
        Ok((status, self.printed()))
    }

    /// Waits until the host ends by itself, and returns its exit status and its output.
    ///
    /// # Errors
    ///
    /// When waiting fails.
    pub async fn ended(mut self) -> anyhow::Result<(std::process::ExitStatus, Arc<Printed>)> {
        let status = self.child.wait().await?;
        self.drain().await;
        Ok((status, self.printed()))
    }

    async fn drain(&mut self) {
        for reader in &mut self.readers {
            // A reader that panicked has printed why.
            let _ = reader.await;
        }
    }
}

// === impl Printed ===

impl Printed {
    /// Returns the notifications that the guests report.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedNotification> {
        self.notifications.iter().map(|reported| reported.notification.clone()).collect()
    }

    /// Returns the lines with this value of `event`.
    pub fn events<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().map(Arc::as_ref).filter(move |line| line["event"] == event)
    }

    /// Returns the last lines of both streams, for an error.
    #[must_use]
    pub fn tail(&self) -> String {
        let last = |count: usize| count.saturating_sub(20);
        let lines = self.lines[last(self.lines.len())..].iter().map(|line| line.to_string());
        let errors = self.errors[last(self.errors.len())..].iter().cloned();
        lines.chain(errors).collect::<Vec<_>>().join("\n")
    }
}

fn each_line(
    stream: impl AsyncRead + Unpin + Send + 'static,
    take: impl Fn(String) + Send + 'static,
) -> JoinHandle<()> {
    let shown = std::env::var_os("OARLOCK_TESTS_SHOW").is_some();
    let read = async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if shown {
                eprintln!("{line}");
            }
            take(line);
        }
    };
    #[expect(clippy::disallowed_methods, reason = "ends with the process whose output it reads")]
    tokio::spawn(read)
}
