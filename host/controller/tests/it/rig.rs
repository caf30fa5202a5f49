//! A host over an embedded API server, its plugins in a folder of their own, and every line that it reports.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use oarlock_controller::dispatch::{RestartPolicy, RetryPolicy};
use oarlock_controller::informers::{Limits, Prunings};
use oarlock_controller::provision::{self, Provision};
use oarlock_controller::rbac::{self, Needs};
use oarlock_controller::report;
use oarlock_controller::runtime::{Config, Error, Runtime};
use oarlock_dev_cluster::DevCluster;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_informer::transport;
use oarlock_plugin::EngineConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long anything may take on however slow a machine, the compiling of guests included.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Rig {
    pub(crate) cluster: DevCluster,
    pub(crate) client: kube::Client,
    lines: watch::Receiver<Vec<Value>>,
    folder: TempDir,
    token: CancellationToken,
    host: JoinSet<Result<(), Error>>,
}

/// Gives every plugin what it declares, as `oarlock dev` does.
struct Grant(kube::Client);

// === impl Rig ===

impl Rig {
    /// Starts a host without plugins that gives every plugin the rights that it declares.
    pub(crate) async fn start() -> Self {
        Self::start_with(|config| config).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(Config) -> Config) -> Self {
        let (cluster, client) = cluster().await;
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let (reporter, mut reports) =
            report::channel(report::Config { level: report::Level::Debug, ..report::Config::default() });
        let runtime = Runtime::new(change(Config {
            client: client.clone(),
            server: cluster.url(),
            sources: vec![plugins],
            admin: None,
            reporter,
            engine: EngineConfig::default(),
            retry: RetryPolicy { base: Duration::from_millis(20), ..RetryPolicy::default() },
            restart: RestartPolicy { base: Duration::from_millis(20), ..RestartPolicy::default() },
            provision: Some(Arc::new(Grant(client.clone()))),
            limits: Limits::default(),
            prunings: Prunings::default(),
            election: None,
            fault_swallow: None,
            consistency_check: ConsistencyCheck::Panic,
        }))
        .unwrap();
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

    /// Writes the file of a plugin that is made of this guest, which is copied under the plugin's name.
    pub(crate) fn plugin(&self, name: &str, guest: &str) {
        self.plugin_with(name, guest, json!({}));
    }

    /// The same, with more keys in its file.
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

    /// The text of a plugin's file.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(format!("plugins/{name}.yaml"))).unwrap()
    }

    /// Writes the bytes that a plugin is made of.
    pub(crate) fn component(&self, name: &str, bytes: &[u8]) {
        self.replace(&format!("{name}.wasm"), bytes);
    }

    /// Takes a plugin's file away.
    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.folder.path().join(format!("plugins/{name}.yaml"))).unwrap();
    }

    /// Waits for a line and returns it.
    pub(crate) async fn line(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        self.until(|lines| lines.iter().any(&is_it)).await;
        self.lines().into_iter().find(|line| is_it(line)).unwrap()
    }

    /// Waits for an event of a plugin and returns its line.
    pub(crate) async fn event(&self, plugin: &str, event: &str) -> Value {
        self.line(|line| line["plugin"] == plugin && line["event"] == event).await
    }

    /// Waits until a plugin's generation serves.
    pub(crate) async fn serves(&self, plugin: &str, generation: u64) -> Value {
        self.line(|line| {
            line["plugin"] == plugin && line["event"] == "plugin-loaded" && line["generation"] == generation
        })
        .await
    }

    /// Waits until all lines together are as wanted.
    pub(crate) async fn until(&self, is_so: impl Fn(&[Value]) -> bool) {
        let mut lines = self.lines.clone();
        let waited = tokio::time::timeout(PATIENCE, lines.wait_for(|lines| is_so(lines))).await;
        if waited.is_err() {
            let lines = self.lines();
            let last: Vec<_> = lines.iter().rev().take(40).rev().map(Value::to_string).collect();
            panic!(
                "it did not come in {PATIENCE:?}; the last of {} lines:\n{}",
                lines.len(),
                last.join("\n")
            );
        }
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.borrow().clone()
    }

    /// ConfigMaps of the namespace `default`.
    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates a ConfigMap that the hello plugins are told of.
    pub(crate) async fn create(&self, name: &str) {
        let object = json!({
            "metadata": {"name": name, "labels": {"app": "hello"}},
            "data": {"greeting": "hi"},
        });
        let object: ConfigMap = serde_json::from_value(object).unwrap();
        self.config_maps().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Changes it.
    pub(crate) async fn change(&self, name: &str, to: &str) {
        self.patch(name, &json!({"data": {"greeting": to}})).await;
    }

    /// Merges something into it.
    pub(crate) async fn patch(&self, name: &str, patch: &Value) {
        self.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Deletes it, over another connection if this one breaks.
    pub(crate) async fn delete(&self, name: &str) {
        let deleted = async {
            while let Err(error) = self.config_maps().delete(name, &DeleteParams::default()).await {
                assert!(matches!(error, kube::Error::Service(_)), "{error}");
            }
        };
        tokio::time::timeout(PATIENCE, deleted).await.unwrap();
    }

    /// What there is, as name and resourceVersion, sorted.
    pub(crate) async fn there_is(&self) -> Vec<(String, String)> {
        let list = self.config_maps().list(&ListParams::default().labels("app=hello")).await.unwrap();
        let mut objects: Vec<_> = list
            .items
            .into_iter()
            .map(|it| (it.metadata.name.unwrap(), it.metadata.resource_version.unwrap()))
            .collect();
        objects.sort();
        objects
    }

    /// Ends the host and waits until everything is gone.
    pub(crate) async fn end(mut self) {
        self.token.cancel();
        while let Some(ended) = self.host.join_next().await {
            ended.unwrap().unwrap();
        }
        self.cluster.shut_down().await;
    }

    fn replace(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        let beside = path.with_extension("tmp");
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, path).unwrap();
    }
}

/// An embedded API server and a client of its administrator.
pub(crate) async fn cluster() -> (DevCluster, kube::Client) {
    let cluster = DevCluster::start(oarlock_dev_cluster::Config::default()).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    (cluster, transport::client(config).unwrap())
}

/// Where a guest is, which `cargo xtask guests` has built.
pub(crate) fn guest_path(guest: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/guests/{guest}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask guests` first", path.display());
    path
}

// === impl Grant ===

#[async_trait]
impl Provision for Grant {
    async fn provision(&self, needs: &Needs) -> Result<(), provision::Error> {
        rbac::for_plugins(std::slice::from_ref(needs)).unwrap().apply(&self.0).await.unwrap();
        Ok(())
    }
}
