//! Plugins as objects: `Plugin` and `ClusterPlugin`.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use oarlock_component_source::{Config as SourceConfig, Fetcher, Policy};
use oarlock_controller::control;
use oarlock_controller::plugin_resource::{Config, Maxima, Plugin, crd};
use oarlock_controller::runtime;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use oarlock_plugin::Limits;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::control_socket;
use crate::rig::{Rig, guest_path, until_ok};

/// A host that runs Plugin objects, and the folder of their components.
pub(crate) struct Objects {
    pub(crate) rig: Rig,
    folder: TempDir,
}

// === impl Objects ===

impl Objects {
    pub(crate) async fn start() -> Self {
        Self::start_under(Policy::default()).await
    }

    pub(crate) async fn start_under(policy: Policy) -> Self {
        let this = Self::start_with(policy, |config| config).await;
        this.component("hello.wasm", "hello-rust");
        this
    }

    /// Starts a host with another configuration, and without components.
    pub(crate) async fn start_with(
        policy: Policy,
        change: impl FnOnce(runtime::Config) -> runtime::Config,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let state = path.join("state");
        fs::create_dir(&state).unwrap();
        let rig = Rig::start_with(|config| {
            change(runtime::Config {
                plugin_resources: Some(objects(&path, "cache", policy)),
                state_dir: Some(state),
                provision: None,
                ..config
            })
        })
        .await;
        let definitions = Api::<CustomResourceDefinition>::all(rig.client.clone());
        for definition in crd::definitions() {
            let definition = serde_json::from_value(definition).unwrap();
            definitions.create(&PostParams::default(), &definition).await.unwrap();
        }
        Self { rig, folder }
    }

    pub(crate) fn component(&self, file: &str, guest: &str) {
        self.file(file, &fs::read(guest_path(guest)).unwrap());
    }

    /// Writes a file that a source of the kind `file` may name.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    pub(crate) fn plugins(&self) -> Api<Plugin> {
        Api::default_namespaced(self.rig.client.clone())
    }

    /// Returns the configuration of a further host for the same objects and components, with an empty cache.
    pub(crate) fn further_host(&self) -> Config {
        objects(self.folder.path(), "further", Policy::default())
    }

    /// Creates an account that may do everything that the plugins of these tests do.
    pub(crate) async fn account(&self, name: &str) {
        let accounts = Api::<ServiceAccount>::default_namespaced(self.rig.client.clone());
        let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
        self.make_admin(name).await;
    }

    /// Allows an account everything.
    pub(crate) async fn make_admin(&self, name: &str) {
        let binding = json!({
            "metadata": {"name": format!("{name}-is-admin")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        });
        let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(self.rig.client.clone());
        let binding = serde_json::from_value(binding).unwrap();
        bindings.create(&PostParams::default(), &binding).await.unwrap();
    }

    pub(crate) async fn create(&self, name: &str, spec: Value) {
        let plugin = json!({
            "apiVersion": "oarlock.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec,
        });
        // The definition may not be served yet.
        until_ok("the Plugin to be created", async || {
            let plugin: Plugin = serde_json::from_value(plugin.clone()).unwrap();
            match self.plugins().create(&PostParams::default(), &plugin).await {
                Err(kube::Error::Api(error)) if error.code == 404 => Err(error.to_string()),
                created => Ok(created.unwrap()),
            }
        })
        .await;
    }

    pub(crate) async fn patch(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.plugins().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until a condition has this status and reason, and returns its message.
    pub(crate) async fn condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> String {
        until_ok(&format!("{kind}={status} {reason}"), async || {
            let plugin = self.plugins().get(name).await.unwrap();
            let conditions = plugin.status.map(|it| it.conditions).unwrap_or_default();
            let is_it = |it: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                it.type_ == kind && it.status == status && it.reason == reason
            };
            let found = conditions.iter().find(is_it).map(|it| it.message.clone());
            found.ok_or_else(|| format!("{:#}", json!(conditions)))
        })
        .await
    }
}

fn objects(folder: &Path, cache: &str, policy: Policy) -> Config {
    let fetcher = Fetcher::new(SourceConfig {
        cache: folder.join(cache),
        cache_bytes: 1 << 30,
        files: Some(folder.to_owned()),
        policy,
    });
    let limits = Limits { memory: 256 << 20, ..Limits::highest() };
    let maxima = Maxima { limits, weight: 200, ..Maxima::highest() };
    Config { fetcher: fetcher.unwrap(), namespace: "default".to_owned(), maxima }
}

