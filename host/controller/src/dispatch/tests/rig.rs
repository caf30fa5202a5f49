//! A plugin whose instances do what the test says, over an API server in the test's hands.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_informer::shared_informer::Config;
use oarlock_informer::testing::FakeListWatch;
use oarlock_informer::{GroupVersionResource, Namespaces, SharedInformer};
use oarlock_plugin::CallError;
use oarlock_plugin::contract::{self, Content, Enqueue, Failure};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::call::{Answer, Call, Instance, MakeInstance};
use super::super::generation::{Generation, Serving, Slot, Switch};
use super::super::{Dispatcher, FaultHook, PluginQueue, RestartPolicy, RetryPolicy, Shared};
use crate::informers::{Informers, Limits, ResourceSource};
use crate::metrics::Metrics;
use crate::plan::{Exported, SubscriptionPlan};
use crate::report;
use crate::status::{PluginStatus, StatusRegistry};
use crate::subscriptions::{self, Access, Subscription};
use crate::tasks::{Criticality, Tasks};

/// What an instance answers.
pub(super) type Answering = Result<Result<Answer, Failure>, CallError>;
type Script = Arc<dyn Fn(&Told) -> Answering + Send + Sync>;

/// One call that a plugin was told, as the test reads it.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// Such as `add a@2`, `update a@2-3`, `delete a@4`, `synced 0`, `reconcile pods a`.
    pub(super) what: String,
    /// Which instance, counted from one over all generations.
    pub(super) instance: usize,
    /// How often this was told before.
    pub(super) before: usize,
    /// Since the rig was made.
    pub(super) after: Duration,
}

/// Everything that was told, and instances that tell it.
#[derive(Clone)]
pub(super) struct Guests {
    told: watch::Sender<Vec<Told>>,
    /// How long each call takes.
    pub(super) takes: Arc<Mutex<Duration>>,
    instances: Arc<Mutex<usize>>,
    began: Instant,
}

pub(super) struct Rig {
    pub(super) api: FakeListWatch,
    pub(super) guests: Guests,
    pub(super) access: watch::Sender<Access>,
    pub(super) statuses: StatusRegistry,
    pub(super) serving: Arc<Serving>,
    pub(super) stateless: bool,
    pub(super) exported: Exported,
    pub(super) enqueue: Enqueue,
    pub(super) selector: &'static str,
    pub(super) retry: RetryPolicy,
    informer: SharedInformer,
    switches: mpsc::Sender<Switch>,
    reporter: report::Reporter,
    tasks: Tasks,
    _reports: report::Reports,
}

struct Maker {
    guests: Guests,
    script: Script,
}

struct Guest {
    guests: Guests,
    script: Script,
    number: usize,
}

/// Nobody asks it: the rig brings its informer along.
struct NoSource;

pub(super) fn done() -> Answering {
    Ok(Ok(Answer::Done))
}

pub(super) fn retry() -> Answering {
    Ok(Err(Failure::Retry("not yet".to_owned())))
}

pub(super) fn terminal() -> Answering {
    Ok(Err(Failure::Terminal("never".to_owned())))
}

pub(super) fn trap() -> Answering {
    Err(CallError::Trap {
        message: "unreachable".to_owned(),
        output: String::new(),
        backtrace: String::new(),
    })
}

// === impl Rig ===

impl Rig {
    /// Makes a rig with Pods of these keys, all in the cache. Nothing serves yet.
    pub(super) async fn new(pods: &[&str]) -> Self {
        Self::with(pods, RetryPolicy::default(), None).await
    }

