//! Field ownership (`metadata.managedFields`), and server-side apply.
//!
//! Follows the managers in `k8s.io/apimachinery/pkg/util/managedfields`. Callers must call this on the object
//! as the client sent it, decoded and defaulted, before the server resets or fills in any field.

mod entry;
mod failure;
mod field_set;
mod typed;

use crate::model::Model;
use crate::status::StatusError;
use entry::{Entry, Operation};
use failure::{Conflict, Failure, untypable};
use field_set::{FieldSet, Path, Step};
use serde_json::{Value, json};
use typed::Comparison;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager of the fields that were set before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const ANCIENT_CHANGES: &str = "ancient-changes";
const MAX_UPDATERS: usize = 10;

/// The manager, the subresource and the time of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub manager: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// RFC 3339, in seconds.
    pub now: &'a str,
}

/// The entries of `managedFields`, decoded.
type Owners = Vec<Entry>;

/// Updates the ownership in `new` after a create (`live` is `None`), update or patch.
pub(crate) fn after_update(model: &Model, live: Option<&Value>, new: &mut Value, writer: Writer<'_>) {
    let sent = take_managed_fields(new);
    let of_live = || live.and_then(entry::of).unwrap_or_default();
    let mut owners = match &sent {
        _ if !writer.subresource.is_empty() => of_live(),
        // An empty list, or a list with one empty entry, removes all ownership.
        Some(Value::Array(list)) if list.is_empty() || list.len() == 1 && list[0] == json!({}) => {
            Owners::new()
        }
        Some(sent) => match entry::decode(sent) {
            Some(owners) if !owners.is_empty() => owners,
            _ => of_live(),
        },
        None => of_live(),
    };
    if !(owners.is_empty() && live.is_some()) {
        let empty = empty_object(model, new);
        let before = live.map(without_managed_fields);
        note_update(model, before.as_ref().unwrap_or(&empty), new, &mut owners, writer);
        cap_updaters(&mut owners);
    }
    put(new, &owners);
}

/// Merges the applied object into the live one, or creates the object. A conflict is a 409 unless forced.
pub(crate) fn apply(
    model: &Model,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    writer: Writer<'_>,
) -> Result<Value, StatusError> {
    if applied.get("apiVersion").and_then(Value::as_str) != Some(model.api_version()) {
        return Err(StatusError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {}, expected: {}",
            applied.get("apiVersion").and_then(Value::as_str).unwrap_or_default(),
            model.api_version()
        )));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(StatusError::bad_request("metadata.managedFields must be nil"));
    }
    let faults = typed::faults(model.root(), applied);
    if !faults.is_empty() {
        return Err(untypable(model, applied, &faults));
    }
    let mut owners = live.and_then(entry::of).unwrap_or_default();
    let empty = empty_object(model, applied);
    let before = live.map(without_managed_fields).unwrap_or_else(|| empty.clone());
    if owners.is_empty() && live.is_some() {
        let first = Writer { manager: BEFORE_FIRST_APPLY, subresource: "", ..writer };
        note_update(model, &empty, &before, &mut owners, first);
    }
    let outcome = match try_apply(model, &before, applied, &owners, force, writer) {
        Err(Failure::Conflicts(conflicts)) if writer.manager == "kubectl" => {
            let allowed = applied_by_client(model, &before);
            let left: Vec<Conflict> = conflicts.into_iter().filter(|c| !allowed.has(&c.path)).collect();
            if left.is_empty() {
                try_apply(model, &before, applied, &owners, true, writer)
            } else {
                Err(Failure::Conflicts(left))
            }
        }
        outcome => outcome,
    };
    let (mut object, owners) = outcome.map_err(StatusError::from)?;
    if writer.manager == "kubectl"
        && let Some(annotation) =
            object.pointer_mut(&format!("/metadata/annotations/{}", LAST_APPLIED.replace('/', "~1")))
    {
        *annotation = last_applied(applied).into();
    }
    put(&mut object, &owners);
    Ok(object)
}

