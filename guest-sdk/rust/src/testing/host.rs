//! The host of a unit test.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};

use super::cluster::{Cluster, id};
use super::instance::{Current, Instance};
use super::recorded::{Line, RecordedEvent, Write};
use crate::export::__private::metadata;
use crate::{Error, GroupVersionResource, ObjectKey, ObjectRef, Plugin, WorkKey};

/// 2026-01-01T00:00:00Z.
const START: Duration = Duration::from_secs(1_767_225_600);

thread_local! {
    static CURRENT: RefCell<Option<Rc<RefCell<State>>>> = const { RefCell::new(None) };
}

/// Answers the calls of the plugin on this thread, and records what it does. One at a time for each thread.
#[derive(Clone)]
pub struct Host {
    state: Rc<RefCell<State>>,
}

/// What a host knows.
pub(super) struct State {
    pub(super) cluster: Cluster,
    pub(super) config: Value,
    pub(super) now: Duration,
    /// What the plugin declares, once it has.
    pub(super) description: Option<metadata::Description>,
    pub(super) event: Option<Current>,
    pub(super) failures: BTreeMap<String, VecDeque<Error>>,
    pub(super) page_size: usize,
    pub(super) events: Vec<RecordedEvent>,
    pub(super) lines: Vec<Line>,
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) queue: Vec<(WorkKey, Duration)>,
    pub(super) writes: Vec<Write>,
}

// === impl Host ===

impl Host {
    /// Returns a host without objects, at 2026-01-01T00:00:00Z, with an empty configuration. It replaces the
    /// one that this thread had.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it changes the thread")]
    pub fn new() -> Self {
        let state = Rc::new(RefCell::new(State {
            cluster: Cluster::default(),
            config: json!({}),
            now: START,
            description: None,
            event: None,
            failures: BTreeMap::new(),
            page_size: 1_000,
            events: vec![],
            lines: vec![],
            metrics: BTreeMap::new(),
            queue: vec![],
            writes: vec![],
        }));
        CURRENT.set(Some(Rc::clone(&state)));
        Self { state }
    }

    /// Sets the configuration, before the plugin starts.
    pub fn configure(&self, config: Value) {
        self.state.borrow_mut().config = config;
    }

    /// Describes and starts a plugin.
    ///
    /// # Panics
    ///
    /// When the plugin does not start. A test of such an error calls [`Plugin::describe`] itself.
    #[must_use]
    pub fn start<P: Plugin>(&self) -> Instance<P> {
        self.declare::<P>();
        match P::start() {
            Ok(plugin) => Instance::new(self.clone(), plugin),
            Err(failure) => panic!("the plugin does not start: {failure:?}"),
        }
    }

    /// Declares what a plugin describes, without starting it: for tests of functions that read or write.
    ///
    /// # Panics
    ///
    /// When `describe` returns an error.
    pub fn declare<P: Plugin>(&self) {
        match P::describe() {
            Ok(description) => self.state.borrow_mut().description = Some(description.0),
            Err(error) => panic!("the plugin does not describe itself: {error}"),
        }
    }

    /// Puts an object into the cluster and the cache, without a notification. Gives it a uid, unless it has
    /// one, and a resourceVersion.
    ///
    /// # Panics
    ///
    /// When the object cannot be written as JSON.
    pub fn insert(&self, target: &GroupVersionResource, object: &impl Serialize) -> ObjectRef {
        self.state.borrow_mut().cluster.put(target, to_value(object))
    }

    /// Removes an object, without a notification.
    pub fn remove(&self, target: &GroupVersionResource, key: &ObjectKey) {
        self.state.borrow_mut().cluster.remove(target, key);
    }

    /// Returns an object as it is now.
    #[must_use]
    pub fn object(&self, target: &GroupVersionResource, key: &ObjectKey) -> Option<Value> {
        self.state.borrow().cluster.get(target, key).ok().cloned()
    }

    /// Has the next request with this verb fail: `get`, `list`, `create`, `apply`, `patch`, `replace` or
    /// `delete`; or the next Event (`event`) or key of the work queue (`queue`).
    pub fn fail_next(&self, verb: &str, error: Error) {
        self.state.borrow_mut().failures.entry(verb.to_owned()).or_default().push_back(error);
    }

    /// Has lists return at most this many objects in one page.
    pub fn set_page_size(&self, n_objects: usize) {
        self.state.borrow_mut().page_size = n_objects.max(1);
    }

    /// Sets the clock.
    pub fn set_time(&self, now: SystemTime) {
        self.state.borrow_mut().now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    }

    /// Has time pass. The test itself calls [`Instance::reconcile`] for keys that are due.
    pub fn advance(&self, duration: Duration) {
        self.state.borrow_mut().now += duration;
    }

    /// Returns the requests that changed something or tried to, in their order.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        self.state.borrow().writes.clone()
    }

    /// Returns the Events, in their order.
    #[must_use]
    pub fn events(&self) -> Vec<RecordedEvent> {
        self.state.borrow().events.clone()
    }

    /// Returns the lines of the log, in their order.
    #[must_use]
    pub fn logs(&self) -> Vec<Line> {
        self.state.borrow().lines.clone()
    }

    /// Returns the value of a metric: `host.metric("objects", &[("namespace", "home")])`.
    #[must_use]
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.state.borrow().metrics.get(&series(name, labels.iter().copied())).copied()
    }

    /// Returns the keys that the plugin added to its work queue, with their delays.
    #[must_use]
    pub fn queue(&self) -> Vec<(WorkKey, Duration)> {
        self.state.borrow().queue.clone()
    }

    pub(super) fn with<R>(&self, call: impl FnOnce(&mut State) -> R) -> R {
        call(&mut self.state.borrow_mut())
    }
}

// === impl State ===

impl State {
    /// Returns the time since the host was made.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.saturating_sub(START)
    }

    /// Returns the failure that the test wants for this verb.
    pub(super) fn fail(&mut self, verb: &str) -> Result<(), Error> {
        match self.failures.get_mut(verb).and_then(VecDeque::pop_front) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Calls a function with the state of this thread's host; returns `None` without a host.
pub(super) fn with_current<R>(call: impl FnOnce(&mut State) -> R) -> Option<R> {
    let state = CURRENT.with_borrow(Clone::clone)?;
    Some(call(&mut state.borrow_mut()))
}

/// Returns the name of a series of a metric.
pub(super) fn series<'a>(name: &str, labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut labels: Vec<_> = labels.map(|(name, value)| format!("{name}={value:?}")).collect();
    labels.sort();
    format!("{name}{{{}}}", labels.join(","))
}

pub(super) fn to_value(object: &impl Serialize) -> Value {
    match serde_json::to_value(object) {
        Ok(value) => value,
        Err(error) => panic!("the object cannot be written as JSON: {error}"),
    }
}

/// Returns which version of which object it is, and its values at the declared pointers.
pub(super) fn notified(object: &Value, pointers: &[String]) -> (ObjectRef, Vec<Option<String>>) {
    (id(object), pointers.iter().map(|pointer| object.pointer(pointer).map(Value::to_string)).collect())
}
