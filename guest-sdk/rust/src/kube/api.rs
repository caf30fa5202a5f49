//! `Api`: requests for one resource, as in kube-rs.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Matching, PatchKind, Written};
use crate::{Error, Namespaces, Object, ObjectKey, Resource, key};

/// Stands for the connection, which the host has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client(());

/// Sends requests for one resource to the API server. Its futures are ready at once.
#[derive(Clone, Debug)]
pub struct Api<K> {
    namespace: Option<String>,
    resource: PhantomData<fn() -> K>,
}

/// Selectors of a list.
#[derive(Clone, Debug, Default)]
pub struct ListParams {
    labels: String,
    fields: String,
}

/// How an object is patched.
#[derive(Clone, Debug, Default)]
pub struct PatchParams {
    force: bool,
}

/// How an object is created.
#[derive(Clone, Debug, Default)]
pub struct PostParams {}

/// How an object is deleted.
#[derive(Clone, Debug, Default)]
pub struct DeleteParams {}

/// The content and format of a patch.
#[derive(Clone, Debug)]
pub enum Patch<T> {
    /// Server-side apply.
    Apply(T),
    /// RFC 7396.
    Merge(T),
    /// RFC 6902, a list of operations.
    Json(T),
    /// Strategic merge patch of Kubernetes.
    Strategic(T),
}

/// The objects of a list.
#[derive(Clone, Debug)]
pub struct ObjectList<K> {
    /// The objects.
    pub items: Vec<K>,
}

// === impl Api ===

impl<K: Resource> Api<K> {
    /// Returns requests for the objects in all namespaces, or for cluster-scoped ones.
    #[must_use]
    pub fn all(_: Client) -> Self {
        Self { namespace: None, resource: PhantomData }
    }

    /// Returns requests for the objects in one namespace.
    #[must_use]
    pub fn namespaced(_: Client, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), resource: PhantomData }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn at(&self, name: &str) -> ObjectKey {
        key(self.namespace.clone().unwrap_or_default(), name)
    }

    fn client() -> crate::Client {
        crate::Client::of::<K>()
    }
}

impl<K: Resource + DeserializeOwned> Api<K> {
    /// Returns an object.
    ///
    /// # Errors
    ///
    /// Those of `client.get` in the contract, such as `not-found`.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        let found = Self::client().get(&self.at(name))?;
        found.ok_or_else(|| Error::NotFound(format!("{} {name}", K::PLURAL)))
    }

    /// Returns an object, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of `client.get` in the contract.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        Self::client().get(&self.at(name))
    }

    /// Returns all objects that match, as the API server has them now.
    ///
    /// # Errors
    ///
    /// Those of `client.list` in the contract.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let namespaces = self.namespace.clone().map_or(Namespaces::All, Namespaces::One);
        let matching = Matching { labels: &params.labels, fields: &params.fields };
        let objects: Vec<Object<K>> = Self::client().list(&namespaces, matching)?;
        let items = objects.into_iter().map(Object::into_value).collect::<Result<_, _>>()?;
        Ok(ObjectList { items })
    }

    /// Creates an object. One that names no namespace is created in that of the `Api`.
    ///
    /// # Errors
    ///
    /// Those of `client.create` in the contract, such as `invalid` for an object of another namespace.
    pub async fn create(&self, _: &PostParams, object: &K) -> Result<Written, Error>
    where
        K: Serialize,
    {
        match &self.namespace {
            Some(namespace) => Self::client().create_in(namespace.clone(), object),
            None => Self::client().create(object),
        }
    }

    /// Patches an object.
    ///
    /// # Errors
    ///
    /// Those of `client.apply` and `client.patch` in the contract.
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Written, Error> {
        self.send(Self::client(), name, params, patch)
    }

    /// Patches the status of an object.
    ///
    /// # Errors
    ///
    /// As [`patch`](Self::patch).
    pub async fn patch_status<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Written, Error> {
        self.send(Self::client().status(), name, params, patch)
    }

    fn send<P: Serialize>(
        &self,
        client: crate::Client,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Written, Error> {
        let at = self.at(name);
        match patch {
            Patch::Apply(object) => {
                let client = if params.force { client.force() } else { client };
                client.apply_text(&at, &apply_text::<K>(object)?)
            }
            Patch::Merge(patch) => client.patch(&at, PatchKind::MergePatch, patch),
            Patch::Json(patch) => client.patch(&at, PatchKind::JsonPatch, patch),
            Patch::Strategic(patch) => client.patch(&at, PatchKind::StrategicMergePatch, patch),
        }
    }

    /// Deletes an object. Succeeds if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of `client.delete` in the contract, except `not-found`.
    pub async fn delete(&self, name: &str, _: &DeleteParams) -> Result<(), Error> {
        Self::client().delete(&self.at(name))
    }
}

/// Returns the text of an applied object, with `apiVersion` and `kind`.
fn apply_text<K: Resource>(object: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string(object).map_err(|error| crate::failure::unexpected("", &error))?;
    Ok(if text.starts_with("{\"apiVersion\"") { text } else { crate::resource::with_type::<K>(&text) })
}

// === impl PatchParams ===

impl PatchParams {
    /// Returns the parameters of an apply. The field manager is the plugin's name, whatever is given here.
    #[must_use]
    pub fn apply(_manager: &str) -> Self {
        Self::default()
    }

    /// Has the apply take over fields of other managers.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }
}

// === impl ListParams ===

impl ListParams {
    /// Restricts the list to objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        selector.clone_into(&mut self.labels);
        self
    }

    /// Restricts the list to objects whose fields match.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        selector.clone_into(&mut self.fields);
        self
    }
}

// === impl ObjectList ===

impl<K> IntoIterator for ObjectList<K> {
    type Item = K;
    type IntoIter = std::vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
