//! A host process with three good plugins over an embedded API server, and the writes and the judge.

mod judge;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, anyhow, ensure};
use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::cases::Case;
use super::process::Resources;
use super::troubles;
use crate::chain_check::Ends;
use crate::cluster::{Cluster, request};
use crate::host_process::{HostProcess, Reported, binary};
use crate::recorder::Recorder;
use crate::wait::wait_until;
use oarlock_built_guests::component;

/// The good plugins. Each reports every notification of ConfigMaps with the label `app=hello`.
pub const GOOD: [&str; 3] = ["good-1", "good-2", "good-3"];

/// How often the host's resources are read.
const SAMPLE: Duration = Duration::from_millis(50);

/// How long the status may take to name every reason.
const REASONS_LIMIT: Duration = Duration::from_secs(300);

/// Objects that the writer changes.
const OBJECTS: usize = 40;

/// Writes under way at the same time.
const WRITERS: usize = 8;

/// The namespaces that the cases use beside `default`.
const NAMESPACES: [&str; 3] = ["own-writes", "mine", "other"];

/// What may be done to ConfigMaps, and the Events and Leases that plugins and hosts write.
const RIGHTS: &str = r#"
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "plugins"}, "rules": [
  {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]},
  {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]}
"#;

/// A host with good plugins. Other plugins come and go.
pub struct Stage {
    server: DevCluster,
    cluster: Cluster,
    /// Writes the changes, in this process.
    writer: Client,
    host: HostProcess,
    admin: String,
    folder: TempDir,
    recorder: Recorder,
    peak: Arc<Mutex<Resources>>,
    sampler: JoinHandle<()>,
    /// When each write was begun, by the resourceVersion that it returned.
    written: HashMap<String, Instant>,
    n_changes: usize,
    /// Where the chains of each plugin ended at the last [`Stage::checkpoint`].
    ends: HashMap<String, Ends>,
}

/// A plugin's file.
#[derive(Clone, Debug)]
pub struct Plugin<'a> {
    /// The plugin's name.
    pub name: &'a str,
    /// The path of its component.
    pub component: &'a Path,
    /// The name of its ServiceAccount in the namespace `default`.
    pub account: &'a str,
    /// Further keys of the file.
    pub more: Value,
}

/// How long good plugins took to report a change, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latencies {
    /// The number of reports.
    pub count: usize,
    /// The median.
    pub p50_ms: f64,
    /// Ninety-nine of a hundred reports are as fast.
    pub p99_ms: f64,
}

// === impl Stage ===

