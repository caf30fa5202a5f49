//! The objects of a test: the cache, and the API server.

use std::collections::BTreeMap;

use oarlock_sdk_bindings::oarlock::plugin::client::Written;
use serde_json::{Value, json};

use super::json_patch;
use super::recorded::{place, resource};
use super::selector::merge;
use crate::client::{PatchKind, Preconditions};
use crate::{Error, GroupVersionResource, Namespaces, ObjectKey, ObjectRef};

/// Objects by resource, namespace and name.
#[derive(Default)]
pub(super) struct Cluster {
    objects: BTreeMap<(String, String, String), Value>,
    /// The last resourceVersion.
    version: u64,
    /// The number of objects that were created.
    n_created: u64,
}

// === impl Cluster ===

impl Cluster {
    pub(super) fn get(&self, target: &GroupVersionResource, key: &ObjectKey) -> Result<&Value, Error> {
        self.objects.get(&index(target, key)).ok_or_else(|| {
            Error::NotFound(format!("{} {}", resource(target), place(&key.namespace, &key.name)))
        })
    }

    pub(super) fn list<'a>(
        &'a self,
        target: &GroupVersionResource,
        namespaces: &'a Namespaces,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let target = resource(target);
        let is_chosen = |namespace: &String| match namespaces {
            Namespaces::All => true,
            Namespaces::One(one) => one == namespace,
        };
        let found =
            self.objects.iter().filter(move |((of, namespace, _), _)| *of == target && is_chosen(namespace));
        found.map(|(_, object)| object)
    }

    /// Puts an object there, with a new resourceVersion, and a uid if it has none.
    pub(super) fn put(&mut self, target: &GroupVersionResource, mut object: Value) -> ObjectRef {
        let key = key_of(&object);
        let old_uid = self.get(target, &key).ok().map(|old| old["metadata"]["uid"].clone());
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if object["metadata"]["uid"].is_null() {
            self.n_created += u64::from(old_uid.is_none());
            object["metadata"]["uid"] = old_uid.unwrap_or_else(|| format!("uid-{}", self.n_created).into());
        }
        let id = id(&object);
        self.objects.insert(index(target, &key), object);
        id
    }

    pub(super) fn remove(&mut self, target: &GroupVersionResource, key: &ObjectKey) -> Option<Value> {
        self.objects.remove(&index(target, key))
    }

    pub(super) fn create(
        &mut self,
        target: &GroupVersionResource,
        namespace: &str,
        mut object: Value,
    ) -> Result<Written, Error> {
        let metadata = &object["metadata"];
        let own = metadata["namespace"].as_str().unwrap_or(namespace);
        if own != namespace {
            return Err(Error::Invalid(format!("the object has the namespace {own}, not {namespace}")));
        }
        if let (None, Some(prefix)) = (metadata["name"].as_str(), metadata["generateName"].as_str()) {
            let name = format!("{prefix}{:05}", self.n_created + 1);
            object["metadata"]["name"] = name.into();
        }
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        let key = key_of(&object);
        if key.name.is_empty() {
            return Err(Error::Invalid("the object has no name".to_owned()));
        }
        if self.get(target, &key).is_ok() {
            let text = format!("{} {}", resource(target), place(&key.namespace, &key.name));
            return Err(Error::AlreadyExists(text));
        }
        Ok(written(self.put(target, object)))
    }

    pub(super) fn apply(
        &mut self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        object: &Value,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        let exists = self.get(target, key).is_ok();
        if exists || preconditions.uid.is_some() || !subresource.is_empty() {
            return self.patch(target, key, subresource, PatchKind::MergePatch, object, preconditions);
        }
        self.create(target, &key.namespace, object.clone())
    }

    pub(super) fn patch(
        &mut self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        kind: PatchKind,
        patch: &Value,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        let mut object = self.get(target, key)?.clone();
        check(&object, preconditions)?;
        match kind {
            PatchKind::MergePatch => merge(&mut object, &part(subresource, patch)?),
            PatchKind::JsonPatch => json_patch::apply(&mut object, patch)?,
            PatchKind::StrategicMergePatch => {
                return Err(Error::Invalid("a test applies no strategic merge patches".to_owned()));
            }
        }
        Ok(self.store(target, object))
    }

    pub(super) fn replace(
        &mut self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        object: &Value,
    ) -> Result<Written, Error> {
        let old = self.get(target, key)?;
        if old["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(Error::Conflict("the object has another resourceVersion".to_owned()));
        }
        let new = match subresource {
            "" => object.clone(),
            _ => {
                let mut new = old.clone();
                merge(&mut new, &part(subresource, object)?);
                new
            }
        };
        Ok(self.store(target, new))
    }

    pub(super) fn delete(
        &mut self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        preconditions: &Preconditions,
    ) -> Result<(), Error> {
        let mut object = self.get(target, key)?.clone();
        check(&object, preconditions)?;
        if has_finalizers(&object) {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            self.put(target, object);
        } else {
            self.remove(target, key);
        }
        Ok(())
    }

    /// Stores a changed object. One that is being deleted and has no finalizers any more goes.
    fn store(&mut self, target: &GroupVersionResource, object: Value) -> Written {
        let is_gone = !object["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(&object);
        let key = key_of(&object);
        let id = self.put(target, object);
        if is_gone {
            self.remove(target, &key);
        }
        written(id)
    }
}

/// Returns the part of an object that a subresource is.
pub(super) fn part(subresource: &str, object: &Value) -> Result<Value, Error> {
    match subresource {
        "" => Ok(object.clone()),
        "status" => Ok(json!({"status": object["status"]})),
        "scale" => Ok(json!({"spec": {"replicas": object["spec"]["replicas"]}})),
        other => Err(Error::Invalid(format!("a test has no subresource {other}"))),
    }
}

pub(super) fn key_of(object: &Value) -> ObjectKey {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    crate::key(text("namespace"), text("name"))
}

/// Returns which version of which object it is.
pub(super) fn id(object: &Value) -> ObjectRef {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    ObjectRef {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    }
}

fn index(target: &GroupVersionResource, key: &ObjectKey) -> (String, String, String) {
    (resource(target), key.namespace.clone(), key.name.clone())
}

fn written(id: ObjectRef) -> Written {
    Written { name: id.name, uid: id.uid, resource_version: id.resource_version }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn check(object: &Value, preconditions: &Preconditions) -> Result<(), Error> {
    let id = id(object);
    let holds = |wanted: &Option<String>, there: &str| wanted.as_deref().is_none_or(|wanted| wanted == there);
    if holds(&preconditions.uid, &id.uid) && holds(&preconditions.resource_version, &id.resource_version) {
        return Ok(());
    }
    Err(Error::Conflict(format!("{} has another version", place(&id.namespace, &id.name))))
}
