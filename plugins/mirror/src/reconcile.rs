//! Compares the copies that a source should have with the copies that it has, and writes the difference.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_sdk::client::Dynamic;
use oarlock_sdk::events::{self, EventType};
use oarlock_sdk::{Error, Failure, Fields, Namespaces, Object, ObjectRef, info, key, warn};
use serde_json::Value;

use crate::kind::Kind;
use crate::source::{Exclusions, SourceKey};
use crate::{NAMESPACES, copy, source};

/// Makes the copies of one source match its annotation. A source that does not exist has no copies.
pub(crate) fn reconcile(kind: Kind, source: &SourceKey, exclusions: &Exclusions) -> Result<(), Failure> {
    let found: Option<Object<Value>> = kind.lister().get(&key(&source.namespace, &source.name))?;
    let (targets, wanted) = match &found {
        None => (BTreeSet::new(), None),
        Some(found) => {
            let object = found.get()?;
            let targets = match source::mirror_to(object) {
                Some(mirror_to) => source::targets(mirror_to, &source.namespace, &namespaces()?, exclusions),
                None => BTreeSet::new(),
            };
            (targets, Some((&found.id, object)))
        }
    };
    let copies = copies(kind, source)?;
    for (namespace, copy) in &copies {
        if !targets.contains(namespace) {
            delete(kind, source, &copy.id)?;
        }
    }
    let Some((regarding, object)) = wanted else {
        return Ok(());
    };
    for namespace in &targets {
        match copies.get(namespace) {
            Some(copy) => update(kind, source, object, copy)?,
            None => create(kind, source, object, regarding, namespace)?,
        }
    }
    Ok(())
}

/// What decides whether a namespace can be written to.
#[derive(Fields)]
struct Deletion {
    #[field("/metadata/deletionTimestamp")]
    timestamp: Option<String>,
}

/// Returns the namespaces that can be written to: those that are not being deleted.
fn namespaces() -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for row in NAMESPACES.list::<(ObjectRef, Deletion)>(&Namespaces::All, "") {
        let (namespace, deletion) = row?;
        if deletion.timestamp.is_none() {
            names.insert(namespace.name);
        }
    }
    Ok(names)
}

/// Returns the copies of this source, by namespace. An object with another name is not a copy, whatever its
/// annotation says.
fn copies(kind: Kind, source: &SourceKey) -> Result<BTreeMap<String, Object<Value>>, Error> {
    let mut copies = BTreeMap::new();
    for copy in kind.copies_index().get(&source.annotation()) {
        let copy: Object<Value> = copy?;
        if copy.id.name == source.name && copy.id.namespace != source.namespace {
            copies.insert(copy.id.namespace.clone(), copy);
        }
    }
    Ok(copies)
}

fn create(
    kind: Kind,
    source: &SourceKey,
    object: &Value,
    regarding: &ObjectRef,
    namespace: &str,
) -> Result<(), Failure> {
    match kind.client().create(&Dynamic(copy::of(kind, object, source, namespace))) {
        Ok(_) => {
            info!("copied", "kind" = kind.name(), "source" = source.annotation(), "to" = namespace);
            Ok(())
        }
        Err(Error::AlreadyExists(_)) => {
            // Either the cache does not have mirror's own copy yet, or another object has the name.
            let existing: Option<Value> = kind.client().get(&key(namespace, &source.name))?;
            match existing {
                Some(existing) if copy::belongs_to(&existing, source) => {
                    Err(Failure::Retry(format!("the copy in {namespace} is not in the cache yet")))
                }
                Some(_) => {
                    refuse(kind, source, regarding, namespace);
                    Ok(())
                }
                None => Err(Failure::Retry(format!("the object in {namespace} was just deleted"))),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn update(kind: Kind, source: &SourceKey, object: &Value, copy: &Object<Value>) -> Result<(), Failure> {
    let Object { id, .. } = copy;
    let existing = copy.get()?;
    if copy::is_of_another_type(existing, object) {
        // The notification of this delete reconciles the source again, which creates the copy.
        return delete(kind, source, id);
    }
    let Some(patch) = copy::difference(kind, existing, object) else {
        return Ok(());
    };
    kind.client().if_unchanged(id).merge_patch(&key(&id.namespace, &id.name), &patch)?;
    info!("updated", "kind" = kind.name(), "source" = source.annotation(), "in" = id.namespace);
    Ok(())
}

fn delete(kind: Kind, source: &SourceKey, object: &ObjectRef) -> Result<(), Failure> {
    kind.client().if_unchanged(object).delete(&key(&object.namespace, &object.name))?;
    info!("deleted", "kind" = kind.name(), "source" = source.annotation(), "in" = object.namespace);
    Ok(())
}

/// Logs, and emits as an Event of the source, that an object of another owner has the name of the copy.
fn refuse(kind: Kind, source: &SourceKey, regarding: &ObjectRef, namespace: &str) {
    warn!("not overwritten", "kind" = kind.name(), "source" = source.annotation(), "in" = namespace);
    let note = format!("{} {namespace}/{} exists and is not a copy of this object", kind.name(), source.name);
    let resource = kind.lister().gvr();
    let recorded =
        events::record(&resource, kind.name(), regarding, EventType::Warning, "MirrorRefused", &note);
    if let Err(error) = recorded {
        warn!("no event recorded", "error" = format!("{error:?}"));
    }
}
