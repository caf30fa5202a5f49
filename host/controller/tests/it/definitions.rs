//! Informers of custom resources whose definitions are created, changed and deleted.

use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use oarlock_controller::discovery::Discovery;
use oarlock_controller::informers::{ApiSource, InformerHandle, Informers, Limits, Prunings, Purpose};
use oarlock_controller::report;
use oarlock_controller::tasks::Tasks;
use oarlock_dev_cluster::DevCluster;
use oarlock_informer::object::Fields;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_informer::{
    GroupVersionResource, Listener, ListenerConfig, Notification, Object,
    list_watch::transport,
    listener::Outcome,
    object::{Content, Namespaces},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The deadline of a wait: generous, since test machines are slow at times.
const LIMIT: Duration = Duration::from_secs(120);

struct Rig {
    cluster: DevCluster,
    client: kube::Client,
    informers: Informers,
    reports: report::Reports,
    _tasks: Tasks,
}

impl Rig {
    async fn start() -> Self {
        Self::start_with(Prunings::default()).await
    }

    async fn start_with(prunings: Prunings) -> Self {
        let cluster = DevCluster::start(oarlock_dev_cluster::Config::default()).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = transport::client(config).unwrap();
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let (reporter, reports) = report::channel(report::Config::default());
        let discovery = Arc::new(Discovery::new(client.clone()));
        let source = Arc::new(ApiSource::new(
            client.clone(),
            discovery,
            prunings,
            transport::Outages::default(),
            ConsistencyCheck::Off,
        ));
        let informers = Informers::new(tasks.clone(), reporter, source, Limits::default());
        Self { cluster, client, informers, reports, _tasks: tasks }
    }

    fn handle(&self, version: &str, content: Content) -> InformerHandle {
        let boats = GroupVersionResource::new("example.com", version, "boats");
        self.informers.acquire(&boats, Purpose::Plugin("p".into()), content).unwrap()
    }

    async fn request(&self, method: &str, path: &str, body: Value) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(
                "content-type",
                if method == "PATCH" { "application/merge-patch+json" } else { "application/json" },
            )
            .body(body.to_string().into_bytes())
            .unwrap();
        self.client.request(request).await.unwrap()
    }

    /// Defines boats in these versions, the first of which is stored.
    async fn define(&self, versions: &[(&str, bool)]) {
        let version = |(idx, (name, served)): (usize, &(&str, bool))| {
            json!({"name": name, "served": served, "storage": idx == 0, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        };
        let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let spec = json!({"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": versions});
        let name = "boats.example.com";
        let patched = http::Request::patch(format!("{path}/{name}"))
            .header("content-type", "application/merge-patch+json")
            .body(json!({ "spec": spec }).to_string().into_bytes())
            .unwrap();
        if self.client.request::<Value>(patched).await.is_err() {
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": name}, "spec": spec});
            self.request("POST", path, definition).await;
        }
    }

    async fn undefine(&self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.example.com";
        self.request("DELETE", path, json!({})).await;
    }

    async fn launch(&self, version: &str, name: &str) {
        let boat = json!({"apiVersion": format!("example.com/{version}"), "kind": "Boat",
            "metadata": {"name": name}, "spec": {"oars": 4}});
        self.request("POST", &format!("/apis/example.com/{version}/namespaces/default/boats"), boat).await;
    }

    /// Waits for a host event, and returns its line.
    async fn event(&mut self, event: &str) -> Value {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = tokio::time::timeout(LIMIT, self.reports.next()).await else {
                panic!("no {event} among {seen:#?}")
            };
            let line = serde_json::to_value(line.unwrap()).unwrap();
            if line["event"] == event {
                return line;
            }
            seen.push(line);
        }
    }
}

/// Waits for the next notification, and returns it as `add NAME`, `update NAME` or `delete NAME`.
async fn next_notification(listener: &mut Listener) -> String {
    let next = tokio::time::timeout(LIMIT, listener.next()).await;
    let delivery = next.unwrap_or_else(|_| panic!("no notification in {LIMIT:?}: {:?}", listener.stats()));
    let delivery = delivery.unwrap();
    listener.finish(&delivery.key, Outcome::Done);
    match &delivery.notification {
        Notification::Added { object, .. } => format!("add {}", object.key().name()),
        Notification::Updated { new, .. } => format!("update {}", new.key().name()),
        Notification::Deleted { object, .. } => format!("delete {}", object.key().name()),
    }
}

/// Waits until a listener receives a notification. Others may come before: a new listener receives all
/// objects.
async fn until_received(listener: &mut Listener, expected: &str) {
    let mut received = Vec::new();
    while received.last().is_none_or(|it| it != expected) {
        assert!(received.len() < 100, "no {expected:?} among {received:?}");
        received.push(next_notification(listener).await);
    }
}

fn has_spec(object: &Object) -> bool {
    object.pointer(&"/spec/oars".parse().unwrap()).is_some()
}

#[tokio::test]
async fn informers_follow_a_definition_that_is_created_deleted_and_created_again() {
    let mut rig = Rig::start().await;
    let handle = rig.handle("v1", Content::Full);
    rig.event("resource-absent").await;
    rig.define(&[("v1", true)]).await;
    rig.launch("v1", "a").await;
    let informer = handle.synced().await;
    rig.event("resource-served").await;
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    assert_eq!(next_notification(&mut listener).await, "add a");

    rig.undefine().await;
    assert_eq!(next_notification(&mut listener).await, "delete a");
    rig.event("resource-absent").await;
    assert_eq!(rig.informers.views()[0].phase, "absent");

    rig.define(&[("v1", true)]).await;
    rig.launch("v1", "b").await;
    assert_eq!(next_notification(&mut listener).await, "add b");
    rig.event("resource-served").await;
    rig.cluster.shut_down().await;
}

#[tokio::test]
async fn objects_stay_cached_while_their_version_is_not_served_and_the_report_names_the_served_ones() {
    let mut rig = Rig::start().await;
    rig.define(&[("v1", true), ("v2", true)]).await;
    rig.launch("v1", "a").await;
    let handle = rig.handle("v1", Content::Full);
    let informer = handle.synced().await;
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    assert_eq!(next_notification(&mut listener).await, "add a");

    // Another version is stored and preferred: users of this version notice nothing.
    rig.define(&[("v2", true), ("v1", true)]).await;
    rig.launch("v2", "b").await;
    until_received(&mut listener, "add b").await;
    let b = informer.indexer().get(&"default/b".parse().unwrap()).unwrap();
    assert_eq!(&*b.type_meta().api_version, "example.com/v1");

    rig.define(&[("v2", true), ("v1", false)]).await;
    let line = rig.event("resource-absent").await;
    assert!(line["message"].as_str().unwrap().contains("example.com/v2"), "{line}");
    assert_eq!(informer.indexer().len(), 2);
    rig.launch("v2", "c").await;
    rig.define(&[("v2", true), ("v1", true)]).await;
    until_received(&mut listener, "add c").await;
    rig.cluster.shut_down().await;
}

#[tokio::test]
async fn an_informer_caches_metadata_until_a_user_needs_full_objects() {
    let rig = Rig::start().await;
    rig.define(&[("v1", true)]).await;
    rig.launch("v1", "a").await;
    let small = rig.handle("v1", Content::Metadata);
    let informer = small.synced().await;
    let key = "default/a".parse().unwrap();
    let cached = || informer.indexer().get(&key).unwrap();
    assert!(!has_spec(&cached()));
    assert_eq!(&*cached().type_meta().kind, "Boat");
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    assert_eq!(next_notification(&mut listener).await, "add a");
    rig.launch("v1", "b").await;
    assert_eq!(next_notification(&mut listener).await, "add b");

    let full = rig.handle("v1", Content::Full);
    full.synced().await;
    assert!(has_spec(&cached()));
    rig.launch("v1", "c").await;
    assert_eq!(next_notification(&mut listener).await, "add c", "and no notification before it");
    rig.cluster.shut_down().await;
}

/// `--cache-drop` applies to listed and to watched objects of its resource, and to no other resource.
#[tokio::test]
async fn fields_that_the_operator_drops_are_not_cached() {
    let mut prunings = Prunings::default();
    let oars = ["/spec/oars".parse().unwrap()];
    prunings.entry("boats.example.com".parse().unwrap()).fields = Fields::without(&oars).unwrap();
    let rig = Rig::start_with(prunings).await;
    rig.define(&[("v1", true)]).await;
    rig.launch("v1", "listed").await;
    let boats = rig.handle("v1", Content::Full);
    let boats = boats.synced().await;
    rig.launch("v1", "watched").await;
    let mut listener = boats.add_listener(ListenerConfig::default()).unwrap();
    until_received(&mut listener, "add watched").await;
    let objects = boats.indexer().snapshot(&Namespaces::All);
    assert_eq!(objects.len(), 2);
    assert!(objects.iter().all(|boat| !has_spec(boat) && boat.pointer(&"/spec".parse().unwrap()).is_some()));

    let namespaces = GroupVersionResource::new("", "v1", "namespaces");
    let namespaces = rig.informers.acquire(&namespaces, Purpose::Host, Content::Full).unwrap();
    let namespace = namespaces.synced().await.indexer().get(&"default".parse().unwrap()).unwrap();
    assert!(namespace.pointer(&"/spec".parse().unwrap()).is_some());
    rig.cluster.shut_down().await;
}
