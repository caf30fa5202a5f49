//! Requests to the API server, made as the plugin's ServiceAccount.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use oarlock_sdk_bindings::oarlock::plugin::client as wit;
pub use oarlock_sdk_bindings::oarlock::plugin::client::{PatchKind, Preconditions, Propagation};
use oarlock_sdk_bindings::oarlock::plugin::types::PageRequest;

use crate::failure::parse;
use crate::imports::client;
use crate::rows::{FromRow, first_page};
use crate::{Error, GroupVersionResource, Namespaces, ObjectKey, ObjectRef, Resource};

/// The number of rows of a page of a live list: what the host takes if it is asked for none.
const ROWS_OF_A_PAGE: u32 = 500;

/// Sends requests for one resource.
///
/// ```no_run
/// use oarlock_sdk::{Client, Failure, ObjectRef, gvr, key};
/// use serde_json::json;
///
/// fn restart(deployment: &ObjectRef, at: &str) -> Result<(), Failure> {
///     let annotations = json!({"example.com/restarted-at": at});
///     let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
///     Client::new(gvr("apps", "v1", "deployments"))
///         .if_unchanged(deployment)
///         .merge_patch(&key(&deployment.namespace, &deployment.name), &patch)?;
///     Ok(())
/// }
/// ```
///
/// The host never repeats a write by itself. A conflict (`Error::Conflict`) that is returned with `?` has the
/// call repeated, with the state that the object has then.
#[derive(Clone, Debug)]
#[must_use]
pub struct Client {
    target: GroupVersionResource,
    subresource: String,
    preconditions: Preconditions,
    force: bool,
    propagation: Propagation,
    grace_period: Option<Duration>,
}

/// The object after a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Written {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// Pass it to [`Lister::wait_until_seen`](crate::Lister::wait_until_seen) before reading the object from
    /// the cache.
    pub resource_version: String,
}

/// An object that is written: a [`Resource`] that is serializable, or a [`Dynamic`] one.
pub trait Body {
    #[doc(hidden)]
    fn place(&self) -> ObjectKey;

    #[doc(hidden)]
    fn text(&self) -> Result<String, Error>;
}

/// An object without a type: JSON with `apiVersion`, `kind` and `metadata`.
///
/// ```no_run
/// use oarlock_sdk::client::Dynamic;
/// use oarlock_sdk::{Client, Error, gvr};
/// use serde_json::json;
///
/// fn create(namespace: &str) -> Result<(), Error> {
///     let settings = Dynamic(json!({
///         "apiVersion": "v1",
///         "kind": "ConfigMap",
///         "metadata": {"namespace": namespace, "name": "settings"},
///         "data": {"greeting": "hello"},
///     }));
///     Client::new(gvr("", "v1", "configmaps")).create(&settings)?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic(pub Value);

/// The objects that [`Client::list`] returns: those that match both selectors. The default matches all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matching<'a> {
    /// A label selector in the syntax of Kubernetes.
    pub labels: &'a str,
    /// A field selector in the syntax of Kubernetes, such as `metadata.name=web`.
    pub fields: &'a str,
}

// === impl Client ===

impl Client {
    /// Returns a client for a resource.
    pub fn new(target: GroupVersionResource) -> Self {
        Self {
            target,
            subresource: String::new(),
            preconditions: Preconditions { uid: None, resource_version: None },
            force: false,
            propagation: Propagation::Background,
            grace_period: None,
        }
    }

    /// Returns a client for the resource that a type stands for.
    pub fn of<T: Resource>() -> Self {
        Self::new(T::gvr())
    }

