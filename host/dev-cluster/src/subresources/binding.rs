//! `pods/binding`, with which schedulers place Pods. `bindings` is the same with the name in the body.

use super::{body_of_kind, done};
use crate::call::Call;
use crate::deletion::Preconditions;
use crate::respond::Body;
use crate::status::{Cause, GroupResource, StatusError};
use crate::write::{meta, meta_mut};
use http::Response;
use serde_json::{Value, json};

pub(super) fn create(call: &Call) -> Result<Response<Body>, StatusError> {
    let dry_run = call.query.dry_run()?;
    let (_, binding) = body_of_kind(call, "", "Binding")?;
    let name = meta(&binding, "name");
    if !call.target.name.is_empty() && name != call.target.name {
        return Err(StatusError::bad_request("name in URL does not match name in Binding object"));
    }
    let target = |field: &str| binding["target"].get(field).and_then(Value::as_str).unwrap_or_default();
    check_target(target("kind"), target("name"))?;
    let key = call.resource.key(&call.target.namespace, name);
    call.cluster.write(dry_run, |transaction, _| {
        let refused = |why: String| StatusError::conflict(&GroupResource::new("", "pods/binding"), name, why);
        let current = transaction
            .get(&call.resource.storage, &key)
            .ok_or_else(|| StatusError::not_found(&call.resource.group_resource(), name))?;
        let given = |field: &str| Some(meta(&binding, field).to_owned()).filter(|text| !text.is_empty());
        Preconditions { uid: given("uid"), resource_version: given("resourceVersion") }
            .check_stored(&call.resource, &current)?;
        let mut pod = current.value()?;
        if !meta(&pod, "deletionTimestamp").is_empty() {
            return Err(refused(format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        if let Some(node) =
            pod.pointer("/spec/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
        {
            return Err(refused(format!("pod {name} is already assigned to node {node:?}")));
        }
        if pod
            .pointer("/spec/schedulingGates")
            .and_then(Value::as_array)
            .is_some_and(|gates| !gates.is_empty())
        {
            return Err(refused(format!("pod {name} has non-empty .spec.schedulingGates")));
        }
        pod["spec"]["nodeName"] = target("name").into();
        for field in ["annotations", "labels"] {
            let Some(added) = binding["metadata"].get(field).and_then(Value::as_object) else { continue };
            let mut all =
                meta_mut(&mut pod).get(field).and_then(Value::as_object).cloned().unwrap_or_default();
            all.extend(added.clone());
            meta_mut(&mut pod).insert(field.into(), all.into());
        }
        if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
            status.shift_remove("nominatedNodeName");
        }
        set_condition(
            &mut pod,
            json!({"type": "PodScheduled", "status": "True"}),
            transaction.generated.now(),
        );
        transaction.put(&call.resource, &key, pod);
        Ok(())
    })?;
    Ok(done(call))
}

fn check_target(kind: &str, name: &str) -> Result<(), StatusError> {
    let mut causes = Vec::new();
    if !matches!(kind, "" | "Node") {
        let supported = "supported values: \"Node\", \"<empty>\"";
        causes.push(Cause::new(
            "FieldValueNotSupported",
            "target.kind",
            format!("Unsupported value: {kind:?}: {supported}"),
        ));
    }
    if name.is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    match causes.as_slice() {
        [] => Ok(()),
        // kube-apiserver does not translate these errors.
        [one] => Err(StatusError::untranslated(one.to_string())),
        several => {
            let messages: Vec<String> = several.iter().map(Cause::to_string).collect();
            Err(StatusError::untranslated(format!("[{}]", messages.join(", "))))
        }
    }
}

/// Sets a condition of a Pod, with the time of its last status change.
pub(super) fn set_condition(pod: &mut Value, mut condition: Value, now: String) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = now.into();
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