    pub(super) async fn with(pods: &[&str], retry: RetryPolicy, fault: Option<u64>) -> Self {
        let api = FakeListWatch::pods();
        for pod in pods {
            api.put(*pod);
        }
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let informer = SharedInformer::new(Arc::new(api.clone()), Config::new(pods_resource()));
        let running = informer.clone();
        tasks.spawn("informer", Criticality::Essential, |token| async move { running.run(token).await });
        assert!(informer.wait_for_sync().await);
        let (reporter, reports) = report::channel(report::Config::default());
        let statuses = StatusRegistry::default();
        let informers =
            Informers::new(tasks.clone(), reporter.clone(), Arc::new(NoSource), Limits::default());
        let shared = Shared {
            metrics: Metrics::new(statuses.clone(), informers, reporter.clone()),
            retry: retry.clone(),
            restart: RestartPolicy::default(),
            fault: FaultHook::new(fault),
        };
        let queue = PluginQueue::default();
        let name: Arc<str> = "p".into();
        let status = PluginStatus::loading(name.clone(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
        let handle = statuses.register(status);
        let (dispatcher, switches, serving) = Dispatcher::new(name, shared, handle, queue);
        tasks.spawn("plugin p", Criticality::Essential, |token| dispatcher.run(token));
        Self {
            api,
            guests: Guests {
                told: watch::Sender::new(Vec::new()),
                takes: Arc::default(),
                instances: Arc::default(),
                began: Instant::now(),
            },
            access: watch::Sender::new(Access::Open(Namespaces::All)),
            statuses,
            serving,
            stateless: false,
            exported: Exported { handler: true, reconciler: true },
            enqueue: Enqueue::Nothing,
            selector: "",
            retry,
            informer,
            switches,
            reporter,
            tasks,
            _reports: reports,
        }
    }

    /// Switches to a generation whose instances follow the script, as the host would.
    pub(super) async fn serve(&self, script: impl Fn(&Told) -> Answering + Send + Sync + 'static) {
        let plan = Arc::new(SubscriptionPlan::of(self.subscription()).unwrap());
        let identity = crate::identity::Identity::unfollowed("ns/p".parse().unwrap());
        let serving = self.serving.view();
        let slot = if serving.as_ref().is_some_and(|it| it.lends(&plan, &identity)) {
            Slot::GoesOn(plan)
        } else {
            let namespaces = match &*self.access.borrow() {
                Access::Open(namespaces) => namespaces.clone(),
                _ => Namespaces::Only(Default::default()),
            };
            let listener =
                self.informer.add_listener(subscriptions::listener_config(&plan, namespaces)).unwrap();
            let access = self.access.subscribe();
            Slot::Open(Box::new(Subscription { plan, listener, access, guards: Vec::new() }))
        };
        let maker = Arc::new(Maker { guests: self.guests.clone(), script: Arc::new(script) });
        let number = serving.map_or(1, |it| it.number + 1);
        let (switch, switched) = Switch::new(Generation {
            number,
            version: "0".to_owned(),
            digest: "d".to_owned(),
            identity,
            stateless: self.stateless,
            exported: self.exported,
            retry: self.retry.clone(),
            instance: maker.make().await.unwrap(),
            maker,
            subscriptions: vec![slot],
            reporter: self.reporter.about(&"p".into(), number),
            began: Instant::now(),
            guards: Vec::new(),
        });
        assert!(self.switches.send(switch).await.is_ok());
        switched.await.unwrap();
    }

    /// Waits until this was told, and returns all that was.
    pub(super) async fn until(&self, what: &str) -> Vec<String> {
        self.until_all(|told| told.iter().any(|it| it.what == what)).await
    }

    /// Waits until this was told so often, and returns all that was.
    pub(super) async fn until_times(&self, what: &str, times: usize) -> Vec<String> {
        self.until_all(|told| told.iter().filter(|it| it.what == what).count() >= times).await
    }

    pub(super) async fn until_all(&self, is_enough: impl FnMut(&Vec<Told>) -> bool) -> Vec<String> {
        let mut told = self.guests.told.subscribe();
        told.wait_for(is_enough).await.unwrap();
        self.told()
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.calls().into_iter().map(|it| it.what).collect()
    }

    pub(super) fn calls(&self) -> Vec<Told> {
        self.guests.told.borrow().clone()
    }

    pub(super) fn instances(&self) -> usize {
        *self.guests.instances.lock()
    }

    /// The time since the rig was made.
    pub(super) fn now(&self) -> Duration {
        self.guests.began.elapsed()
    }

    /// Lets everything happen that is going to happen within this time.
    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    pub(super) fn status(&self) -> PluginStatus {
        self.statuses.snapshot().remove(0)
    }

    fn subscription(&self) -> contract::Subscription {
        contract::Subscription {
            name: "pods".to_owned(),
            target: contract::GroupVersionResource {
                group: String::new(),
                version: "v1".to_owned(),
                plural: "pods".to_owned(),
            },
            namespaces: contract::Namespaces::All,
            label_selector: self.selector.to_owned(),
            conditions: Vec::new(),
            fields: Vec::new(),
            content: Content::Full,
            resync_seconds: 0,
            enqueue: self.enqueue.clone(),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tasks.token().cancel();
    }
}

fn pods_resource() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "pods")
}

// === impl Maker, Guest ===

#[async_trait]
impl MakeInstance for Maker {
    async fn make(&self) -> Result<Box<dyn Instance>, CallError> {
        let mut instances = self.guests.instances.lock();
        *instances += 1;
        Ok(Box::new(Guest { guests: self.guests.clone(), script: self.script.clone(), number: *instances }))
    }
}

#[async_trait]
impl Instance for Guest {
    async fn call(&mut self, call: &Call) -> Answering {
        let what = match call {
            Call::Add(added, _) => format!("add {}@{}", added.object.name, added.object.resource_version),
            Call::Update(updated, ..) => format!(
                "update {}@{}-{}",
                updated.object.name, updated.old.resource_version, updated.object.resource_version
            ),
            Call::Delete(deleted, _) => {
                format!("delete {}@{}", deleted.object.name, deleted.object.resource_version)
            }
            Call::Synced(synced) => format!("synced {}", synced.remaining),
            Call::Reconcile(key) => format!("reconcile {} {}", key.kind, key.object.name),
        };
        let mut told = Told { what, instance: self.number, before: 0, after: self.guests.began.elapsed() };
        self.guests.told.send_modify(|all| {
            told.before = all.iter().filter(|it| it.what == told.what).count();
            all.push(told.clone());
        });
        // A call takes time; others get theirs.
        tokio::task::yield_now().await;
        let takes = *self.guests.takes.lock();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let answer = (self.script)(&told);
        // One that passes its deadline takes that long.
        if let Err(CallError::DeadlineExceeded { limit, .. }) = &answer {
            tokio::time::sleep(*limit).await;
        }
        answer
    }
}

#[async_trait]
impl ResourceSource for NoSource {
    async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<oarlock_informer::TypeMeta>, String> {
        Ok(None)
    }

    fn list_watch(
        &self,
        _: &GroupVersionResource,
        _: &oarlock_informer::TypeMeta,
        _: oarlock_informer::Content,
    ) -> Arc<dyn oarlock_informer::ListWatch> {
        Arc::new(FakeListWatch::pods())
    }
}
