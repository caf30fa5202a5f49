//! Controllers of CustomResourceDefinitions, which run inside kube-apiserver on a real cluster. The server
//! establishes and serves a definition at once and deletes its instances with it. The definition stays while
//! a finalizer holds one of its instances.

use crate::call::Call;
use crate::catalog::Served;
use crate::crd::{self, Definition};
use crate::deletion::{self, Options};
use crate::resource::Resource;
use crate::status::{GroupResource, StatusError};
use crate::store::{Stored, Transaction};
use crate::write::{finalizers, is_definition, meta, meta_mut};
use serde_json::{Value, json};
use std::sync::Arc;

/// The finalizer that keeps a definition while it has instances.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Establishes a definition that was written.
pub(crate) fn after_write(call: &Call, stored: &Stored, dry_run: bool) -> Result<(), StatusError> {
    if dry_run || !is_definition(&call.resource) {
        return Ok(());
    }
    call.cluster.write(false, |transaction, served| {
        let Some(current) = transaction.get(&call.resource.storage, &stored.key) else {
            return Ok(());
        };
        let old = current.value()?;
        if meta(&old, "deletionTimestamp").is_empty() {
            let mut new = old.clone();
            match conflict(served, &Definition::read(&old)) {
                None => crd::establish(&mut new, &transaction.generated.now()),
                Some((reason, name)) if !crd::established(&old) => {
                    refuse_names(&mut new, reason, &name, &transaction.generated.now());
                }
                Some(_) => {}
            }
            if new != old {
                transaction.put(&call.resource, &stored.key, new);
            }
        }
        Ok(())
    })
}

/// Returns the name of a definition that another resource of its group already uses, and the reason of the
/// condition.
fn conflict(served: &Served, definition: &Definition) -> Option<(&'static str, String)> {
    let others = served.resources().iter();
    let mut others = others.filter(|r| r.group == definition.group && r.plural != definition.plural);
    others.find_map(|other| {
        let short = other.short_names.iter().find(|name| definition.short_names.contains(name));
        match () {
            () if other.kind == definition.kind => Some(("KindConflict", definition.kind.clone())),
            () if other.list_kind == definition.list_kind => {
                Some(("ListKindConflict", definition.list_kind.clone()))
            }
            () if other.singular == definition.singular => {
                Some(("SingularConflict", definition.singular.clone()))
            }
            () => short.map(|name| ("ShortNamesConflict", name.clone())),
        }
    })
}

fn refuse_names(definition: &mut Value, reason: &str, name: &str, now: &str) {
    definition["status"]["conditions"] = json!([
        {"type": "NamesAccepted", "status": "False", "lastTransitionTime": now, "reason": reason,
         "message": format!("{name:?} is already in use")},
        {"type": "Established", "status": "False", "lastTransitionTime": now, "reason": "NotAccepted",
         "message": "not all names are accepted"},
    ]);
}

/// Deletes every instance of a definition. The definition gets a finalizer if an instance remains.
pub(crate) fn remove_instances(
    transaction: &mut Transaction<'_>,
    served: &Served,
    resource: &Resource,
    stored: &Arc<Stored>,
) -> Result<Arc<Stored>, StatusError> {
    let mut definition = stored.value()?;
    let storage = storage(&definition);
    if let Some(instances) = served.resources().iter().find(|resource| resource.storage == storage) {
        for object in transaction.objects(&storage, "") {
            deletion::delete(transaction, instances, &object, &Options::at_once())?;
        }
    }
    if transaction.objects(&storage, "").is_empty() {
        transaction.drop_resource(&storage);
        return Ok(stored.clone());
    }
    let mut new_finalizers = finalizers(&definition).into_iter().map(Value::from).collect::<Vec<_>>();
    if new_finalizers.contains(&CLEANUP.into()) {
        return Ok(stored.clone());
    }
    new_finalizers.push(CLEANUP.into());
    meta_mut(&mut definition).insert("finalizers".into(), new_finalizers.into());
    Ok(transaction.put(resource, &stored.key, definition))
}

/// Removes a definition that is being deleted and has no instances left. Must be called after every removal.
pub(crate) fn settle(
    transaction: &mut Transaction<'_>,
    served: &Served,
    instances: &Resource,
) -> Result<(), StatusError> {
    let definitions = served.builtin("apiextensions.k8s.io", "customresourcedefinitions");
    let (Some(_), Some(definitions)) = (&instances.custom, definitions) else {
        return Ok(());
    };
    let key = instances.storage.to_string();
    let Some(found) = transaction.get(&definitions.storage, &key) else {
        return Ok(());
    };
    let mut definition = found.value()?;
    let being_deleted = !meta(&definition, "deletionTimestamp").is_empty();
    if !being_deleted || !transaction.objects(&instances.storage, "").is_empty() {
        return Ok(());
    }
    let left: Vec<Value> =
        finalizers(&definition).into_iter().filter(|name| *name != CLEANUP).map(Value::from).collect();
    let removable = left.is_empty();
    meta_mut(&mut definition).insert("finalizers".into(), left.into());
    transaction.drop_resource(&instances.storage);
    if removable {
        transaction.remove(definitions, &key, definition);
    } else {
        transaction.put(definitions, &key, definition);
    }
    Ok(())
}

fn storage(definition: &Value) -> GroupResource {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    GroupResource::new(text("/spec/group"), text("/spec/names/plural"))
}
