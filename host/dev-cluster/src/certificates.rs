//! CertificateSigningRequests: the server writes the requester into them, and an approval or denial is final.
//! No signer runs here.

use crate::call::Call;
use crate::resource::Resource;
use serde_json::{Value, json};

pub(crate) fn is_request(resource: &Resource) -> bool {
    resource.is("certificates.k8s.io", "certificatesigningrequests")
}

/// Writes the requester into a new CertificateSigningRequest.
pub(crate) fn sign(call: &Call, object: &mut Value) {
    let user = &call.user;
    object["spec"]["username"] = user.name.as_str().into();
    object["spec"]["groups"] = json!(user.groups);
    if !user.uid.is_empty() {
        object["spec"]["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        object["spec"]["extra"] = json!(user.extra);
    }
}

/// Keeps only the conditions of an approval.
pub(crate) fn decide(new: &mut Value, old: &Value, now: &str) {
    let conditions = new.pointer("/status/conditions").cloned();
    new["spec"] = old["spec"].clone();
    new["status"] = old.get("status").cloned().unwrap_or_else(|| json!({}));
    match (conditions, new["status"].as_object_mut()) {
        (Some(conditions), Some(status)) => drop(status.insert("conditions".into(), conditions)),
        (None, Some(status)) => drop(status.shift_remove("conditions")),
        (_, None) => {}
    }
    date(new, now);
}

/// Sets the times of conditions that have none.
pub(crate) fn date(new: &mut Value, now: &str) {
    let conditions = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for field in ["lastUpdateTime", "lastTransitionTime"] {
            if condition.get(field).is_none_or(Value::is_null) {
                condition[field] = now.into();
            }
        }
    }
}