/// Begins like a component, and is none.
pub(crate) const DAMAGED: &[u8] = b"\0asm\x0d\0\x01\0\x63";

pub(crate) fn hello() -> Value {
    json!({"source": {"file": {"path": "hello.wasm"}}, "serviceAccountName": "hello"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_object_serves_when_its_account_exists_and_ends_when_it_is_deleted() {
    let objects = Objects::start().await;
    objects.create("hello", hello()).await;
    let message = objects.condition("hello", "Authorized", "False", "AccountMissing").await;
    assert!(message.contains("kubectl create serviceaccount hello --namespace default"), "{message}");
    objects.account("hello").await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Serving"));
    until_ok("the observed generation", async || {
        let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap();
        if status.observed_generation == Some(1) { Ok(()) } else { Err(format!("{:#}", json!(status))) }
    })
    .await;
    assert_eq!(status.watches.as_deref(), Some("v1/configmaps"));
    assert!(status.digest.is_some_and(|it| it.starts_with("sha256:")));
    objects.rig.create("one").await;
    objects.rig.line(|it| it["plugin"] == "default.hello" && it["name"] == "one").await;
    objects.plugins().delete("hello", &DeleteParams::default()).await.unwrap();
    objects.rig.event("default.hello", "plugin-unloaded").await;
    let events = Api::<Event>::default_namespaced(objects.rig.client.clone());
    until_ok("an Event about each transition", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        let reasons: Vec<_> = events.items.into_iter().filter_map(|it| it.reason).collect();
        let has = |reason: &str| reasons.iter().any(|it| it == reason);
        if has("AccountMissing") && has("Serving") { Ok(()) } else { Err(format!("{reasons:?}")) }
    })
    .await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_plugin_object_that_cannot_be_used_leaves_the_version_before_serving() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    fs::write(objects.folder.path().join("text.wasm"), "text").unwrap();
    for (spec, kind, status, reason) in [
        (json!({"source": {"file": {"path": "text.wasm"}}}), "Verified", "False", "NotAComponent"),
        (json!({"source": {"file": {"path": "none.wasm"}}}), "Fetched", "False", "NotFound"),
        (json!({"limits": {"memory": "1Gi"}}), "Degraded", "True", "LimitExceeded"),
        (json!({"weight": 201}), "Degraded", "True", "LimitExceeded"),
        (
            json!({"configFrom": {"secret": {"name": "none", "key": "a"}}}),
            "Degraded",
            "True",
            "ConfigNotFound",
        ),
    ] {
        objects.patch("hello", spec.clone()).await;
        objects.condition("hello", kind, status, reason).await;
        objects.condition("hello", "Ready", "True", "Serving").await;
        let undone = json!({
            "source": {"file": {"path": "hello.wasm"}}, "limits": null, "weight": null, "configFrom": null,
        });
        objects.patch("hello", undone).await;
        objects.condition("hello", "Degraded", "False", "AsExpected").await;
    }
    let loads = objects.rig.lines().into_iter().filter(|it| it["event"] == "plugin-loaded").count();
    assert_eq!(loads, 1, "none of the bad versions served, and the good one was never left");
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_no_version_acts_as_an_account_that_the_spec_names_no_more() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.account("other").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    let cases = [
        (json!({"serviceAccountName": "none"}), "Authorized", "AccountMissing"),
        (json!({"serviceAccountName": "other", "weight": 201}), "Ready", "LimitExceeded"),
        (
            json!({"serviceAccountName": "other", "source": {"file": {"path": "none.wasm"}}}),
            "Fetched",
            "NotFound",
        ),
    ];
    for (n, (spec, kind, reason)) in (1..).zip(cases) {
        objects.patch("hello", spec).await;
        until_ok("the version before is unloaded", async || {
            let lines = objects.rig.lines();
            let unloaded = lines.iter().filter(|it| it["event"] == "plugin-unloaded").count();
            if unloaded == n { Ok(()) } else { Err(lines) }
        })
        .await;
        objects.condition("hello", kind, "False", reason).await;
        let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Refused"));
        let again = json!({
            "source": {"file": {"path": "hello.wasm"}}, "weight": null, "serviceAccountName": "hello",
        });
        objects.patch("hello", again).await;
        objects.condition("hello", "Ready", "True", "Serving").await;
    }
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_object_is_resumed_although_the_rest_of_its_spec_cannot_be_used() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.patch("hello", json!({"suspend": true, "weight": 201})).await;
    objects.condition("hello", "Ready", "False", "Suspended").await;
    objects.patch("hello", json!({"suspend": false})).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.condition("hello", "Degraded", "True", "LimitExceeded").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writes_of_a_plugin_object_are_suspended_although_the_rest_of_its_spec_cannot_be_used() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.patch("hello", json!({"suspendWrites": true, "weight": 201})).await;
    let is_suspended = async |expected: bool| {
        until_ok("the suspension of its writes", async || {
            let ready = objects.condition("hello", "Ready", "True", "Serving").await;
            if ready.ends_with("; its writes are suspended") == expected { Ok(()) } else { Err(ready) }
        })
        .await;
    };
    is_suspended(true).await;
    objects.condition("hello", "Degraded", "True", "LimitExceeded").await;
    objects.patch("hello", json!({"suspendWrites": false})).await;
    is_suspended(false).await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dry_runs_of_a_plugin_object_go_on_until_the_rest_of_its_spec_can_be_used() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    let mut spec = hello();
    spec["dryRun"] = true.into();
    objects.create("hello", spec).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    let broken = json!({"dryRun": false, "source": {"file": {"path": "none.wasm"}}});
    objects.patch("hello", broken).await;
    let why = objects.condition("hello", "Degraded", "True", "NotFound").await;
    assert!(why.contains("none.wasm"), "{why}");
    let ready = objects.condition("hello", "Ready", "True", "Serving").await;
    assert!(ready.ends_with(", generation 1; its writes are dry runs"), "{ready}");
    objects.patch("hello", json!({"source": {"file": {"path": "hello.wasm"}}})).await;
    until_ok("writes that are stored", async || {
        let ready = objects.condition("hello", "Ready", "True", "Serving").await;
        if ready.contains("dry runs") { Err(ready) } else { Ok(()) }
    })
    .await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_object_that_an_operator_suspended_stays_suspended_when_its_account_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let socket = control::bind(&folder.path().join("run"), None).unwrap();
    let path = socket.path().to_owned();
    let change = |config| runtime::Config { control: Some(socket), ..config };
    let objects = Objects::start_with(Policy::default(), change).await;
    objects.component("hello.wasm", "hello-rust");
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    let command = async |what: &str| {
        let request = format!("POST /v1/plugins/default.hello/{what}");
        let (answer, body) = control_socket::request(&path, &request).await;
        assert!(answer.contains("200"), "{answer} {body}");
    };
    command("suspend").await;
    objects.condition("hello", "Ready", "False", "Suspended").await;
    let accounts = Api::<ServiceAccount>::default_namespaced(objects.rig.client.clone());
    accounts.delete("hello", &DeleteParams::default()).await.unwrap();
    objects.rig.event("default.hello", "plugin-unloaded").await;
    objects.condition("hello", "Authorized", "False", "AccountMissing").await;
    let account = serde_json::from_value(json!({"metadata": {"name": "hello"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let loaded = |lines: &[Value]| lines.iter().filter(|it| it["event"] == "plugin-loaded").count() == 2;
    objects.rig.until(loaded).await;
    objects.condition("hello", "Ready", "False", "Suspended").await;
    command("resume").await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_plugin_object_is_not_called_and_loses_nothing() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    let mut spec = hello();
    spec["suspend"] = json!(true);
    objects.create("hello", spec).await;
    objects.condition("hello", "Ready", "False", "Suspended").await;
    objects.rig.create("one").await;
    objects.patch("hello", json!({"suspend": false})).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.rig.line(|it| it["plugin"] == "default.hello" && it["name"] == "one").await;
    let lines = objects.rig.lines();
    let notified: Vec<_> =
        lines.iter().filter(|it| it["event"] == "delivered" && it["name"] == "one").collect();
    assert_eq!(notified.len(), 1, "{lines:#?}");
    objects.rig.end().await;
}

/// A registry that accepts connections and never answers, and a policy that allows it.
pub(crate) fn slow_registry() -> (TcpListener, Policy) {
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    let policy = policy_for(registry.local_addr().unwrap());
    (registry, policy)
}

/// Returns a policy that allows a registry without TLS on this machine.
pub(crate) fn policy_for(address: SocketAddr) -> Policy {
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy = format!("privateAddresses: [127.0.0.1]\nplainHttp: [\"{address}\"]\n");
    fs::write(file.path(), policy).unwrap();
    Policy::read(file.path()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn suspension_and_deletion_do_not_wait_for_a_slow_registry() {
    let (registry, policy) = slow_registry();
    let reference = format!("{}/slow:1", registry.local_addr().unwrap());
    let objects = Objects::start_under(policy).await;
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    // Other Plugins of the namespace use all its turns.
    for n in 0..8 {
        let spec = json!({"source": {"oci": {"reference": reference}}, "serviceAccountName": "hello"});
        objects.create(&format!("slow-{n}"), spec).await;
    }
    let slow = json!({"oci": {"reference": reference}, "file": null});
    objects.patch("hello", json!({"source": slow})).await;
    tokio::task::spawn_blocking(move || registry.accept().map(|it| (it, registry))).await.unwrap().unwrap();
    objects.patch("hello", json!({"suspend": true})).await;
    objects.condition("hello", "Ready", "False", "Suspended").await;
    let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap();
    assert_eq!(status.observed_generation, Some(1), "the newest spec is not resolved yet");
    objects.plugins().delete("hello", &DeleteParams::default()).await.unwrap();
    objects.rig.event("default.hello", "plugin-unloaded").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_created_again_does_not_get_the_versions_of_the_old_one() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    let mut spec = hello();
    spec["probation"] = json!({"time": "0s"});
    objects.create("hello", spec.clone()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    until_ok("the last good version", async || {
        let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap_or_default();
        status.good_versions.last().cloned().ok_or_else(|| format!("{:#}", json!(status)))
    })
    .await;
    objects.plugins().delete("hello", &DeleteParams::default()).await.unwrap();
    objects.file("damaged.wasm", DAMAGED);
    spec["source"] = json!({"file": {"path": "damaged.wasm"}});
    objects.create("hello", spec).await;
    objects.condition("hello", "Ready", "False", "Refused").await;
    let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap();
    assert_eq!((status.digest, status.good_versions), (None, Vec::new()));
    let message = status.conditions.iter().find(|it| it.type_ == "Ready").map(|it| it.message.clone());
    let message = message.unwrap_or_default();
    let cache = objects.folder.path().display().to_string();
    assert!(!message.contains(&cache), "a path of the host: {message}");
    let loads = objects.rig.lines().into_iter().filter(|it| it["event"] == "plugin-loaded").count();
    assert_eq!(loads, 1);
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_another_client_clears_is_written_again() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    let cleared = Patch::Merge(json!({"status": {"phase": null, "conditions": null}}));
    objects.plugins().patch_status("hello", &PatchParams::default(), &cleared).await.unwrap();
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_the_api_server_does_not_have_is_reported_and_tried_ever_more_rarely() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    let definitions = Api::<CustomResourceDefinition>::all(objects.rig.client.clone());
    let has_status = async |has_status: bool| {
        let mut definition = definitions.get("plugins.oarlock.dev").await.unwrap();
        let subresources = has_status.then(|| serde_json::from_value(json!({"status": {}})).unwrap());
        definition.spec.versions[0].subresources = subresources;
        definitions.replace("plugins.oarlock.dev", &PostParams::default(), &definition).await.unwrap();
    };
    has_status(false).await;
    let of_host = Match { resource: Some("plugins".into()), verbs: vec!["patch".into()], ..Match::default() };
    // It only counts.
    let counted = Fault { on: of_host, action: Action::InternalError, skip: 0, times: Some(0) };
    let faults = objects.rig.cluster.faults();
    let counted = faults.add(counted);
    objects.create("hello", hello()).await;
    let reported = objects.rig.line(|line| line["event"] == "status-not-written").await;
    assert!(
        reported["message"].as_str().unwrap().starts_with("the status of Plugin default/hello: "),
        "{reported}"
    );
    let begun = Instant::now();
    let n_before = faults.matched(counted);
    tokio::time::sleep(Duration::from_secs(4)).await;
    // After 2 and 4 seconds, not each second.
    let n_writes = faults.matched(counted) - n_before;
    assert!(n_writes <= 1 || begun.elapsed() > Duration::from_secs(5), "{n_writes} writes");
    let n_reports = objects.rig.lines().iter().filter(|it| it["event"] == "status-not-written").count();
    assert_eq!(n_reports, 1);
    has_status(true).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_weight_of_a_plugin_object_is_never_above_the_maximum() {
    let objects = Objects::start_with(Policy::default(), |mut config| {
        config.plugin_resources.as_mut().unwrap().maxima.weight = 50;
        config
    })
    .await;
    objects.component("hello.wasm", "hello-rust");
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    assert_eq!(objects.plugins().get("hello").await.unwrap().spec.weight, None);
    objects.patch("hello", json!({"weight": 51})).await;
    objects.condition("hello", "Degraded", "True", "LimitExceeded").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_specs_that_cannot_be_meant() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.create("hello", hello()).await;
    let with = |key: &str, value: Value| {
        let mut spec = hello();
        spec[key] = value;
        spec
    };
    let none = json!({"serviceAccountName": "hello", "source": {}});
    let two = with("source", json!({"file": {"path": "a"}, "secret": {"name": "a", "key": "b"}}));
    for (name, spec, wrong) in [
        ("a", none, "exactly one of oci, https, configMap, secret and file must be set"),
        ("a", two, "exactly one of"),
        ("a", with("concurrency", json!(0)), "spec.concurrency"),
        ("a", with("limits", json!({"memory": "64MB"})), "spec.limits.memory"),
        ("a", with("retry", json!({"maxDelay": "5 minutes"})), "spec.retry.maxDelay"),
        (
            "a",
            with("retry", json!({"initialDelay": "2s", "maxDelay": "1500ms"})),
            "maxDelay must not be less",
        ),
        ("a", with("configFrom", json!({})), "exactly one of configMap and secret must be set"),
        ("a.b", hello(), "the name must be a DNS label other than shadow"),
    ] {
        let plugin = json!({
            "apiVersion": "oarlock.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec,
        });
        let request = http::Request::post("/apis/oarlock.dev/v1alpha1/namespaces/default/plugins")
            .header("content-type", "application/json")
            .body(plugin.to_string().into_bytes())
            .unwrap();
        let refused = objects.rig.client.request::<Value>(request).await.unwrap_err().to_string();
        assert!(refused.contains(wrong), "{spec}: {refused}");
    }
    // What only the host checks is said in the status.
    objects.create("b", with("retry", json!({"initialDelay": "0s"}))).await;
    let refused = objects.condition("b", "Ready", "False", "InvalidSpec").await;
    assert!(refused.starts_with("spec.retry.initialDelay: 0"), "{refused}");
    objects.create("c", with("retry", json!({"initialDelay": "900ms", "maxDelay": "1s"}))).await;
    objects.condition("c", "Ready", "True", "Serving").await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writes_of_a_plugin_object_are_suspended_and_it_is_called() {
    let objects = Objects::start().await;
    objects.component("writes.wasm", "writes");
    objects.account("w").await;
    let source = json!({"file": {"path": "writes.wasm"}});
    objects.create("w", json!({"source": source, "serviceAccountName": "w", "suspendWrites": true})).await;
    let ready = objects.condition("w", "Ready", "True", "Serving").await;
    assert!(ready.ends_with("; its writes are suspended"), "{ready}");
    objects.rig.create("one").await;
    let refused = objects
        .rig
        .line(|it| it["event"] == "delivered" && it["name"] == "one" && it["outcome"] != "done")
        .await;
    assert!(refused.to_string().contains("Suspended"), "{refused}");
    let copy = async || objects.rig.config_maps().get_opt("copy-of-one").await.unwrap();
    assert_eq!(copy().await, None);
    objects.patch("w", json!({"suspendWrites": false})).await;
    until_ok("the copy", async || copy().await.ok_or("there is none")).await;
    objects.patch("w", json!({"dryRun": true})).await;
    until_ok("the condition", async || {
        let ready = objects.condition("w", "Ready", "True", "Serving").await;
        if ready.ends_with("; its writes are dry runs") { Ok(()) } else { Err(ready) }
    })
    .await;
    objects.rig.end().await;
}