fn try_apply(
    model: &Model,
    live: &Value,
    applied: &Value,
    owners: &Owners,
    force: bool,
    writer: Writer<'_>,
) -> Result<(Value, Owners), Failure> {
    let root = model.root();
    let mut owners = owners.clone();
    let reset = reset_fields(model, writer.subresource);
    let merged = typed::merge(root, Some(live), Some(applied))
        .map_err(Failure::Unmergeable)?
        .unwrap_or_else(|| live.clone());
    let is_self =
        |entry: &Entry| entry.is(Operation::Apply, writer.manager, model.api_version(), writer.subresource);
    let last = owners.iter().position(&is_self).map(|index| owners.remove(index));
    let mut mine = Entry {
        manager: writer.manager.to_owned(),
        operation: Operation::Apply,
        api_version: model.api_version().to_owned(),
        subresource: writer.subresource.to_owned(),
        time: last.as_ref().and_then(|entry| entry.time.clone()),
        fields: typed::fields_of(root, applied).without(&reset),
    };
    let pruned = match &last {
        Some(last) if !last.fields.is_empty() => {
            let everybody = owners.iter().fold(mine.fields.clone(), |all, entry| all.union(&entry.fields));
            prune(model, &merged, &last.fields, &everybody)
        }
        _ => merged,
    };
    let compared = typed::compare(root, live, &pruned).without(&reset);
    let conflicts = conflicts(&owners, &compared);
    if !force && !conflicts.is_empty() {
        return Err(Failure::Conflicts(conflicts));
    }
    remove_changed_fields(&mut owners, &compared);
    mine.fields = mine.fields.difference(&never_owned());
    // As in kube-apiserver, an apply without changes keeps the time.
    if pruned != *live {
        mine.time = Some(writer.now.to_owned());
    }
    if !mine.fields.is_empty() {
        owners.push(mine);
    }
    Ok((pruned, owners))
}

/// Removes fields that the last apply of this manager set, that this one omits, and that no other manager
/// owns.
fn prune(model: &Model, merged: &Value, last: &FieldSet, owned: &FieldSet) -> Value {
    let root = model.root();
    let last = last.with_named_parents(root);
    let pruned = typed::remove(root, merged, &last);
    let fields = |value: &Value| typed::fields_of(root, value).with_named_parents(root);
    let all = fields(merged);
    // Restores the fields that other managers own.
    let keep = fields(&pruned).union(&owned.with_named_parents(root));
    let pruned = typed::remove(root, merged, &all.difference(&keep));
    // Restores fields that were removed with their parents but never applied.
    typed::remove(root, merged, &all.difference(&fields(&pruned)).intersection(&last))
}

/// Gives the ownership of the fields that an update changed to the writer.
fn note_update(model: &Model, live: &Value, new: &Value, owners: &mut Owners, writer: Writer<'_>) {
    let reset = reset_fields(model, writer.subresource);
    let new = without_managed_fields(new);
    let compared = typed::compare(model.root(), live, &new).without(&reset);
    remove_changed_fields(owners, &compared);
    let taken = compared.modified.union(&compared.added).difference(&never_owned());
    if taken.is_empty() {
        return;
    }
    let is_self =
        |entry: &Entry| entry.is(Operation::Update, writer.manager, model.api_version(), writer.subresource);
    match owners.iter_mut().find(|entry| is_self(entry)) {
        Some(mine) => {
            mine.fields.extend(&taken);
            mine.time = Some(writer.now.to_owned());
        }
        None => owners.push(Entry {
            manager: writer.manager.to_owned(),
            operation: Operation::Update,
            api_version: model.api_version().to_owned(),
            subresource: writer.subresource.to_owned(),
            time: Some(writer.now.to_owned()),
            fields: taken,
        }),
    }
}

/// Returns the changed fields that other managers own.
fn conflicts(owners: &Owners, compared: &Comparison) -> Vec<Conflict> {
    let changed = compared.modified.union(&compared.added);
    let mut conflicts: Vec<Conflict> = owners
        .iter()
        .flat_map(|entry| {
            let owner = entry.describe();
            let lost = entry.fields.intersection(&changed);
            let conflict = |path: &[Step]| Conflict { owner: owner.clone(), path: path.to_vec() };
            lost.iter().map(|path| conflict(path)).collect::<Vec<_>>()
        })
        .collect();
    conflicts.sort_by(|a, b| a.owner.cmp(&b.owner));
    conflicts
}