impl Stage {
    /// Starts a host with the good plugins, and waits until they have all objects.
    ///
    /// # Errors
    ///
    /// When the host does not start.
    pub async fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        Self::start_program(Command::new(binary("oarlock")?), arguments).await
    }

    /// Starts this program as the host; see [`Stage::start`].
    ///
    /// # Errors
    ///
    /// When the host does not start.
    pub async fn start_program(host: Command, arguments: &[&str]) -> anyhow::Result<Self> {
        let server = DevCluster::start(Config::default()).await?;
        let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
        let kubeconfig = cluster.path("administrator.kubeconfig");
        fs::write(&kubeconfig, server.kubeconfig())?;
        let namespace = |name: &str| json!({"metadata": {"name": name}});
        for name in NAMESPACES {
            cluster.request("POST", "/api/v1/namespaces", Some(&namespace(name))).await?;
        }
        cluster.apply(RIGHTS).await?;
        let recorder = Recorder::start(cluster.client.clone(), "/api/v1/configmaps").await?;
        let folder = tempfile::tempdir()?;
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins)?;
        let mut all = vec!["run", "--admin-addr", "127.0.0.1:0", "--max-cache-bytes", "128Mi"];
        all.extend(arguments);
        let mut all: Vec<_> = all.into_iter().map(PathBuf::from).collect();
        all.extend(["--kubeconfig".into(), kubeconfig, "--plugins".into(), plugins]);
        let mut host = HostProcess::start_program(host, all)?;
        let admin = host
            .wait_for("the admin pages", |printed| {
                printed.events("admin-listening").find_map(|line| line["address"].as_str().map(str::to_owned))
            })
            .await?;
        let peak = Arc::new(Mutex::new(Resources::default()));
        let sampler = sample(host.id().context("the host has ended")?, peak.clone());
        let written = HashMap::new();
        let writer = Client::new(server.as_admin(), "default");
        let mut stage = Self {
            server,
            cluster,
            writer,
            host,
            admin,
            folder,
            recorder,
            peak,
            sampler,
            written,
            n_changes: 0,
            ends: HashMap::new(),
        };
        stage.grant("good", None).await?;
        stage.grant("hostile", None).await?;
        let hello = component("hello-rust");
        // A deadline is wall-clock time, and the machine may have other work.
        let more = json!({"limits": {"logLinesPerSecond": 100_000, "callDeadline": "60s"}});
        for name in GOOD {
            stage.plugin(&Plugin { name, component: &hello, account: "good", more: more.clone() })?;
        }
        let serve = stage
            .host
            .wait_for("the good plugins serve", |printed| {
                let is_good = |line: &&Value| GOOD.iter().any(|name| line["plugin"] == *name);
                if let Some(refused) = printed.events("plugin-refused").find(is_good) {
                    return Some(Err(anyhow!("a good plugin was refused: {refused}")));
                }
                let synced = printed.events("subscription-synced");
                let synced = synced.filter(|line| GOOD.iter().any(|name| line["plugin"] == *name));
                (synced.count() >= GOOD.len()).then_some(Ok(()))
            })
            .await?;
        serve.map(|()| stage)
    }

    /// The administrator's client, and the API server.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The host's process.
    pub fn host(&mut self) -> &mut HostProcess {
        &mut self.host
    }

    /// The folder of the components; the plugins' files are in `plugins` in it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a ServiceAccount in `default` and grants it the rights of plugins, in all namespaces or in
    /// one.
    ///
    /// # Errors
    ///
    /// Those of the API server.
    pub async fn grant(&self, account: &str, namespace: Option<&str>) -> anyhow::Result<()> {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        self.cluster.request("POST", accounts, Some(&json!({"metadata": {"name": account}}))).await?;
        let mut binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "plugins"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": account}],
        });
        if let Some(namespace) = namespace {
            binding["kind"] = "RoleBinding".into();
            binding["metadata"]["namespace"] = namespace.into();
        }
        self.cluster.apply(&binding.to_string()).await
    }

    /// Writes a plugin's file, in one step.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn plugin(&self, plugin: &Plugin<'_>) -> anyhow::Result<()> {
        let Plugin { name, component, account, more } = plugin;
        let mut file = json!({
            "name": name,
            "component": component,
            "serviceAccount": {"namespace": "default", "name": account},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            file[key] = value.clone();
        }
        // JSON is YAML.
        replace(&self.plugin_path(name), file.to_string().as_bytes())
    }

    fn plugin_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("plugins/{name}.yaml"))
    }

    /// Writes a component, in one step and as if it had been there for an hour, so that the host does not
    /// wait for the rest of it. Returns its path.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn component(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(format!("{name}.wasm"));
        let beside = path.with_extension("tmp");
        fs::write(&beside, bytes)?;
        let hour = Duration::from_secs(3_600);
        fs::File::options().write(true).open(&beside)?.set_modified(SystemTime::now() - hour)?;
        fs::rename(beside, &path)?;
        Ok(path)
    }

    /// Removes a plugin's file.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn remove(&self, name: &str) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.plugin_path(name))?)
    }

    /// Writes the files and components of the hostile plugins.
    ///
    /// # Errors
    ///
    /// When one cannot be made.
    pub async fn load(&self, cases: &[Case]) -> anyhow::Result<()> {
        // Objects that the cases read.
        for n in 0..12 {
            let metadata = json!({"name": format!("large-{n}"), "namespace": "own-writes"});
            let index: BTreeMap<_, _> = (0..32).map(|m| (format!("index-{m}"), format!("{n}-{m}"))).collect();
            let mut object = json!({"metadata": metadata, "data": index});
            object["data"]["large"] = "x".repeat(400 << 10).into();
            object["data"]["value"] = format!("value-{n}").into();
            self.cluster.request("POST", "/api/v1/namespaces/own-writes/configmaps", Some(&object)).await?;
        }
        for case in cases {
            let component = match case.shared_component() {
                Some(path) => path,
                None => self.component(case.name, &case.component()?)?,
            };
            let account = "hostile";
            let mut more = case.file();
            if case.has_shadow {
                more["shadow"] = json!(component);
            }
            self.plugin(&Plugin { name: case.name, component: &component, account, more })?;
        }
        Ok(())
    }

    /// Removes the files of the hostile plugins, and waits until the host has unloaded them.
    ///
    /// # Errors
    ///
    /// When the host does not unload one.
    pub async fn unload(&self, cases: &[Case]) -> anyhow::Result<()> {
        self.remove_all(cases.iter().map(|case| case.name)).await
    }

    /// Removes the files and components of plugins, and waits until the host has unloaded them.
    ///
    /// # Errors
    ///
    /// When the host does not unload one.
    pub async fn remove_all<'a>(&self, names: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
        let names: Vec<_> = names.collect();
        for name in &names {
            self.remove(name)?;
        }
        wait_until("the plugins are unloaded", async || {
            let status = self.status().await.map_err(|error| vec![error.to_string()])?;
            let left = names.iter().filter(|name| status.contains_key(**name));
            let left: Vec<_> = left.map(|name| (*name).to_owned()).collect();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await?;
        for name in &names {
            // A plugin of a shared component has none of its own.
            let _ = fs::remove_file(self.folder.path().join(format!("{name}.wasm")));
        }
        Ok(())
    }

    /// Waits until the host uses no more resources than before, but for what may stay, and returns them.
    ///
    /// # Errors
    ///
    /// When it keeps more.
    pub async fn released(&self, before: &Resources) -> anyhow::Result<Resources> {
        wait_until("the host releases what plugins used that were removed", async || {
            let now = self.resources().map_err(|error| error.to_string())?;
            now.check_released(before).map(|()| now)
        })
        .await
    }

    /// Changes objects until the status names the reason of every hostile plugin, and returns the reasons.
    ///
    /// # Errors
    ///
    /// When one is missing for too long.
    pub async fn reasons(&mut self, cases: &[Case]) -> anyhow::Result<BTreeMap<String, String>> {
        let mut reasons = BTreeMap::new();
        let begun = Instant::now();
        loop {
            self.change(20, Duration::ZERO).await?;
            // A good plugin's part of the CPU time is small now, so the writer does not run ahead of it.
            self.judge().await?;
            let status = self.status().await?;
            let mut missing = BTreeMap::new();
            for case in cases.iter().filter(|case| !reasons.contains_key(case.name)).collect::<Vec<_>>() {
                let plugin = status.get(case.name);
                let shown = plugin.map(troubles).unwrap_or_default();
                let serves = plugin.is_some_and(|plugin| plugin["phase"] == "serving");
                let is_named = case.reasons.iter().any(|reason| shown.contains(reason));
                if is_named || case.reasons.is_empty() && serves {
                    reasons.insert(case.name.to_owned(), shown);
                } else {
                    missing.insert(case.name, (case.reasons, plugin.cloned()));
                }
            }
            if missing.is_empty() {
                return Ok(reasons);
            }
            ensure!(begun.elapsed() < REASONS_LIMIT, "the status names no reason of {missing:#?}");
        }
    }

    /// Makes changes: creations, updates and deletes of objects that the good plugins watch, one each `pace`
    /// if the API server is as fast. Objects are changed by several writers, each object by one.
    ///
    /// # Errors
    ///
    /// Those of the API server.
    pub async fn change(&mut self, n: usize, pace: Duration) -> anyhow::Result<()> {
        let from = self.n_changes;
        self.n_changes += n;
        let writer = &self.writer;
        let started = tokio::time::Instant::now();
        let writers = futures::stream::iter(0..WRITERS).map(|idx| async move {
            let mut written = Vec::new();
            for change in (from..from + n).filter(|change| change % OBJECTS % WRITERS == idx) {
                tokio::time::sleep_until(started + pace.saturating_mul((change - from) as u32)).await;
                let begun = Instant::now();
                if let Some(version) = change_one(writer, change).await? {
                    written.push((version, begun));
                }
            }
            anyhow::Ok(written)
        });
        let written: Vec<_> = writers.buffer_unordered(WRITERS).try_collect().await?;
        self.written.extend(written.into_iter().flatten());
        Ok(())
    }

    /// Makes changes, waits until the good plugins have reported them, and returns how long that took.
    ///
    /// # Errors
    ///
    /// Those of the API server, and when a good plugin misses something.
    pub async fn measure(&mut self, changes: usize, pace: Duration) -> anyhow::Result<Latencies> {
        self.forget_latencies();
        self.change(changes, pace).await?;
        self.judge().await?;
        Ok(self.latencies())
    }

    /// Changes until now are in no [`Stage::latencies`].
    pub fn forget_latencies(&mut self) {
        self.written.clear();
    }

    /// Returns how long the good plugins took to report the changes since [`Stage::forget_latencies`], as far
    /// as they have reported them.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        let printed = self.host.printed();
        let mut millis: Vec<f64> = Vec::new();
        for reported in &printed.notifications {
            let Reported { notification, read_at } = reported.as_ref();
            if let Some(begun) = self.written.get(&notification.resource_version)
                && GOOD.contains(&notification.plugin.as_str())
            {
                millis.push(read_at.saturating_duration_since(*begun).as_secs_f64() * 1_000.0);
            }
        }
        millis.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let index = (millis.len() as f64 * part) as usize;
            millis.get(index.min(millis.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        Latencies { count: millis.len(), p50_ms: at(0.5), p99_ms: at(0.99) }
    }

    /// Returns the status of every plugin, by name.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    pub async fn status(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let page: Value = serde_json::from_str(&self.page("/plugins").await?.1)?;
        let plugins = page["plugins"].as_array().context("the status has plugins")?;
        let named = |plugin: &Value| (plugin["name"].as_str().unwrap_or_default().to_owned(), plugin.clone());
        Ok(plugins.iter().map(named).collect())
    }

    /// Fails if the host does not say that it is healthy.
    ///
    /// # Errors
    ///
    /// With its answer.
    pub async fn expect_health(&self) -> anyhow::Result<()> {
        for page in ["/livez", "/readyz"] {
            let (head, body) = self.page(page).await?;
            ensure!(head.starts_with("HTTP/1.1 200"), "{page}: {head}\n{body}");
        }
        Ok(())
    }

    /// Fails if a good plugin or one that serves is not recorded, or if one that serves lacks its shadow.
    ///
    /// # Errors
    ///
    /// With the status of the plugin.
    pub async fn expect_records(&self, cases: &[Case]) -> anyhow::Result<()> {
        let status = self.status().await?;
        for name in GOOD {
            let record = &status[name]["record"];
            ensure!(record["state"] == "recording", "the record of {name}: {record}");
        }
        for case in cases {
            let plugin = &status[case.name];
            if plugin["phase"] == "serving" {
                ensure!(plugin["record"].is_object(), "no record: {plugin}");
                ensure!(!case.has_shadow || plugin["shadow"].is_object(), "no shadow: {plugin}");
            }
        }
        let written = status.values().filter_map(|plugin| plugin.pointer("/shadow/waiting")?.as_u64());
        let compared = status.values().filter_map(|plugin| plugin.pointer("/shadow/compared")?.as_u64());
        let writes: u64 = written.chain(compared).sum();
        let has_shadows = cases.iter().any(|case| case.has_shadow);
        ensure!(!has_shadows || writes > 0, "no shadow has written anything");
        Ok(())
    }

    /// Requests an admin page, and returns its head and its body.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    pub async fn page(&self, path: &str) -> anyhow::Result<(String, String)> {
        let mut connection = TcpStream::connect(&self.admin).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
        Ok((head.to_owned(), unchunked(head, body)))
    }

    /// Returns the host's resources now.
    ///
    /// # Errors
    ///
    /// When the host has ended.
    pub fn resources(&self) -> anyhow::Result<Resources> {
        Resources::of(self.host.id().context("the host has ended")?)
    }

    /// Returns the maximum of each resource so far.
    #[must_use]
    pub fn peak(&self) -> Resources {
        *self.peak.lock()
    }

    /// Ends the host and the API server.
    ///
    /// # Errors
    ///
    /// When the host does not end, or not well.
    pub async fn end(self) -> anyhow::Result<()> {
        self.sampler.abort();
        let (status, printed) = self.host.interrupt().await?;
        ensure!(status.success(), "the host ended with {status}:\n{}", printed.tail());
        self.server.shut_down().await;
        Ok(())
    }
}

