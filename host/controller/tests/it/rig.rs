//! A host over an embedded API server, with its plugins in a temporary folder, and every line that it
//! reports.

use std::fmt::Debug;
use std::fs;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use oarlock_controller::informers::{Limits, Prunings};
use oarlock_controller::provision::{self, Provision};
use oarlock_controller::rbac::{self, Needs};
use oarlock_controller::report;
use oarlock_controller::runtime::{
    ClientMetrics, Config, Error, RestartPolicy, RetryPolicy, Runtime, WallClock,
};
use oarlock_dev_cluster::DevCluster;
use oarlock_informer::list_watch::transport;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_plugin::EngineConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The deadline of a wait: generous, since a wait may include the compilation of guests on a slow machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The pause between two probes.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Rig {
    pub(crate) cluster: DevCluster,
    pub(crate) client: kube::Client,
    lines: watch::Receiver<Vec<Value>>,
    folder: TempDir,
    token: CancellationToken,
    host: JoinSet<Result<(), Error>>,
}

/// Grants every plugin the rights that it declares, as `oarlock dev` does.
struct Grant(kube::Client);

// === impl Rig ===

impl Rig {
    /// Starts a host without plugins that grants every plugin the rights that it declares.
    pub(crate) async fn start() -> Self {
        Self::start_with(|config| config).await
    }

    /// The same with another configuration.
    pub(crate) async fn start_with(change: impl FnOnce(Config) -> Config) -> Self {
        let (cluster, client) = cluster().await;
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let (reporter, mut reports) = reports();
        let config = config(&cluster, &client, reporter);
        let runtime = Runtime::new(change(Config { sources: vec![plugins], ..config })).unwrap();
        let token = CancellationToken::new();
        let (sender, lines) = watch::channel(Vec::new());
        let mut host = JoinSet::new();
        let ended = token.clone();
        host.spawn(async move { runtime.run(ended).await });
        host.spawn(async move {
            while let Some(line) = reports.next().await {
                sender.send_modify(|lines| lines.push(serde_json::to_value(&line).unwrap()));
            }
            Ok(())
        });
        Self { cluster, client, lines, folder, token, host }
    }

    /// Copies the guest under the plugin's name, and writes the plugin's file.
    pub(crate) fn plugin(&self, name: &str, guest: &str) {
        self.plugin_with(name, guest, json!({}));
    }

    /// The same with further keys in the file.
    pub(crate) fn plugin_with(&self, name: &str, guest: &str, more: Value) {
        self.component(name, &fs::read(guest_path(guest)).unwrap());
        let mut file = json!({
            "name": name,
            "component": format!("../{name}.wasm"),
            "serviceAccount": {"namespace": "default", "name": name},
            "limits": {"logLinesPerSecond": 100_000},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            file[key] = value.clone();
        }
        self.file(name, &file.to_string());
    }

    /// Writes a plugin's file. JSON is YAML.
    pub(crate) fn file(&self, name: &str, text: &str) {
        self.replace(&format!("plugins/{name}.yaml"), text.as_bytes());
    }

    /// Returns the text of a plugin's file.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(format!("plugins/{name}.yaml"))).unwrap()
    }

    /// Writes a plugin's component.
    pub(crate) fn component(&self, name: &str, bytes: &[u8]) {
        self.replace(&format!("{name}.wasm"), bytes);
    }