/// Removes the changed fields from all other managers.
fn remove_changed_fields(owners: &mut Owners, compared: &Comparison) {
    for entry in owners.iter_mut() {
        for changed in [&compared.modified, &compared.added, &compared.removed] {
            entry.fields.subtract(changed);
        }
    }
    owners.retain(|entry| !entry.fields.is_empty());
}

/// Limits the number of update entries by merging the oldest.
fn cap_updaters(owners: &mut Owners) {
    let mut updaters: Vec<usize> =
        (0..owners.len()).filter(|i| owners[*i].operation == Operation::Update).collect();
    if updaters.len() <= MAX_UPDATERS {
        return;
    }
    updaters.sort_by(|a, b| {
        let key =
            |index: &usize| (owners[*index].time.clone().unwrap_or_default(), owners[*index].manager.clone());
        key(a).cmp(&key(b))
    });
    let oldest: Vec<usize> = updaters[..=updaters.len() - MAX_UPDATERS].to_vec();
    let mut bucket = Entry {
        manager: ANCIENT_CHANGES.to_owned(),
        subresource: String::new(),
        ..owners[oldest[0]].clone()
    };
    for index in &oldest {
        bucket.fields = bucket.fields.union(&owners[*index].fields);
        bucket.time.clone_from(&owners[*index].time);
    }
    let mut index = 0;
    owners.retain(|_| {
        index += 1;
        !oldest.contains(&(index - 1))
    });
    owners.push(bucket);
}

/// Returns the fields that are never owned: identity, and fields that only the server writes.
fn never_owned() -> FieldSet {
    let top = ["apiVersion", "kind", "metadata"].map(|name| vec![Step::field(name)]);
    let below = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ]
    .map(|name| vec![Step::field("metadata"), Step::field(name)]);
    top.into_iter().chain(below).collect()
}

/// Returns the fields that a write to this subresource cannot change.
fn reset_fields(model: &Model, subresource: &str) -> Vec<Path> {
    if !model.has_status() {
        return Vec::new();
    }
    match subresource {
        "" => vec![vec![Step::field("status")]],
        "status" => {
            let spec = vec![Step::field("spec")];
            let metadata = |name: &str| vec![Step::field("metadata"), Step::field(name)];
            match model.kind().kind.as_str() {
                _ if model.is_custom() => vec![spec, vec![Step::field("metadata")]],
                "Deployment" => vec![spec, metadata("labels")],
                "Pod" => vec![spec, metadata("deletionTimestamp"), metadata("ownerReferences")],
                _ => vec![spec],
            }
        }
        _ => Vec::new(),
    }
}

/// Returns the fields that a client-side apply set and that still have those values.
fn applied_by_client(model: &Model, live: &Value) -> FieldSet {
    let annotation = live
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(LAST_APPLIED))
        .and_then(Value::as_str);
    let Some(last) = annotation.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return FieldSet::default();
    };
    if last.get("apiVersion").and_then(Value::as_str) != Some(model.api_version()) {
        return FieldSet::default();
    }
    let compared = typed::compare(model.root(), &last, live);
    typed::fields_of(model.root(), &last)
        .difference(&compared.modified)
        .difference(&compared.added)
        .difference(&compared.removed)
}

/// Writes the applied object as the annotation of client-side apply, so that a later client-side apply finds
/// it.
fn last_applied(applied: &Value) -> String {
    let mut applied = sorted(applied);
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.shift_remove(LAST_APPLIED);
    }
    format!("{applied}\n")
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Returns the object before its creation: for built-in kinds the fields that Go writes for an empty struct,
/// so that a manager that fills in a struct does not own the struct itself.
fn empty_object(model: &Model, like: &Value) -> Value {
    let mut empty = model.zero_object();
    for key in ["apiVersion", "kind"] {
        if let Some(value) = like.get(key) {
            empty[key] = value.clone();
        }
    }
    empty
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .and_then(|metadata| metadata.shift_remove("managedFields"))
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    take_managed_fields(&mut object);
    object
}

fn put(object: &mut Value, owners: &Owners) {
    take_managed_fields(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && !owners.is_empty()
    {
        metadata.insert("managedFields".into(), entry::encode(owners));
    }
}

#[cfg(test)]
mod tests;
