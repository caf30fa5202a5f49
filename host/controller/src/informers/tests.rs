//! Tests of informers over fake API servers, with a paused clock.

mod budget;
mod content;
mod resource_probe;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use oarlock_informer::testing::{Draft, FakeListWatch, MetadataOnly};
use oarlock_informer::{
    GroupVersionResource, Listener, ListenerConfig, Notification, Object, SharedInformer,
    list_watch::ListWatch,
    listener::Outcome,
    object::{Content, TypeMeta},
};
use oarlock_wait_until::{LIMIT, yield_until};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{InformerHandle, Informers, Limits, Purpose, ResourceSource};
use crate::report::{self, HostEvent, Reports};
use crate::tasks::Tasks;

/// A fake API server. The objects of all its resources are Pods.
#[derive(Clone, Default)]
struct FakeSource(Arc<Mutex<Served>>);

#[derive(Default)]
struct Served {
    apis: HashMap<GroupVersionResource, FakeListWatch>,
    hidden: Vec<GroupVersionResource>,
    other_versions: Vec<String>,
    similar: Option<GroupVersionResource>,
    /// Whether watches support streamed initial lists.
    streams: bool,
    n_probes: usize,
    made: Vec<Weak<dyn ListWatch>>,
}

struct Rig {
    informers: Informers,
    source: FakeSource,
    reports: Reports,
    tasks: Tasks,
}

#[async_trait]
impl ResourceSource for FakeSource {
    async fn type_of(&self, resource: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        let mut served = self.0.lock();
        served.n_probes += 1;
        Ok((!served.hidden.contains(resource)).then(|| TypeMeta::new("v1", "Pod")))
    }

    async fn other_versions(&self, _: &GroupVersionResource) -> Result<Vec<String>, String> {
        Ok(self.0.lock().other_versions.clone())
    }

    fn similar(&self, _: &GroupVersionResource) -> Option<GroupVersionResource> {
        self.0.lock().similar.clone()
    }

    fn list_watch(
        &self,
        resource: &GroupVersionResource,
        _: &TypeMeta,
        content: Content,
    ) -> Arc<dyn ListWatch> {
        let api = self.api(resource);
        let list_watch: Arc<dyn ListWatch> = match content {
            Content::Full => Arc::new(api),
            Content::Metadata => Arc::new(MetadataOnly(api)),
        };
        self.0.lock().made.push(Arc::downgrade(&list_watch));
        list_watch
    }
}

impl FakeSource {
    fn api(&self, resource: &GroupVersionResource) -> FakeListWatch {
        let mut served = self.0.lock();
        let streams = served.streams;
        let make = || {
            let api = FakeListWatch::pods();
            if !streams {
                api.decline_watch_list();
            }
            api
        };
        served.apis.entry(resource.clone()).or_insert_with(make).clone()
    }

    fn hide(&self, resource: &GroupVersionResource) {
        self.0.lock().hidden.push(resource.clone());
    }

    fn show(&self, resource: &GroupVersionResource) {
        self.0.lock().hidden.retain(|hidden| hidden != resource);
    }
}

impl Rig {
    fn new(limits: Limits) -> Self {
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let (reporter, reports) = report::channel(report::Config::default());
        let source = FakeSource::default();
        let informers = Informers::new(tasks.clone(), reporter, Arc::new(source.clone()), limits);
        Self { informers, source, reports, tasks }
    }

    fn streaming(limits: Limits) -> Self {
        let rig = Self::new(limits);
        rig.source.0.lock().streams = true;
        rig
    }

    fn handle(&self, content: Content) -> InformerHandle {
        self.informers.acquire(&pods(), plugin("p"), content).unwrap()
    }

    fn api(&self) -> FakeListWatch {
        self.source.api(&pods())
    }

    /// Waits for the next host event.
    async fn event(&mut self) -> HostEvent {
        self.reports.next().await.unwrap().event
    }

    fn has_no_event(&mut self) -> bool {
        self.reports.next().now_or_never().is_none()
    }
}

