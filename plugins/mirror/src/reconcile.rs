//! Compares the copies that a source should have with the copies that it has, and writes the difference.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_sdk::cache::{self, Row, Select};
use oarlock_sdk::client::{self, Preconditions};
use oarlock_sdk::events::{self, EventType};
use oarlock_sdk::{Error, Failure, Namespaces, ObjectRef, gvr, info, key, warn};
use serde_json::Value;

use crate::kind::Kind;
use crate::source::{Exclusions, SourceKey};
use crate::{NAMESPACES, copy, source};

/// Makes the copies of one source match its annotation. A source that does not exist has no copies.
pub(crate) fn reconcile(kind: Kind, source: &SourceKey, exclusions: &Exclusions) -> Result<(), Failure> {
    let found = cache::get(kind.plural(), &key(&source.namespace, &source.name), Select::Json)?;
    let (targets, wanted) = match &found {
        None => (BTreeSet::new(), None),
        Some(row) => {
            let object = parse(row)?;
            let targets = match source::mirror_to(&object) {
                Some(mirror_to) => source::targets(mirror_to, &source.namespace, &namespaces()?, exclusions),
                None => BTreeSet::new(),
            };
            (targets, Some((&row.object, object)))
        }
    };
    let copies = copies(kind, source)?;
    for (namespace, row) in &copies {
        if !targets.contains(namespace) {
            delete(kind, source, &row.object)?;
        }
    }
    let Some((regarding, object)) = wanted else {
        return Ok(());
    };
    for namespace in &targets {
        match copies.get(namespace) {
            Some(row) => update(kind, source, &object, row)?,
            None => create(kind, source, &object, regarding, namespace)?,
        }
    }
    Ok(())
}

/// Returns the namespaces that can be written to: those that are not on their way out.
fn namespaces() -> Result<BTreeSet<String>, Error> {
    let phase = Select::Fields(&["/metadata/deletionTimestamp"]);
    let rows = cache::list(NAMESPACES, &Namespaces::All, "", phase)?;
    Ok(rows.into_iter().filter(|row| row.fields == [None]).map(|row| row.object.name).collect())
}

/// Returns the copies of this source, by namespace. An object with another name is not a copy, whatever its
/// annotation says.
fn copies(kind: Kind, source: &SourceKey) -> Result<BTreeMap<String, Row>, Error> {
    let rows = cache::by_index(kind.copies(), &source.annotation(), Select::Json)?;
    let own = |row: &Row| row.object.name == source.name && row.object.namespace != source.namespace;
    Ok(rows.into_iter().filter(own).map(|row| (row.object.namespace.clone(), row)).collect())
}

fn create(
    kind: Kind,
    source: &SourceKey,
    object: &Value,
    regarding: &ObjectRef,
    namespace: &str,
) -> Result<(), Failure> {
    let resource = gvr("", "v1", kind.plural());
    match client::create(&resource, namespace, &copy::of(kind, object, source, namespace)) {
        Ok(_) => {
            info!("copied", "kind" = kind.name(), "source" = source.annotation(), "to" = namespace);
            Ok(())
        }
        Err(Error::AlreadyExists(_)) => {
            // Either the cache does not have mirror's own copy yet, or another object has the name.
            let existing: Option<Value> = client::get(&resource, &key(namespace, &source.name))?;
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

fn update(kind: Kind, source: &SourceKey, object: &Value, row: &Row) -> Result<(), Failure> {
    let existing = parse(row)?;
    if copy::is_of_another_type(&existing, object) {
        // The notification of this delete reconciles the source again, which creates the copy.
        return delete(kind, source, &row.object);
    }
    let Some(patch) = copy::difference(kind, &existing, object) else {
        return Ok(());
    };
    let (resource, at) = (gvr("", "v1", kind.plural()), key(&row.object.namespace, &row.object.name));
    client::merge_patch(&resource, &at, &patch, &unchanged(&row.object))?;
    info!("updated", "kind" = kind.name(), "source" = source.annotation(), "in" = row.object.namespace);
    Ok(())
}

fn delete(kind: Kind, source: &SourceKey, object: &ObjectRef) -> Result<(), Failure> {
    let at = key(&object.namespace, &object.name);
    client::delete(&gvr("", "v1", kind.plural()), &at, &unchanged(object))?;
    info!("deleted", "kind" = kind.name(), "source" = source.annotation(), "in" = object.namespace);
    Ok(())
}

/// Logs, and emits as an Event of the source, that an object of another owner has the name of the copy.
fn refuse(kind: Kind, source: &SourceKey, regarding: &ObjectRef, namespace: &str) {
    warn!("not overwritten", "kind" = kind.name(), "source" = source.annotation(), "in" = namespace);
    let note = format!("{} {namespace}/{} exists and is not a copy of this object", kind.name(), source.name);
    let resource = gvr("", "v1", kind.plural());
    if let Err(error) =
        events::emit(&resource, regarding, kind.name(), EventType::Warning, "MirrorRefused", &note)
    {
        warn!("no event recorded", "error" = format!("{error:?}"));
    }
}

/// Returns the precondition that the object did not change since the cache read it.
fn unchanged(object: &ObjectRef) -> Preconditions {
    Preconditions { uid: Some(object.uid.clone()), resource_version: Some(object.resource_version.clone()) }
}

fn parse(row: &Row) -> Result<Value, Failure> {
    let text = row.json.as_deref().unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|error| Failure::Terminal(format!("the cached object is not JSON: {error}")))
}