    /// Deletes a plugin's file.
    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.folder.path().join(format!("plugins/{name}.yaml"))).unwrap();
    }

    /// Renames a file or folder beside the components.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        let at = |name: &str| self.folder.path().join(name);
        fs::rename(at(from), at(to)).unwrap();
    }

    /// Waits for a line that satisfies the predicate, and returns the first such line.
    #[track_caller]
    pub(crate) fn line(&self, is_it: impl Fn(&Value) -> bool) -> impl Future<Output = Value> {
        self.until_at(Location::caller(), move |lines| lines.iter().find(|line| is_it(line)).cloned())
    }

    /// Waits for an event of a plugin, and returns its line.
    #[track_caller]
    pub(crate) fn event(&self, plugin: &str, event: &str) -> impl Future<Output = Value> {
        self.line(move |line| line["plugin"] == plugin && line["event"] == event)
    }

    /// Waits until a plugin's generation serves, and returns the line that reports it.
    #[track_caller]
    pub(crate) fn serves(&self, plugin: &str, generation: u64) -> impl Future<Output = Value> {
        self.line(move |line| {
            line["plugin"] == plugin && line["event"] == "plugin-loaded" && line["generation"] == generation
        })
    }

    /// Waits until the reported lines satisfy the predicate.
    #[track_caller]
    pub(crate) fn until(&self, is_so: impl Fn(&[Value]) -> bool) -> impl Future<Output = ()> {
        self.until_at(Location::caller(), move |lines| is_so(lines).then_some(()))
    }

    /// Waits until the probe finds something in the reported lines.
    ///
    /// # Panics
    ///
    /// After [`LIMIT`], with the caller and the last lines.
    async fn until_at<T>(&self, caller: &Location<'_>, probe: impl Fn(&[Value]) -> Option<T>) -> T {
        let mut lines = self.lines.clone();
        let waited = async {
            loop {
                if let Some(found) = probe(&lines.borrow_and_update()) {
                    return found;
                }
                lines.changed().await.unwrap();
            }
        };
        let Ok(found) = tokio::time::timeout(LIMIT, waited).await else {
            let lines = self.lines();
            let last: Vec<_> = lines.iter().rev().take(40).rev().map(Value::to_string).collect();
            panic!("{caller}: waited {LIMIT:?}; the last of {} lines:\n{}", lines.len(), last.join("\n"));
        };
        found
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.borrow().clone()
    }

    /// Returns the API of ConfigMaps in the namespace `default`.
    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates a ConfigMap that the hello plugins watch.
    pub(crate) async fn create(&self, name: &str) {
        let object = json!({
            "metadata": {"name": name, "labels": {"app": "hello"}},
            "data": {"greeting": "hi"},
        });
        let object: ConfigMap = serde_json::from_value(object).unwrap();
        self.config_maps().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Changes such a ConfigMap.
    pub(crate) async fn change(&self, name: &str, to: &str) {
        self.patch(name, &json!({"data": {"greeting": to}})).await;
    }

    /// Merges a patch into a ConfigMap.
    pub(crate) async fn patch(&self, name: &str, patch: &Value) {
        self.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Deletes a ConfigMap, over another connection if this one breaks.
    pub(crate) async fn delete(&self, name: &str) {
        let deleted = async {
            while let Err(error) = self.config_maps().delete(name, &DeleteParams::default()).await {
                assert!(matches!(error, kube::Error::Service(_)), "{error}");
            }
        };
        tokio::time::timeout(LIMIT, deleted).await.unwrap();
    }

    /// Lists the existing ConfigMaps as name and resourceVersion, sorted.
    pub(crate) async fn existing(&self) -> Vec<(String, String)> {
        let list = self.config_maps().list(&ListParams::default().labels("app=hello")).await.unwrap();
        let mut objects: Vec<_> = list
            .items
            .into_iter()
            .map(|it| (it.metadata.name.unwrap(), it.metadata.resource_version.unwrap()))
            .collect();
        objects.sort();
        objects
    }

    /// Ends the host and the API server, and waits until all their tasks have ended. Returns all lines.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        self.end_host().await;
        let lines = self.lines();
        self.cluster.shut_down().await;
        lines
    }

    /// Ends the host, and waits until all its tasks have ended.
    pub(crate) async fn end_host(&mut self) {
        self.token.cancel();
        let ended = async {
            while let Some(ended) = self.host.join_next().await {
                ended.unwrap().unwrap();
            }
        };
        let ended = tokio::time::timeout(LIMIT, ended).await;
        assert!(ended.is_ok(), "the host did not end in {LIMIT:?}; its last line: {:?}", self.lines().last());
    }

    fn replace(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        let beside = path.with_extension("tmp");
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, path).unwrap();
    }
}

/// Returns a reporter of every event, and its lines.
pub(crate) fn reports() -> (report::Reporter, report::Reports) {
    report::channel(report::Config { level: report::Level::Debug, ..report::Config::default() })
}

/// Returns the configuration of a host without plugins that waits little before it tries again, and grants
/// every plugin the rights that it declares.
pub(crate) fn config(cluster: &DevCluster, client: &kube::Client, reporter: report::Reporter) -> Config {
    Config {
        client: client.clone(),
        client_metrics: ClientMetrics::default(),
        outages: transport::Outages::default(),
        server: cluster.url(),
        sources: Vec::new(),
        plugin_resources: None,
        admin: None,
        control: None,
        reporter,
        engine: EngineConfig::default(),
        state_dir: None,
        retry: RetryPolicy { base: Duration::from_millis(20), ..RetryPolicy::default() },
        restart: RestartPolicy { base: Duration::from_millis(20), ..RestartPolicy::default() },
        provision: Some(Arc::new(Grant(client.clone()))),
        limits: Limits::default(),
        prunings: Prunings::default(),
        election: None,
        drain_timeout: Duration::from_secs(5),
        record: None,
        traces: None,
        interception: None,
        wall_clock: WallClock::system(),
        fault_swallow: None,
        consistency_check: ConsistencyCheck::Panic,
    }
}

/// Starts an embedded API server, and returns it with a client of its administrator.
pub(crate) async fn cluster() -> (DevCluster, kube::Client) {
    let cluster = DevCluster::start(oarlock_dev_cluster::Config::default()).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    (cluster, transport::client(config).unwrap())
}

/// Waits until the probe returns `Ok`.
///
/// # Panics
///
/// After [`LIMIT`], with the last state that the probe returned.
#[track_caller]
pub(crate) fn until_ok<T, S: Debug>(
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<T, S>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let begun_at = Instant::now();
        loop {
            match probe().await {
                Ok(value) => return value,
                Err(state) => {
                    let waited = begun_at.elapsed();
                    assert!(
                        waited < LIMIT,
                        "{caller}: waited {LIMIT:?} for {what}; the last state was: {state:#?}"
                    );
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns the path of a guest that `cargo xtask guests` has built.
pub(crate) fn guest_path(guest: &str) -> PathBuf {
    oarlock_built_guests::component(guest)
}

// === impl Grant ===

#[async_trait]
impl Provision for Grant {
    async fn provision(&self, needs: &Needs) -> Result<(), provision::Error> {
        rbac::for_plugins(std::slice::from_ref(needs)).unwrap().apply(&self.0).await.unwrap();
        Ok(())
    }
}
