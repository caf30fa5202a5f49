//! A plugin whose instances follow the test's script, over a fake API server that the test controls.

use std::future::poll_fn;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::channel::mpsc;
use futures::{FutureExt as _, SinkExt};
use oarlock_informer::shared_informer::Config;
use oarlock_informer::testing::FakeListWatch;
use oarlock_informer::{GroupVersionResource, Notification, Object, SharedInformer, object::Namespaces};
use oarlock_plugin::CallError;
use oarlock_plugin::contract::{self, Content, Enqueue, Failure};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::control::Control;
use crate::dispatch::call::{Answer, Call, Instance, MakeInstance};
use crate::dispatch::generation::{ActiveView, Generation, GenerationSubscription, Switch};
use crate::dispatch::health::GenerationHealth;
use crate::dispatch::{
    BusyLimit, Commands, Dispatcher, DispatcherHandle, DispatcherShared, FaultHook, LaneConfig, PluginQueue,
    RestartPolicy, RetryPolicy, RollBack,
};
use crate::drain::Drain;
use crate::generations::{GenerationState, Generations, Purpose};
use crate::informers::{Informers, Limits, ResourceSource};
use crate::kube_access::OwnWrites;
use crate::leadership::Leadership;
use crate::metrics::{ClientMetrics, Metrics};
use crate::plan::{Exported, SubscriptionPlan};
use crate::report;
use crate::schedule::WallClock;
use crate::status::{PluginStatus, StatusRegistry};
use crate::subscriptions::{self, Subscription};
use crate::tasks::{Criticality, Tasks};
use crate::traces::Traces;
use crate::write_settings::WriteSettings;

/// The deadline of a wait, by the paused clock: longer than any back-off.
const LIMIT: Duration = Duration::from_secs(3_600);

/// How long calls may take when the plugin is to end.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// An instance's answer to a call.
pub(super) type Answering = Result<Result<Answer, Failure>, CallError>;
type Script = Arc<dyn Fn(&ReceivedCall) -> Answering + Send + Sync>;

/// One call that an instance received.
#[derive(Clone, Debug)]
pub(super) struct ReceivedCall {
    /// Such as `add a@2`, `update a@2-3`, `delete a@4`, `synced 0`, `reconcile pods a`.
    pub(super) text: String,
    /// The name of its subscription; empty for a key.
    pub(super) subscription: String,
    /// The number of the instance, counted from one over all generations.
    pub(super) instance: usize,
    /// How often an instance received the same text before.
    pub(super) n_before: usize,
    /// When, since the rig was created.
    pub(super) after: Duration,
}

/// The state that all instances of the plugin share: the calls that they received.
#[derive(Clone)]
pub(super) struct Guests {
    received: watch::Sender<Vec<ReceivedCall>>,
    /// How long each call takes.
    pub(super) takes: Arc<Mutex<Duration>>,
    /// How long it takes to make an instance.
    pub(super) making_takes: Arc<Mutex<Duration>>,
    /// The size of each instance's memory.
    pub(super) memory_bytes: Arc<Mutex<u64>>,
    /// Whether each further instance traps at its start.
    pub(super) cannot_start: Arc<Mutex<bool>>,
    instances: Arc<Mutex<usize>>,
    alive: Arc<Mutex<usize>>,
    in_progress: Arc<Mutex<InProgress>>,
    began: Instant,
}

#[derive(Default)]
struct InProgress {
    /// What the calls in progress are about.
    objects: Vec<String>,
    most: usize,
}

/// Notes the end of a call, however it ends.
struct CallGuard<'a>(&'a Guests, String);