    /// Has requests concern a subresource, such as `status`. Only whole objects can be listed, created and
    /// deleted: these requests return `invalid` then.
    pub fn subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.subresource);
        self
    }

    /// Has requests concern the status. The same as `subresource("status")`.
    pub fn status(self) -> Self {
        self.subresource("status")
    }

    /// Has writes fail with `conflict` unless the object still has this version.
    pub fn if_unchanged(mut self, object: &ObjectRef) -> Self {
        self.preconditions = Preconditions {
            uid: Some(object.uid.clone()),
            resource_version: Some(object.resource_version.clone()),
        };
        self
    }

    /// Has writes fail with `conflict` unless these conditions hold.
    pub fn preconditions(mut self, preconditions: Preconditions) -> Self {
        self.preconditions = preconditions;
        self
    }

    /// Has [`apply`](Self::apply) take over fields of other managers. Without it, such fields are a conflict.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Has [`delete`](Self::delete) treat dependents so; by default they are deleted in the background.
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = propagation;
        self
    }

    /// Has [`delete`](Self::delete) use this grace period in place of the resource's own; zero deletes at
    /// once.
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.grace_period = Some(period);
        self
    }

    /// Returns the current object, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of `client.get` in the contract, except `not-found`; `invalid` for an object of another form.
    pub fn get<T: DeserializeOwned>(&self, key: &ObjectKey) -> Result<Option<T>, Error> {
        match client::get(&self.target, key, &self.subresource) {
            Ok(text) => parse("", &text).map(Some),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns all objects that match, as the API server has them now. Reads all pages, and begins again
    /// (twice at most) if the API server forgets the state that the pages show.
    ///
    /// A [`crate::Lister`] is cheaper from the second read on.
    ///
    /// ```no_run
    /// use oarlock_sdk::client::Matching;
    /// use oarlock_sdk::{Client, Error, Namespaces, ObjectRef, gvr};
    ///
    /// fn n_failed_jobs() -> Result<usize, Error> {
    ///     let failed = Matching { fields: "status.successful=0", ..Matching::default() };
    ///     let jobs = Client::new(gvr("batch", "v1", "jobs"));
    ///     let jobs: Vec<ObjectRef> = jobs.list(&Namespaces::All, failed)?;
    ///     Ok(jobs.len())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `client.list` in the contract.
    pub fn list<V: FromRow>(&self, namespaces: &Namespaces, matching: Matching<'_>) -> Result<Vec<V>, Error> {
        self.ensure_whole("listed")?;
        let mut restarts = 0;
        loop {
            match self.all_pages(namespaces, matching) {
                Err(Error::Gone(_)) if restarts < 2 => restarts += 1,
                listed => return listed,
            }
        }
    }

    fn all_pages<V: FromRow>(
        &self,
        namespaces: &Namespaces,
        Matching { labels, fields }: Matching<'_>,
    ) -> Result<Vec<V>, Error> {
        let projection = V::projection();
        let mut request = PageRequest { limit: ROWS_OF_A_PAGE, ..first_page() };
        let mut values = vec![];
        loop {
            let page = match client::list(&self.target, namespaces, labels, fields, &projection, &request) {
                // The objects of the page are too large together.
                Err(Error::LimitExceeded(_)) if request.limit > 1 => {
                    request.limit /= 2;
                    continue;
                }
                listed => listed?,
            };
            for row in page.rows {
                values.push(V::from_row(row)?);
            }
            if page.continue_token.is_empty() {
                return Ok(values);
            }
            request.continue_token = page.continue_token;
        }
    }

    /// Creates an object. `metadata.generateName` works as in Kubernetes.
    ///
    /// # Errors
    ///
    /// Those of `client.create` in the contract, such as `already-exists`.
    pub fn create(&self, object: &impl Body) -> Result<Written, Error> {
        self.create_in(object.place().namespace, object)
    }

    /// Creates an object in a namespace. The object may name it, too, but no other.
    pub(crate) fn create_in(&self, namespace: String, object: &impl Body) -> Result<Written, Error> {
        self.ensure_whole("created")?;
        let written = client::create(&self.target, &namespace, &object.text()?)?;
        Ok(Written::of(namespace, written))
    }

    /// Applies an object, server-side, with the plugin's name as field manager: creates it, or changes the
    /// fields that the object has. The account needs the verb `patch`, and `create` for an object that does
    /// not exist.
    ///
    /// ```no_run
    /// use oarlock_sdk::client::Dynamic;
    /// use oarlock_sdk::{Client, Description, Failure, Request, gvr, info};
    /// use serde_json::json;
    ///
    /// fn describe() -> Result<Description, String> {
    ///     let writes = Request::new(gvr("", "v1", "configmaps"), &["create", "patch"]);
    ///     Ok(Description::new("settings", "0.1.0").request(writes))
    /// }
    ///
    /// fn apply_settings(namespace: &str) -> Result<(), Failure> {
    ///     let settings = Dynamic(json!({
    ///         "apiVersion": "v1",
    ///         "kind": "ConfigMap",
    ///         "metadata": {"namespace": namespace, "name": "settings"},
    ///         "data": {"greeting": "hello"},
    ///     }));
    ///     let written = Client::new(gvr("", "v1", "configmaps")).force().apply(&settings)?;
    ///     info!("applied", "version" = written.resource_version);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `client.apply` in the contract.
    pub fn apply(&self, object: &impl Body) -> Result<Written, Error> {
        let Self { target, subresource, preconditions, force, .. } = self;
        let key = object.place();
        let written = client::apply(target, &key, subresource, &object.text()?, *force, preconditions)?;
        Ok(Written::of(key.namespace, written))
    }

    /// Applies the text of an object.
    #[cfg(feature = "kube-rs")]
    pub(crate) fn apply_text(&self, key: &ObjectKey, text: &str) -> Result<Written, Error> {
        let Self { target, subresource, preconditions, force, .. } = self;
        let written = client::apply(target, key, subresource, text, *force, preconditions)?;
        Ok(Written::of(key.namespace.clone(), written))
    }

    /// Replaces an object by a changed copy of what [`get`](Self::get) or [`list`](Self::list) returned to
    /// this instance. What the type does not contain is removed, so the safe way is to
    /// change a [`Value`], as [`Dynamic`].
    ///
    /// # Errors
    ///
    /// Those of `client.replace` in the contract; `invalid` for a copy of another version.
    pub fn replace(&self, object: &impl Body) -> Result<Written, Error> {
        let key = object.place();
        let written = client::replace(&self.target, &key, &self.subresource, &object.text()?)?;
        Ok(Written::of(key.namespace, written))
    }

    /// Changes an object by a JSON merge patch (RFC 7396).
    ///
    /// # Errors
    ///
    /// Those of `client.patch` in the contract.
    pub fn merge_patch(&self, key: &ObjectKey, patch: &impl Serialize) -> Result<Written, Error> {
        self.patch(key, PatchKind::MergePatch, patch)
    }

    /// Changes an object by a JSON patch (RFC 6902), which is a list of operations, or by a strategic merge
    /// patch of Kubernetes.
    ///
    /// # Errors
    ///
    /// Those of `client.patch` in the contract.
    pub fn patch(&self, key: &ObjectKey, kind: PatchKind, patch: &impl Serialize) -> Result<Written, Error> {
        let Self { target, subresource, preconditions, .. } = self;
        let written = client::patch(target, key, subresource, kind, &text(patch)?, preconditions)?;
        Ok(Written::of(key.namespace.clone(), written))
    }

    /// Sets the number of replicas, through the subresource `scale`.
    ///
    /// # Errors
    ///
    /// Those of `client.patch` in the contract.
    pub fn scale(&self, key: &ObjectKey, replicas: u32) -> Result<Written, Error> {
        self.clone().subresource("scale").merge_patch(key, &json!({"spec": {"replicas": replicas}}))
    }

    /// Deletes an object. Succeeds if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of `client.delete` in the contract, except `not-found`.
    pub fn delete(&self, key: &ObjectKey) -> Result<(), Error> {
        self.ensure_whole("deleted")?;
        let grace_period = self.grace_period.map(whole_seconds);
        match client::delete(&self.target, key, self.propagation, grace_period, &self.preconditions) {
            Ok(()) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Without this, `client.status().delete(…)` would delete the object.
    fn ensure_whole(&self, what_happens: &str) -> Result<(), Error> {
        let Self { target, subresource, .. } = self;
        if subresource.is_empty() {
            return Ok(());
        }
        let plural = &target.plural;
        Err(Error::Invalid(format!(
            "a client of {plural}/{subresource} was used where {plural} are {what_happens}: only whole objects can be"
        )))
    }
}

/// Returns a time in seconds, rounded up: a grace period of 0 means to delete at once.
fn whole_seconds(time: Duration) -> u32 {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    seconds.try_into().unwrap_or(u32::MAX)
}

// === impl Written ===

impl Written {
    /// Returns the object after a write in a namespace, which the host's answer does not repeat.
    fn of(namespace: String, wit::Written { name, uid, resource_version }: wit::Written) -> Self {
        Self { namespace, name, uid, resource_version }
    }
}

// === impl Body ===

impl<T: Resource + Serialize> Body for T {
    fn place(&self) -> ObjectKey {
        self.key()
    }

    fn text(&self) -> Result<String, Error> {
        self.to_json().map_err(|error| unwritable(&error))
    }
}

impl Body for Dynamic {
    fn place(&self) -> ObjectKey {
        let text = |name: &str| self.0["metadata"][name].as_str().unwrap_or_default();
        crate::key(text("namespace"), text("name"))
    }

    fn text(&self) -> Result<String, Error> {
        text(&self.0)
    }
}

fn text(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::Invalid(format!("the object cannot be written as JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_below_a_second_does_not_delete_at_once() {
        let seconds = [0, 1, 1_000, 1_001].map(|ms| whole_seconds(Duration::from_millis(ms)));
        assert_eq!(seconds, [0, 1, 1, 2]);
        assert_eq!(whole_seconds(Duration::MAX), u32::MAX);
    }
}
