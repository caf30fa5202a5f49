//! `Controller`: what is watched, and the functions that are called, as in kube-rs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::Api;
use super::names::ObjectRef;
use crate::event::{self, Version};
use crate::{
    Description, Enqueue, Error, Failure, Lister, Object, ObjectKey, Outcome, Read, Request, Resource,
    Subscription, WorkKey, enqueue_controller_owner, requeue_after, retry_after, selector, work_key,
    work_queue,
};

/// What happens after `reconcile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(Option<Duration>);

/// A controller for the objects of one resource.
#[must_use]
pub struct Controller<K> {
    subscriptions: Vec<Subscription>,
    mappers: BTreeMap<String, Mapper>,
    /// The selector of the objects that are reconciled.
    labels: String,
    read: Read,
    requests: Vec<Request>,
    resource: PhantomData<fn() -> K>,
}

/// Returns the objects that are reconciled for a state of the object of a notification.
type Mapper = Box<dyn Fn(Version) -> Result<Vec<ObjectKey>, Error>>;

/// A controller that can run: what [`Controller::run`] returns and [`crate::export_controller`] exports.
pub trait Run {
    #[doc(hidden)]
    fn describe(&self, name: &str, version: &str) -> Result<Description, String>;

    #[doc(hidden)]
    fn notified(&self, subscription: &str, states: &[Version]) -> Result<(), Failure>;

    #[doc(hidden)]
    fn reconcile(&self, key: &WorkKey) -> Result<Outcome, Failure>;
}

/// What a [`Controller`] watches.
pub mod watcher {
    /// Restricts what is watched.
    #[derive(Clone, Debug, Default)]
    pub struct Config {
        pub(super) labels: String,
    }

    impl Config {
        /// Restricts the watch to objects whose labels match.
        #[must_use]
        pub fn labels(mut self, selector: &str) -> Self {
            selector.clone_into(&mut self.labels);
            self
        }
    }
}

struct Running<K, Ctx, R> {
    controller: Controller<K>,
    /// Calls both functions.
    reconcile: R,
    context: Arc<Ctx>,
}

// === impl Action ===

impl Action {
    /// Has the object reconciled again after this time.
    #[must_use]
    pub const fn requeue(after: Duration) -> Self {
        Self(Some(after))
    }

    /// Has the object reconciled when it, or an object that it owns, changes.
    #[must_use]
    pub const fn await_change() -> Self {
        Self(None)
    }
}

// === impl Controller ===

impl<K: Resource> Controller<K> {
    /// Returns a controller for the objects of a resource.
    pub fn new(api: Api<K>, config: watcher::Config) -> Self {
        let read = Read::from(Lister::new(K::PLURAL, K::GROUP, K::VERSION, K::PLURAL));
        let read = match api.namespace() {
            Some(namespace) => read.namespace(namespace),
            None => read,
        };
        let objects = subscription(K::KIND, &api, &config).enqueue(Enqueue::Itself);
        Self {
            subscriptions: vec![objects],
            mappers: BTreeMap::new(),
            labels: config.labels,
            read,
            requests: vec![],
            resource: PhantomData,
        }
    }

    /// Reconciles the owner when an object of another resource changes whose controller it is.
    pub fn owns<C: Resource>(self, api: Api<C>, config: watcher::Config) -> Self {
        let name = self.unused(&format!("owned-{}", C::PLURAL));
        let rule = enqueue_controller_owner(K::GROUP, K::KIND);
        self.subscribe(subscription(&name, &api, &config).enqueue(rule))
    }

    /// Reconciles the objects that `mapper` names when an object of another resource changes.
    ///
    /// The host calls the plugin for each change, so nothing is lost while a call fails, an instance ends or
    /// a version with the same subscription takes over. If `config` differs between two versions, the new one
    /// is not called for objects that no longer match. The mapper gets the new state; after a change also the
    /// old one, so that an object that is no longer named is reconciled too; after a delete the last known
    /// one. An object that cannot be parsed as `Other` is parked.
    pub fn watches<Other, I>(
        mut self,
        api: Api<Other>,
        config: watcher::Config,
        mapper: impl Fn(Other) -> I + 'static,
    ) -> Self
    where
        Other: Resource + DeserializeOwned + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        let name = self.unused(&format!("watched-{}", Other::PLURAL));
        let subscription = subscription(&name, &api, &config);
        let keys = move |state| {
            let object = event::object::<Other>(state)?;
            Ok(mapper(object).into_iter().map(ObjectRef::into_key).collect())
        };
        self.mappers.insert(name, Box::new(keys));
        self.subscribe(subscription)
    }

    /// Returns a name that no subscription has.
    fn unused(&self, name: &str) -> String {
        let names = (2..).map(|n| format!("{name}-{n}"));
        let mut names = std::iter::once(name.to_owned()).chain(names);
        let is_used = |name: &String| self.subscriptions.iter().any(|it| it.0.name == *name);
        names.find(|name| !is_used(name)).unwrap_or_default()
    }

    /// Adds a subscription, whose rule ([`Subscription::enqueue`]) says which object is reconciled.
    pub fn subscribe(mut self, subscription: Subscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    /// Declares requests, for which `oarlock rbac` prints a Role.
    pub fn request(mut self, request: Request) -> Self {
        self.requests.push(request);
        self
    }

    /// Returns the controller with the functions that it calls: `reconcile` for an object, and `error_policy`
    /// when that failed.
    pub fn run<Ctx, Error, Fut>(
        self,
        reconcile: impl Fn(Arc<K>, Arc<Ctx>) -> Fut + 'static,
        error_policy: impl Fn(Arc<K>, &Error, Arc<Ctx>) -> Action + 'static,
        context: Arc<Ctx>,
    ) -> impl Run + 'static
    where
        K: DeserializeOwned + 'static,
        Ctx: 'static,
        Error: Debug + 'static,
        Fut: Future<Output = Result<Action, Error>> + 'static,
    {
        let reconcile = move |object: Arc<K>, context: Arc<Ctx>| {
            let now = ready(reconcile(Arc::clone(&object), Arc::clone(&context)))?;
            now.map_err(|error| match error_policy(object, &error, context).0 {
                Some(wait) => retry_after(format!("{error:?}"), wait),
                None => Failure::Terminal(format!("{error:?}")),
            })
        };
        Running { controller: self, reconcile, context }
    }
}