pub(super) struct Rig {
    pub(super) api: FakeListWatch,
    pub(super) guests: Guests,
    pub(super) access: watch::Sender<Access>,
    pub(super) statuses: StatusRegistry,
    pub(super) active: Arc<ActiveView>,
    pub(super) stateless: bool,
    pub(super) exported: Exported,
    pub(super) enqueue: Enqueue,
    pub(super) selector: &'static str,
    pub(super) conditions: Vec<contract::FieldCondition>,
    pub(super) resync_seconds: u32,
    /// The names of further subscriptions to Pods.
    pub(super) more: Vec<&'static str>,
    /// The plugin has a lister `pods` that wakes.
    pub(super) wakes: bool,
    pub(super) queue: PluginQueue,
    pub(super) retry: RetryPolicy,
    pub(super) health: Arc<GenerationHealth>,
    pub(super) lanes: LaneConfig,
    pub(super) commands: Commands,
    metrics: Metrics,
    /// How often the dispatcher's task was polled.
    n_polls: Arc<AtomicUsize>,
    /// The size of the dispatcher's future.
    pub(super) run_bytes: usize,
    pub(super) leadership: Leadership,
    pub(super) drain: Drain,
    pub(super) busy_limit: BusyLimit,
    informer: SharedInformer,
    switches: mpsc::Sender<Switch>,
    reporter: report::Reporter,
    generations: Generations,
    tasks: Tasks,
    reports: report::Reports,
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

/// Nothing asks this source: the rig has an informer of its own.
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

/// The answer of a call that computes beyond this deadline.
pub(super) fn loops(limit: Duration) -> Answering {
    Err(CallError::DeadlineExceeded {
        limit,
        waiting_for: None,
        output: String::new(),
        backtrace: String::new(),
    })
}

// === impl Rig ===

impl Rig {
    /// Creates a rig whose cache has Pods of these keys. No generation serves yet.
    pub(super) async fn new(pods: &[&str]) -> Self {
        Self::with(pods, RetryPolicy::default(), None).await
    }

    /// Creates a rig on a host that is on standby.
    pub(super) async fn on_standby(pods: &[&str]) -> Self {
        Self::of(pods, RetryPolicy::default(), None, Leadership::standby()).await
    }

    pub(super) async fn with(pods: &[&str], retry: RetryPolicy, fault: Option<u64>) -> Self {
        Self::of(pods, retry, fault, Leadership::sole()).await
    }

    async fn of(pods: &[&str], retry: RetryPolicy, fault: Option<u64>, leadership: Leadership) -> Self {
        let api = FakeListWatch::pods();
        for pod in pods {
            api.put(*pod);
        }
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let config = Config { resync_period: Duration::from_secs(1), ..Config::new(pods_resource()) };
        let informer = SharedInformer::new(Arc::new(api.clone()), config);
        let running = informer.clone();
        tasks.spawn("informer", Criticality::Essential, |token| async move { running.run(token).await });
        assert!(informer.wait_for_sync().await);
        let (reporter, reports) = report::channel(report::Config::default());
        let statuses = StatusRegistry::default();
        let informers =
            Informers::new(tasks.clone(), reporter.clone(), Arc::new(NoSource), Limits::default());
        let drain = Drain::new(DRAIN_TIMEOUT);
        let busy_limit = BusyLimit::new(1);
        let metrics = Metrics::new(
            statuses.clone(),
            informers,
            reporter.clone(),
            ClientMetrics::default(),
            Traces::default(),
        );
        let shared = DispatcherShared {
            metrics: metrics.clone(),
            retry: retry.clone(),
            restart: RestartPolicy::default(),
            fault: FaultHook::new(fault),
            wall_clock: WallClock::system(),
            tasks: tasks.clone(),
            busy_limit: busy_limit.clone(),
            leadership: leadership.clone(),
            drain: drain.clone(),
            traces: Traces::default(),
            reporter: reporter.clone(),
        };
        let queue = PluginQueue::default();
        let name: Arc<str> = "p".into();
        let status = PluginStatus::loading(name.clone(), "p.yaml".into(), "p.wasm".into(), "ns/p".into());
        let handle = statuses.register(status);
        let status = handle.clone();
        let (dispatcher, handle) = Dispatcher::new(name, shared, handle, queue.clone(), OwnWrites::default());
        let DispatcherHandle { switches, active, commands, suspension: _ } = handle;
        status.set_commands(commands.clone());
        let n_polls = Arc::new(AtomicUsize::new(0));
        let mut run_bytes = 0;
        tasks.spawn("plugin p", Criticality::Essential, |token| {
            let (mut run, n_polls) = (Box::pin(dispatcher.run(token)), n_polls.clone());
            run_bytes = size_of_val(&*run);
            poll_fn(move |context| {
                n_polls.fetch_add(1, Ordering::Relaxed);
                run.as_mut().poll(context)
            })
        });
        Self {
            api,
            guests: Guests {
                received: watch::Sender::new(Vec::new()),
                takes: Arc::default(),
                making_takes: Arc::default(),
                memory_bytes: Arc::default(),
                cannot_start: Arc::default(),
                alive: Arc::default(),
                in_progress: Arc::default(),
                instances: Arc::default(),
                began: Instant::now(),
            },
            access: watch::Sender::new(Access::Allowed(Namespaces::All)),
            statuses,
            active,
            stateless: false,
            exported: Exported { handler: true, reconciler: true },
            enqueue: Enqueue::Nothing,
            selector: "",
            conditions: Vec::new(),
            resync_seconds: 0,
            more: Vec::new(),
            wakes: false,
            queue,
            retry,
            health: Arc::default(),
            lanes: LaneConfig::single(),
            commands,
            metrics,
            n_polls,
            run_bytes,
            leadership,
            drain,
            busy_limit,
            informer,
            switches,
            generations: Generations::new("p".into(), reporter.clone()),
            reporter,
            tasks,
            reports,
        }
    }

