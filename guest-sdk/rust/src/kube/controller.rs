//! `Controller`: what is watched, and the functions that are called, as in kube-rs.

use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::Api;
use crate::{
    Description, Enqueue, Failure, Lister, Object, ObjectKey, Outcome, OwnerReference, Read, Request,
    Resource, Subscription, enqueue_controller_owner, requeue_after, retry_after,
};

/// What happens after `reconcile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(Option<Duration>);

/// A controller for the objects of one resource.
#[must_use]
pub struct Controller<K> {
    subscriptions: Vec<Subscription>,
    read: Read,
    requests: Vec<Request>,
    resource: PhantomData<fn() -> K>,
}

/// A controller that can run: what [`Controller::run`] returns and [`crate::export_controller`] exports.
pub trait Run {
    #[doc(hidden)]
    fn describe(&self, name: &str, version: &str) -> Description;

    #[doc(hidden)]
    fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure>;
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

/// Short functions of kube-rs.
pub trait ResourceExt {
    /// Returns the name; the empty text for an object without one.
    fn name_any(&self) -> String;

    /// Returns the namespace; `None` for a cluster-scoped object.
    fn namespace(&self) -> Option<String>;

    /// Returns the reference that makes this object the controller owner of another one.
    fn controller_owner_ref(&self, _: &()) -> Option<OwnerReference>;
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
        Self { subscriptions: vec![objects], read, requests: vec![], resource: PhantomData }
    }

    /// Reconciles the owner when an object of another resource changes whose controller it is.
    pub fn owns<C: Resource>(self, api: Api<C>, config: watcher::Config) -> Self {
        let name = format!("owned-{}", C::PLURAL);
        let rule = enqueue_controller_owner(K::GROUP, K::KIND);
        self.subscribe(subscription(&name, &api, &config).enqueue(rule))
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

/// Returns the result of a future that does not wait.
fn ready<F: Future>(future: F) -> Result<F::Output, Failure> {
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
    fn describe(&self, name: &str, version: &str) -> Description {
        let Controller { subscriptions, read, requests, .. } = &self.controller;
        let description = Description::new(name, version).stateless().read(read.clone());
        let description =
            subscriptions.iter().cloned().fold(description, |described, it| described.subscribe(it));
        requests.iter().cloned().fold(description, |described, it| described.request(it))
    }

    fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let found = Lister::of::<K>(K::PLURAL).get::<Object<K>>(key)?;
        let Some(object) = found else { return Ok(Outcome::Done) };
        let object = Arc::new(object.into_value()?);
        let action = (self.reconcile)(object, Arc::clone(&self.context))?;
        Ok(action.0.map_or(Outcome::Done, requeue_after))
    }
}

// === impl ResourceExt ===

impl<K: Resource> ResourceExt for K {
    fn name_any(&self) -> String {
        self.key().name
    }

    fn namespace(&self) -> Option<String> {
        Some(self.key().namespace).filter(|namespace| !namespace.is_empty())
    }

    fn controller_owner_ref(&self, _: &()) -> Option<OwnerReference> {
        self.controller_reference()
    }
}
