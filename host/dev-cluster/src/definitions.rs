//! What follows a write of a CustomResourceDefinition, which on a real cluster controllers of the API server do: it is
//! established and served at once, and its instances go when it goes.

use crate::call::{Call, now};
use crate::catalog::Served;
use crate::crd;
use crate::deletion::{self, Options};
use crate::status::{GroupResource, StatusError};
use crate::store::{Stored, Transaction};
use crate::write::{is_definition, meta};
use serde_json::Value;

/// Brings a written definition into force.
pub(crate) fn after_write(call: &Call, stored: &Stored, dry_run: bool) -> Result<(), StatusError> {
    if dry_run || !is_definition(&call.resource) {
        return Ok(());
    }
    call.cluster.write(false, |transaction, _| {
        let Some(current) = transaction.get(&call.resource.storage, &stored.key) else {
            return Ok(());
        };
        let old = current.value()?;
        if meta(&old, "deletionTimestamp").is_empty() {
            let mut new = old.clone();
            crd::establish(&mut new, &now());
            if new != old {
                transaction.put(&call.resource, &stored.key, new);
            }
        }
        Ok(())
    })?;
    call.cluster.reload_definitions();
    Ok(())
}

/// Takes a deleted definition out of force.
pub(crate) fn after_delete(call: &Call, dry_run: bool) {
    if !dry_run && is_definition(&call.resource) {
        call.cluster.reload_definitions();
    }
}

/// Deletes every instance of a definition; when none is left, its watches end.
pub(crate) fn remove_instances(
    transaction: &mut Transaction<'_>,
    served: &Served,
    definition: &Value,
) -> Result<(), StatusError> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let storage = GroupResource::new(text("/spec/group"), text("/spec/names/plural"));
    let Some(resource) = served.resources().iter().find(|resource| resource.storage == storage) else {
        return Ok(());
    };
    for object in transaction.objects(&storage, "") {
        deletion::delete(transaction, resource, &object, &Options::at_once())?;
    }
    if transaction.objects(&storage, "").is_empty() {
        transaction.drop_resource(&storage);
    }
    Ok(())
}
