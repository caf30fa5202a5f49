//! A measured host process: its plugin files, its output, its memory and its CPU time.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::super::process::{Core, pinned};
use crate::progress;

/// The longest wait for anything.
const LIMIT: Duration = Duration::from_secs(600);

/// How long a host may take to end by itself.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A host is at rest when it takes less than [`QUIET`] of CPU time in this long, [`QUIET_WINDOWS`] times in a
/// row.
const WINDOW: Duration = Duration::from_millis(250);
const QUIET: Duration = Duration::from_millis(6);
const QUIET_WINDOWS: u32 = 8;

/// The file of a plugin.
#[derive(Clone)]
pub(super) struct PluginFile {
    pub(super) name: String,
    pub(super) component: PathBuf,
    /// The value of `config`.
    pub(super) config: Value,
    /// Further keys of the file.
    pub(super) more: Value,
}

/// The paths that hosts are started with.
pub(super) struct Paths {
    pub(super) oarlock: PathBuf,
    /// The folder for plugin files, compiled code and state.
    pub(super) folder: PathBuf,
}

/// A running host. Dropping it ends the process.
pub(super) struct Host {
    child: Child,
    lines: Receiver<Value>,
    plugins: PathBuf,
    /// `HOST:PORT` of the admin pages.
    admin: String,
    cpu: CpuClock,
}

/// The CPU time of a process, read thread by thread, in nanoseconds. Threads that have ended keep their last
/// reading.
#[derive(Default)]
struct CpuClock {
    threads: HashMap<String, u64>,
}

// === impl PluginFile ===

impl PluginFile {
    pub(super) fn new(name: impl Into<String>, component: &Path, config: Value) -> Self {
        Self { name: name.into(), component: component.to_owned(), config, more: json!({}) }
    }

    /// Adds a key to the file.
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.more[key] = value;
        self
    }

    /// Writes the file in one step. JSON is YAML.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let account = json!({"namespace": "default", "name": "measured"});
        let mut file = json!({
            "name": self.name, "component": self.component, "serviceAccount": account, "config": self.config,
        });
        for (key, value) in self.more.as_object().into_iter().flatten() {
            file[key] = value.clone();
        }
        let path = folder.join(format!("{}.yaml", self.name));
        let part = folder.join(format!("{}.part", self.name));
        fs::write(&part, file.to_string()).and_then(|()| fs::rename(&part, &path))?;
        Ok(())
    }
}

// === impl Host ===

