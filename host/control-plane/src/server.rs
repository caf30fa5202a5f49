//! One server: a child process, its log, and the wait until it is ready.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use crate::launcher::CANNOT_RUN;
use crate::{Error, Launcher};

/// A start takes 4 to 8 seconds on an idle machine. Test machines are busy.
const START_LIMIT: Duration = Duration::from_secs(300);

/// How long one probe may take, and the pause between two.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// How long the kernel may take to end a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How many lines of a log an error repeats.
const TAIL_LINES: usize = 10;

/// A running server. Dropping it kills the process and waits until it has ended.
#[derive(Debug)]
pub(crate) struct Server {
    program: &'static str,
    path: PathBuf,
    log: PathBuf,
    child: Child,
}

// === impl Server ===

impl Server {
    /// Starts a program; its standard output and standard error are appended to a log in this folder.
    pub(crate) fn start(
        program: &'static str,
        path: PathBuf,
        launcher: &Launcher,
        logs: &Path,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, Error> {
        check_format(&path)?;
        let log = logs.join(format!("{program}.log"));
        let open = || OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
        let output = open().and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = output.map_err(Error::io("cannot write", &log))?;
        let mut command = launcher.command(&path);
        command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        // A Ctrl-C in the terminal goes to every process of the foreground group. This process ends the
        // servers itself.
        command.process_group(0);
        let child = Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::io("cannot run", &launcher.program))?;
        Ok(Self { program, path, log, child })
    }

    /// Waits until a GET of `path` is answered with success. Returns how long that took. The client sends its
    /// requests to this port of 127.0.0.1.
    pub(crate) async fn ready(&mut self, client: &Client, port: u16, path: &str) -> Result<Duration, Error> {
        let begun_at = Instant::now();
        loop {
            let probe = async {
                // kube's client logs an error for each refused connection, and for each answer that is not a
                // success.
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| error.to_string())?;
                let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
                let answer = client.request_text(request).with_subscriber(NoSubscriber::new());
                answer.await.map_err(|error| error.to_string())
            };
            let answer = tokio::select! {
                ended = self.ended() => return Err(ended),
                answer = timeout(PROBE_LIMIT, probe) => answer,
            };
            let answer = match answer {
                Ok(Ok(_)) => return Ok(begun_at.elapsed()),
                Ok(Err(error)) => error,
                Err(_) => format!("no answer in {PROBE_LIMIT:?}"),
            };
            if begun_at.elapsed() > START_LIMIT {
                let Self { program, log, .. } = self;
                return Err(Error::NotReady { program, limit: START_LIMIT, answer, log: log.clone() });
            }
            tokio::select! {
                ended = self.ended() => return Err(ended),
                () = sleep(PROBE_PAUSE) => {}
            }
        }
    }

    /// Waits until the process ends by itself. Returns the reason as an error.
    pub(crate) async fn ended(&mut self) -> Error {
        match self.child.wait().await {
            Ok(status) => self.explain(status),
            Err(source) => Error::Io { what: "cannot wait for", path: self.path.clone(), source },
        }
    }

    fn explain(&self, status: ExitStatus) -> Error {
        let text = fs::read(&self.log).map(|log| String::from_utf8_lossy(&log).into_owned());
        let text = text.unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = text.lines().collect();
        if status.code() == Some(CANNOT_RUN) {
            let reason = lines.last().copied().unwrap_or("unknown reason").to_owned();
            return Error::NotRunnable { path: self.path.clone(), reason };
        }
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        Error::Ended { program: self.program, status, log: self.log.clone(), tail }
    }

    /// Kills the process and waits until it has ended.
    pub(crate) async fn kill(mut self) {
        // It may have ended by itself.
        let _ = self.child.kill().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let begun_at = Instant::now();
        // The folder is removed next: nothing may write into it any more.
        while matches!(self.child.try_wait(), Ok(None)) && begun_at.elapsed() < KILL_LIMIT {
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Refuses an executable for another system or processor. The C library would pass such a file to the shell.
fn check_format(path: &Path) -> Result<(), Error> {
    /// Magic number, word size and byte order, then the processor.
    const PARTS: [Range<usize>; 2] = [0..6, 18..20];
    let header = |path: &Path| -> io::Result<[u8; 20]> {
        let mut header = [0; 20];
        let mut file = File::open(path)?;
        let mut n_read = 0;
        while n_read < header.len() {
            match file.read(&mut header[n_read..])? {
                0 => break,
                n => n_read += n,
            }
        }
        Ok(header)
    };
    let found = header(path).map_err(Error::io("cannot read", path))?;
    // On a system without this file, the system itself has to say what it cannot run.
    let Ok(own) = header(Path::new("/proc/self/exe")) else { return Ok(()) };
    if found.starts_with(b"#!") || PARTS.into_iter().all(|part| found[part.clone()] == own[part]) {
        return Ok(());
    }
    let reason = "it is built for another system or processor".to_owned();
    Err(Error::NotRunnable { path: path.to_owned(), reason })
}