fn pods() -> GroupVersionResource {
    resource("pods")
}

fn resource(plural: &str) -> GroupVersionResource {
    GroupVersionResource::new("", "v1", plural)
}

fn plugin(name: &str) -> Purpose {
    Purpose::Plugin(name.into())
}

fn pod(key: &str) -> Draft {
    Draft::new(key).field("spec", json!({ "nodeName": "n" }))
}

fn is_full(object: &Object) -> bool {
    object.pointer(&"/spec".parse().unwrap()).is_some()
}

fn listen(informer: &SharedInformer) -> Listener {
    informer
        .add_listener(ListenerConfig { resync: Some(Duration::ZERO), ..ListenerConfig::default() })
        .unwrap()
}

/// Takes the notifications that wait in a listener.
fn received(listener: &mut Listener) -> Vec<String> {
    let mut received = Vec::new();
    while let Some(Some(delivery)) = listener.next().now_or_never() {
        let key = delivery.key.clone();
        received.push(match &delivery.notification {
            Notification::Added { object, .. } => format!("add {key}@{}", object.resource_version()),
            Notification::Updated { old, new } => {
                format!("update {key}@{}→{}", old.resource_version(), new.resource_version())
            }
            Notification::Deleted { final_state_unknown, .. } => {
                format!("delete {key}{}", if *final_state_unknown { " (unknown)" } else { "" })
            }
        });
        listener.finish(&key, Outcome::Done);
    }
    received
}

/// Waits until no task is left.
async fn all_tasks_gone(rig: &Rig) {
    let names = || match rig.tasks.names() {
        names if names.is_empty() => Ok(()),
        names => Err(names),
    };
    yield_until("the end of all tasks", LIMIT, names).await;
}

/// Waits until the watch is no longer very short, and a relist no longer reaches the new listener.
async fn settle(rig: &Rig) {
    rig.api().until_watches(1).await;
    pass(20.0).await;
}

/// Advances the clock, and runs everything that is due.
async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn promise_1_users_of_one_resource_share_one_watch() {
    let rig = Rig::streaming(Limits::default());
    let api = rig.api();
    api.put("n/a");
    let handle = |name: &&str| rig.informers.acquire(&pods(), plugin(name), Content::Full).unwrap();
    let handles: Vec<_> = ["p", "q", "r"].iter().map(handle).collect();
    for handle in &handles {
        let informer = handle.synced().await;
        let _listener = informer.add_listener(ListenerConfig::default()).unwrap();
    }
    api.until_watches(1).await;
    assert_eq!((api.lists().len(), api.watches().len()), (0, 1), "one watch, with a streamed initial list");
    assert_eq!(rig.informers.views()[0].wanted_by, ["p", "q", "r"]);
    drop(handles);
    assert!(rig.informers.views().is_empty());
    all_tasks_gone(&rig).await;
    assert_eq!(api.n_open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn promise_7_dropping_the_last_handle_frees_the_cache() {
    let rig = Rig::new(Limits::default());
    for i in 0..100 {
        rig.api().put(pod(&format!("n/{i}")));
    }
    let (one, other) = (rig.handle(Content::Full), rig.handle(Content::Metadata));
    one.synced().await;
    let usage = rig.informers.budget();
    assert!(usage.informers == 1 && usage.objects == 100 && usage.bytes > 10_000, "{usage:?}");
    drop(one);
    assert_eq!(rig.informers.budget().objects, 100, "another handle keeps the cache");
    drop(other);
    all_tasks_gone(&rig).await;
    let usage = rig.informers.budget();
    assert_eq!((usage.informers, usage.objects, usage.bytes), (0, 0, 0));
    // The list and watch is dropped with the informer.
    assert!(rig.source.0.lock().made.iter().all(|it| it.upgrade().is_none()));
    let again = rig.handle(Content::Full);
    again.synced().await;
    assert_eq!(rig.informers.budget().objects, 100, "a new handle lists again");
}
