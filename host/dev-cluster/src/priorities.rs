//! The admission plugin Priority: a Pod gets the priority of its PriorityClass.

use crate::status::{GroupResource, StatusError};
use crate::store::Transaction;
use crate::write::meta;
use serde_json::{Value, json};

/// Writes the priority of a new Pod's PriorityClass into it. A Pod without a class gets the global default,
/// if one exists.
pub(crate) fn admit(transaction: &Transaction<'_>, pod: &mut Value) -> Result<(), StatusError> {
    let classes = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    let name = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let class = match name {
        "" => transaction
            .objects(&classes, "")
            .iter()
            .filter_map(|class| class.value().ok())
            .filter(|class| class["globalDefault"] == true)
            .min_by_key(|class| class["value"].as_i64()),
        "system-node-critical" => {
            Some(json!({"value": 2_000_001_000, "preemptionPolicy": "PreemptLowerPriority"}))
        }
        "system-cluster-critical" => {
            Some(json!({"value": 2_000_000_000, "preemptionPolicy": "PreemptLowerPriority"}))
        }
        name => {
            let found = transaction.get(&classes, name).ok_or_else(|| {
                let why = format!("no PriorityClass with name {name} was found");
                StatusError::forbidden(&GroupResource::new("", "pods"), meta(pod, "name"), why)
            })?;
            Some(found.value()?)
        }
    };
    let Some(class) = class else { return Ok(()) };
    if name.is_empty() {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    }
    pod["spec"]["priority"] = class["value"].clone();
    if let Some(policy) = class.get("preemptionPolicy") {
        pod["spec"]["preemptionPolicy"] = policy.clone();
    }
    Ok(())
}