    /// Returns the operations of the control socket.
    pub(super) fn control(&self) -> Control {
        Control {
            statuses: self.statuses.clone(),
            metrics: self.metrics.clone(),
            reporter: self.reporter.clone(),
            rollback: crate::reload::rollbacks().0,
            host: Arc::default(),
            leadership: self.leadership.clone(),
            token: CancellationToken::new(),
        }
    }

    /// Asks the dispatcher to end, and waits until it has.
    pub(super) async fn end(&self) {
        self.tasks.token().cancel();
        self.drain.ended().await;
    }

    /// Switches to a generation whose instances follow the script.
    pub(super) async fn serve(&self, script: impl Fn(&ReceivedCall) -> Answering + Send + Sync + 'static) {
        let subscription = self.open(SubscriptionPlan::of(self.subscription()).unwrap());
        let (switch, switched) = self.switch(script, subscription).await;
        assert!(self.switches.clone().send(switch).await.is_ok());
        switched.await.unwrap();
    }

    /// Goes back to such a generation, for this reason.
    pub(super) async fn go_back(&self, reason: &str) {
        let subscription = self.open(SubscriptionPlan::of(self.subscription()).unwrap());
        let (switch, switched) = self.switch(|_| done(), subscription).await;
        assert!(self.switches.clone().send(switch.rolls_back(roll_back(reason))).await.is_ok());
        switched.await.unwrap();
    }

    /// Tries to go back to a generation that the dispatcher refuses: it inherits a listener that no
    /// generation has.
    pub(super) async fn go_back_in_vain(&self, reason: &str) {
        let unknown = contract::Subscription { name: "unknown".to_owned(), ..self.subscription() };
        let unknown =
            GenerationSubscription::InheritsListener(Arc::new(SubscriptionPlan::of(unknown).unwrap()));
        let (switch, switched) = self.switch(|_| done(), unknown).await;
        assert!(self.switches.clone().send(switch.rolls_back(roll_back(reason))).await.is_ok());
        assert!(switched.await.is_err(), "the dispatcher refuses it");
    }

    /// Returns the state of each generation.
    pub(super) fn states(&self) -> Vec<GenerationState> {
        self.generations.views().into_iter().map(|it| it.state).collect()
    }

    /// Returns the switch to a generation with this subscription, and the receiver of its end.
    async fn switch(
        &self,
        script: impl Fn(&ReceivedCall) -> Answering + Send + Sync + 'static,
        subscription: GenerationSubscription,
    ) -> (Switch, oneshot::Receiver<()>) {
        let mut subscriptions = vec![subscription];
        for name in &self.more {
            let more = contract::Subscription { name: (*name).to_owned(), ..self.subscription() };
            subscriptions.push(self.open(SubscriptionPlan::of(more).unwrap()));
        }
        if self.wakes {
            let read = contract::Read {
                name: "pods".to_owned(),
                target: self.subscription().target,
                namespaces: contract::Namespaces::All,
                content: Content::Full,
                wakes: true,
            };
            subscriptions.push(self.open(SubscriptionPlan::waking(&read, &[]).unwrap()));
        }
        let identity = crate::identity::Identity::unfollowed("ns/p".parse().unwrap());
        let active = self.active.get();
        let maker = Arc::new(Maker { guests: self.guests.clone(), script: Arc::new(script) });
        let number = active.map_or(1, |it| it.number + 1);
        let progress = self.generations.begin(Purpose::Newest);
        progress.compiled("d".to_owned());
        progress.checked("0".to_owned());
        progress.warming();
        Switch::new(Generation {
            number,
            version: "0".to_owned(),
            digest: "d".to_owned(),
            writes: WriteSettings::default(),
            identity,
            stateless: self.stateless,
            exported: self.exported,
            retry: self.retry.clone(),
            health: self.health.clone(),
            instance: maker.make().await.unwrap(),
            maker,
            lanes: self.lanes.clone(),
            subscriptions,
            schedules: Arc::from([]),
            reporter: self.reporter.about(&"p".into(), number),
            began: Instant::now(),
            progress,
            guards: Vec::new(),
        })
    }