/// Makes the n-th change, and returns the resourceVersion of the result; none for a delete.
async fn change_one(client: &Client, n: usize) -> anyhow::Result<Option<String>> {
    let (object, round) = (n % OBJECTS, n / OBJECTS);
    let name = format!("object-{object}");
    let path = format!("/api/v1/namespaces/default/configmaps/{name}");
    // Each object is created, changed eight times, deleted, and created again.
    let (method, path, body) = match round % 10 {
        9 => ("DELETE", path, None),
        0 => {
            let metadata = json!({"name": name, "labels": {"app": "hello"}});
            let object = json!({"metadata": metadata, "data": {"greeting": "hello", "value": n.to_string()}});
            ("POST", "/api/v1/namespaces/default/configmaps".to_owned(), Some(object))
        }
        _ => ("PATCH", path, Some(json!({"data": {"value": n.to_string()}}))),
    };
    let done = request(client, method, &path, body.as_ref()).await?;
    if method == "DELETE" {
        return Ok(None);
    }
    Ok(done["metadata"]["resourceVersion"].as_str().map(str::to_owned))
}

/// Reads the resources of a process until it ends.
fn sample(pid: u32, peak: Arc<Mutex<Resources>>) -> JoinHandle<()> {
    #[expect(clippy::disallowed_methods, reason = "ends with the process, or is aborted by the Stage")]
    tokio::spawn(async move {
        while let Ok(now) = Resources::of(pid) {
            let higher = peak.lock().max(now);
            *peak.lock() = higher;
            tokio::time::sleep(SAMPLE).await;
        }
    })
}

fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let beside = path.with_extension("tmp");
    fs::write(&beside, bytes)?;
    Ok(fs::rename(beside, path)?)
}

/// Returns the body of an answer without the lengths of its chunks.
fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let mut whole = String::new();
    let mut rest = body;
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        let Some(chunk) = after.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        whole.push_str(chunk);
        rest = after.get(length + 2..).unwrap_or_default();
    }
    whole
}