impl Host {
    /// Starts a host with these plugins. It has its own folder of plugins; `cache` names its folder of
    /// compiled code, which hosts may share.
    pub(super) fn start(paths: &Paths, server: &str, files: &[PluginFile], cache: &str) -> Result<Self> {
        let plugins = paths.folder.join("plugins");
        if plugins.exists() {
            fs::remove_dir_all(&plugins)?;
        }
        fs::create_dir_all(&plugins)?;
        for file in files {
            file.write(&plugins)?;
        }
        let kubeconfig = paths.folder.join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_of(server).to_string())?;
        let cache = paths.folder.join(cache);
        // What an earlier run left must not be taken up.
        let state = paths.folder.join("state");
        if state.exists() {
            fs::remove_dir_all(&state)?;
        }
        let mut command = pinned(&paths.oarlock, Core::Subject);
        command.args(["run", "--output", "json", "--admin-addr", "127.0.0.1:0", "--plugins"]).arg(&plugins);
        command.arg("--kubeconfig").arg(&kubeconfig).arg("--cache-dir").arg(&cache);
        command.arg("--state-dir").arg(&state);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot run {}", paths.oarlock.display()))?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Ok(value) = serde_json::from_str(&line)
                    && sender.send(value).is_err()
                {
                    return;
                }
            }
        });
        let mut host = Self { child, lines, plugins, admin: String::new(), cpu: CpuClock::default() };
        let listening = host.wait_for("admin-listening", |line| line["event"] == "admin-listening")?;
        host.admin = listening["address"].as_str().unwrap_or_default().replace("http://", "");
        Ok(host)
    }

    /// Waits until every one of so many plugins has handled its initial adds.
    pub(super) fn wait_for_plugins(&mut self, n: usize) -> Result<()> {
        for _ in 0..n {
            self.wait_for("a plugin's initial adds", |line| line["event"] == "subscription-synced")?;
        }
        Ok(())
    }

    /// Returns the next line for which the function returns true. Lines before it are dropped.
    pub(super) fn wait_for(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + LIMIT;
        let mut last = Value::Null;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if is_wanted(&line) => return Ok(line),
                Ok(line) => last = line,
                Err(RecvTimeoutError::Timeout) => bail!("waited {LIMIT:?} for {what}; the last line: {last}"),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the host ended before {what}; its last line: {last}")
                }
            }
        }
    }

    /// Adds or changes a plugin.
    pub(super) fn write(&self, file: &PluginFile) -> Result<()> {
        file.write(&self.plugins)
    }

    /// Removes a plugin.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        Ok(fs::remove_file(self.plugins.join(format!("{name}.yaml")))?)
    }

    /// Waits until the host is at rest.
    pub(super) fn settle(&mut self) -> Result<()> {
        let begun = Instant::now();
        let (mut quiet, mut before) = (0, self.cpu()?);
        while quiet < QUIET_WINDOWS {
            ensure!(begun.elapsed() < LIMIT, "the host was not at rest within {LIMIT:?}");
            pause(WINDOW);
            let now = self.cpu()?;
            quiet = if now.saturating_sub(before) < QUIET { quiet + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }

    /// Returns the CPU time of all threads so far.
    pub(super) fn cpu(&mut self) -> Result<Duration> {
        self.cpu.read(self.child.id())
    }

    /// Returns the CPU time of the child processes that have ended.
    pub(super) fn children_cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 = after_name
            .split_whitespace()
            .skip(13)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        // The kernel reports hundredths of a second on every machine.
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Returns the resident bytes.
    pub(super) fn resident(&self) -> Result<u64> {
        self.bytes("smaps_rollup", "Rss:")
    }

    /// Returns the resident bytes that no file contains. Those of files, which are mostly the executable's,
    /// differ by some MiB between two hosts.
    pub(super) fn anonymous(&self) -> Result<u64> {
        self.bytes("smaps_rollup", "Anonymous:")
    }

    /// Returns the most bytes that were ever resident.
    pub(super) fn peak(&self) -> Result<u64> {
        self.bytes("status", "VmHWM:")
    }

    /// Returns the value of a line of a file of `/proc`, which is in KiB.
    fn bytes(&self, file: &str, name: &str) -> Result<u64> {
        let path = format!("/proc/{}/{file}", self.child.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|it| it.split_whitespace().next()).and_then(|it| it.parse::<u64>().ok());
        Ok(kib.with_context(|| format!("{path} has no {name}"))? * 1024)
    }

    /// Returns the number of threads.
    pub(super) fn n_threads(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/task", self.child.id()))?.count())
    }

    /// Returns the notifications that plugins have handled, and those that merged into others.
    pub(super) fn handled(&self) -> Result<(u64, u64)> {
        let page: Value = self.control()?.get("/plugins")?;
        let subscriptions = page["plugins"].as_array().into_iter().flatten();
        let backlogs = subscriptions
            .flat_map(|plugin| plugin["subscriptions"].as_array().into_iter().flatten())
            .map(|subscription| &subscription["backlog"]);
        let count = |backlog: &Value, name: &str| backlog[name].as_u64().unwrap_or_default();
        Ok(backlogs.fold((0, 0), |(delivered, merged), it| {
            (delivered + count(it, "delivered"), merged + count(it, "merged"))
        }))
    }

    /// Returns the samples of one metric, by their labels.
    pub(super) fn samples(&self, name: &str) -> Result<BTreeMap<String, f64>> {
        let page = self.control()?.get_text("/metrics")?;
        let sample = |line: &str| {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            (labels.is_empty() || labels.starts_with('{')).then_some((labels.to_owned(), value.parse().ok()?))
        };
        Ok(page.lines().filter_map(sample).collect())
    }

    fn control(&self) -> Result<oarlock_measure::Control> {
        oarlock_measure::Control::new(&format!("http://{}", self.admin))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A host that counts for an execution profile writes what it has counted when it ends by itself.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + STOP_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            pause(Duration::from_millis(10));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            progress::say(format!("a host does not end within {STOP_LIMIT:?}, and is killed"));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl CpuClock ===

impl CpuClock {
    fn read(&mut self, process: u32) -> Result<Duration> {
        for thread in fs::read_dir(format!("/proc/{process}/task")).context("the host ended")?.flatten() {
            // The thread may end meanwhile.
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            let on_cpu = text.split_whitespace().next().and_then(|field| field.parse().ok());
            if let Some(on_cpu) = on_cpu {
                self.threads.insert(thread.file_name().to_string_lossy().into_owned(), on_cpu);
            }
        }
        Ok(Duration::from_nanos(self.threads.values().sum()))
    }
}

fn kubeconfig_of(server: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": server}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    })
}

/// Waits. The measured processes work meanwhile.
#[expect(clippy::disallowed_methods, reason = "this program has no runtime that it could block")]
pub(super) fn pause(duration: Duration) {
    thread::sleep(duration);
}