    /// Opens a subscription, or lets it inherit the listener of the generation before.
    fn open(&self, plan: SubscriptionPlan) -> GenerationSubscription {
        let plan = Arc::new(plan);
        let identity = crate::identity::Identity::unfollowed("ns/p".parse().unwrap());
        let active = self.active.get();
        if active.as_ref().is_some_and(|it| it.can_inherit_listener(&plan, &identity)) {
            GenerationSubscription::InheritsListener(plan)
        } else {
            let namespaces = match &*self.access.borrow() {
                Access::Allowed(namespaces) => namespaces.clone(),
                _ => Namespaces::Only(Default::default()),
            };
            let listener =
                self.informer.add_listener(subscriptions::listener_config(&plan, namespaces)).unwrap();
            let access = self.access.subscribe();
            let subscription = Subscription { plan, listener, access, informer_handle: Box::new(()) };
            GenerationSubscription::New(Box::new(subscription))
        }
    }

    /// Waits until an instance received this call, and returns all calls.
    #[track_caller]
    pub(super) fn until(&self, text: &str) -> impl Future<Output = Vec<String>> {
        self.until_times(text, 1)
    }

    /// Waits until instances received this call so often, and returns all calls.
    #[track_caller]
    pub(super) fn until_times(&self, text: &str, times: usize) -> impl Future<Output = Vec<String>> {
        let what = format!("{text:?}, {times} times");
        let is_enough =
            move |received: &[ReceivedCall]| received.iter().filter(|it| it.text == text).count() >= times;
        self.until_all(what, is_enough)
    }

    /// Waits until the received calls satisfy the predicate, and returns them.
    ///
    /// # Panics
    ///
    /// After [`LIMIT`], with the calls that were received and the plugin's status.
    #[track_caller]
    pub(super) fn until_all(
        &self,
        what: impl Into<String>,
        is_enough: impl Fn(&[ReceivedCall]) -> bool,
    ) -> impl Future<Output = Vec<String>> {
        let caller = Location::caller();
        let what = what.into();
        async move {
            let mut received = self.guests.received.subscribe();
            let waited = tokio::time::timeout(LIMIT, received.wait_for(|received| is_enough(received))).await;
            assert!(
                waited.is_ok(),
                "{caller}: waited {LIMIT:?} for {what}; received {:#?}; {:#?}",
                self.received(),
                self.status()
            );
            self.received()
        }
    }

    /// Returns the texts of all received calls.
    pub(super) fn received(&self) -> Vec<String> {
        self.calls().into_iter().map(|it| it.text).collect()
    }

    /// Returns all received calls.
    pub(super) fn calls(&self) -> Vec<ReceivedCall> {
        self.guests.received.borrow().clone()
    }

    /// Returns how long each restart took that was reported since the last question.
    pub(super) fn restarts(&mut self) -> Vec<Duration> {
        let took = |line: report::Line| match line.event {
            report::HostEvent::InstanceRestarted { took_us, .. } => Some(Duration::from_micros(took_us)),
            _ => None,
        };
        self.lines().filter_map(took).collect()
    }

    /// Returns the lost instances that were reported since the last call.
    pub(super) fn losses(&mut self) -> Vec<String> {
        let lost = |line: report::Line| match line.event {
            report::HostEvent::InstanceLost { function, about, reason, restart_after_ms, .. } => {
                Some(format!("{function} {about}: {reason}, next instance {restart_after_ms:?}"))
            }
            _ => None,
        };
        self.lines().filter_map(lost).collect()
    }

    /// Returns the suspensions and their ends that were reported since the last call.
    pub(super) fn suspensions(&mut self) -> Vec<String> {
        let shown = |line: report::Line| match line.event {
            report::HostEvent::PluginSuspended { .. } | report::HostEvent::PluginResumed { .. } => {
                Some(format!("{} #{} {}", line.event.level(), line.generation?, line.event))
            }
            _ => None,
        };
        self.lines().filter_map(shown).collect()
    }

    pub(super) fn lines(&mut self) -> impl Iterator<Item = report::Line> {
        std::iter::from_fn(|| self.reports.next().now_or_never().flatten())
    }

    pub(super) fn instances(&self) -> usize {
        *self.guests.instances.lock()
    }