fn subscription<K: Resource>(name: &str, api: &Api<K>, config: &watcher::Config) -> Subscription {
    let subscription = Subscription::of::<K>(name).label_selector(&config.labels);
    match api.namespace() {
        Some(namespace) => subscription.namespace(namespace),
        None => subscription,
    }
}

/// Has an object reconciled.
fn queue<K: Resource>(object: ObjectKey) -> Result<(), Failure> {
    // A queue that is full has room again later.
    work_queue::add(&work_key(K::KIND, object)).map_err(|error| Failure::Retry(error.to_string()))
}

/// Returns the result of a future that does not wait.
pub(super) fn ready<F: Future>(future: F) -> Result<F::Output, Failure> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err(Failure::Terminal(
            "reconcile waits for something else than the host: a plugin has no timers and no other clients"
                .to_owned(),
        )),
    }
}

// === impl Running ===

impl<K, Ctx, R> Run for Running<K, Ctx, R>
where
    K: Resource + DeserializeOwned,
    R: Fn(Arc<K>, Arc<Ctx>) -> Result<Action, Failure>,
{
    fn describe(&self, name: &str, version: &str) -> Result<Description, String> {
        let Controller { subscriptions, mappers, read, requests, .. } = &self.controller;
        let adds_no_key =
            |it: &&Subscription| it.0.enqueue == Enqueue::Nothing && !mappers.contains_key(&it.0.name);
        if let Some(Subscription(it)) = subscriptions.iter().find(adds_no_key) {
            return Err(format!(
                "the subscription {} says of no object that it is reconciled: give it a rule with \
                 Subscription::enqueue, or a function with Controller::watches",
                it.name
            ));
        }
        let description = Description::new(name, version).stateless().read(read.clone());
        let description =
            subscriptions.iter().cloned().fold(description, |described, it| described.subscribe(it));
        Ok(requests.iter().cloned().fold(description, |described, it| described.request(it)))
    }

    fn notified(&self, subscription: &str, states: &[Version]) -> Result<(), Failure> {
        let Some(keys) = self.controller.mappers.get(subscription) else { return Ok(()) };
        for &state in states {
            keys(state)?.into_iter().try_for_each(queue::<K>)?;
        }
        Ok(())
    }

    fn reconcile(&self, WorkKey { kind, object: key }: &WorkKey) -> Result<Outcome, Failure> {
        // A rule of `subscribe` makes keys of its subscription's name. One object has one key, so that it is
        // in one call at a time.
        if kind != K::KIND {
            return queue::<K>(key.clone()).map(|()| Outcome::Done);
        }
        let lister = Lister::of::<K>(K::PLURAL);
        let Some(object) = lister.get::<Object<K>>(key)? else {
            // The host takes an owner to be in the namespace of what it owns. It may be cluster-scoped.
            let cluster_scoped = crate::key("", &key.name);
            if !key.namespace.is_empty()
                && matches!(lister.get::<crate::ObjectRef>(&cluster_scoped), Ok(Some(_)))
            {
                queue::<K>(cluster_scoped)?;
            }
            return Ok(Outcome::Done);
        };
        let object = Arc::new(object.into_value()?);
        // Rules and functions name objects by their keys alone.
        let labels = object.named().labels();
        if !selector::matches(&self.controller.labels, |name| labels.get(name).map(String::as_str)) {
            return Ok(Outcome::Done);
        }
        let action = (self.reconcile)(object, Arc::clone(&self.context))?;
        Ok(action.0.map_or(Outcome::Done, requeue_after))
    }
}