    /// Returns how many instances exist now.
    pub(super) fn alive(&self) -> usize {
        *self.guests.alive.lock()
    }

    /// Returns the most calls that were ever in progress at once.
    pub(super) fn most_at_once(&self) -> usize {
        self.guests.in_progress.lock().most
    }

    /// Returns the time since the rig was created.
    pub(super) fn now(&self) -> Duration {
        self.guests.began.elapsed()
    }

    /// Returns how often the dispatcher's task was polled.
    pub(super) fn n_polls(&self) -> usize {
        self.n_polls.load(Ordering::Relaxed)
    }

    /// Lets this time pass on the paused clock.
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
            conditions: self.conditions.clone(),
            fields: Vec::new(),
            content: Content::Full,
            resync_seconds: self.resync_seconds,
            enqueue: self.enqueue.clone(),
            ignore_own_writes: false,
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
        let takes = *self.guests.making_takes.lock();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let mut instances = self.guests.instances.lock();
        *instances += 1;
        if *self.guests.cannot_start.lock() {
            return Err(CallError::CannotStart { message: "unreachable".to_owned() });
        }
        *self.guests.alive.lock() += 1;
        Ok(Box::new(Guest { guests: self.guests.clone(), script: self.script.clone(), number: *instances }))
    }
}

#[async_trait]
impl Instance for Guest {
    fn memory_bytes(&self) -> u64 {
        *self.guests.memory_bytes.lock()
    }

    async fn call(&mut self, call: &Call<'_>) -> Answering {
        let (text, subscription) = match call {
            Call::Notification(call) => (describe(call.notification), call.plan.name.clone()),
            Call::Synced(synced) => (format!("synced {}", synced.remaining), synced.subscription.clone()),
            Call::Reconcile(key) => (format!("reconcile {} {}", key.kind, key.object.name), String::new()),
        };
        let _guard = self.guests.begin(&text);
        let takes = *self.guests.takes.lock();
        let after = self.guests.began.elapsed();
        let mut received = ReceivedCall { text, subscription, instance: self.number, n_before: 0, after };
        self.guests.received.send_modify(|all| {
            received.n_before = all.iter().filter(|it| it.text == received.text).count();
            all.push(received.clone());
        });
        // Other tasks run during a call.
        tokio::task::yield_now().await;
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let answer = (self.script)(&received);
        // A call that exceeds its deadline takes that long.
        if let Err(CallError::DeadlineExceeded { limit, .. }) = &answer {
            tokio::time::sleep(*limit).await;
        }
        answer
    }
}

fn describe(notification: &Notification) -> String {
    let text = |object: &Object| format!("{}@{}", object.key().name(), object.resource_version());
    match notification {
        Notification::Added { object, .. } => format!("add {}", text(object)),
        Notification::Updated { old, new } => {
            format!("update {}@{}-{}", new.key().name(), old.resource_version(), new.resource_version())
        }
        Notification::Deleted { object, .. } => format!("delete {}", text(object)),
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        *self.guests.alive.lock() -= 1;
    }
}

impl Guests {
    /// Notes that a call begins. No other call about the same object may be in progress.
    fn begin(&self, text: &str) -> CallGuard<'_> {
        let about = text.split('@').next().unwrap().split_once(' ').unwrap().1.to_owned();
        let mut in_progress = self.in_progress.lock();
        assert!(!in_progress.objects.contains(&about), "two calls about {about} at once");
        in_progress.objects.push(about.clone());
        in_progress.most = in_progress.most.max(in_progress.objects.len());
        CallGuard(self, about)
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.0.in_progress.lock().objects.retain(|it| *it != self.1);
    }
}

#[async_trait]
impl ResourceSource for NoSource {
    async fn type_of(
        &self,
        _: &GroupVersionResource,
    ) -> Result<Option<oarlock_informer::object::TypeMeta>, String> {
        Ok(None)
    }

    fn list_watch(
        &self,
        _: &GroupVersionResource,
        _: &oarlock_informer::object::TypeMeta,
        _: oarlock_informer::object::Content,
    ) -> Arc<dyn oarlock_informer::list_watch::ListWatch> {
        Arc::new(FakeListWatch::pods())
    }
}

fn roll_back(reason: &str) -> RollBack {
    let event = report::HostEvent::PluginRolledBack {
        version: "0".to_owned(),
        digest: "d".to_owned(),
        message: reason.to_owned(),
        to_version: "0".to_owned(),
        to_digest: "d".to_owned(),
    };
    RollBack { reason: reason.to_owned(), event }
}
