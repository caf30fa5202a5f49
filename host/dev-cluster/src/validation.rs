//! Validation (422): the rules of metadata for every kind, and those rules of built-in kinds that controllers
//! meet during development. Other rules are missing, so this server accepts some invalid objects; it refuses
//! none that kube-apiserver accepts.

mod metadata;
mod names;
mod others;
mod pods;
mod workloads;

use crate::status::{Cause, GroupKind};
use serde_json::{Map, Value, json};

pub(crate) use metadata::{metadata, metadata_update};
pub(crate) use names::NameRule;
pub(crate) use others::certificate_decisions;
pub(crate) use pods::ephemeral_containers;

/// The place in an object that a rule checks.
fn at(path: &str, field: impl std::fmt::Display) -> String {
    if path.is_empty() { field.to_string() } else { format!("{path}.{field}") }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn map<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
    Cause::new(
        "FieldValueNotSupported",
        field,
        format!("Unsupported value: {value:?}: supported values: {}", supported.join(", ")),
    )
}

fn duplicate(field: impl Into<String>, value: &Value) -> Cause {
    Cause::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
}

/// The rules of a built-in kind for an object.
pub(crate) fn builtin(kind: &GroupKind, object: &Value) -> Vec<Cause> {
    match kind.kind.as_str() {
        "ConfigMap" => config_map(object),
        "Secret" => secret(object),
        "Pod" => pods::spec(object.get("spec").unwrap_or(&Value::Null), "spec"),
        "Service" => service(object),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => workloads::selecting(object),
        "Job" => workloads::job(object.get("spec").unwrap_or(&Value::Null), "spec"),
        "CronJob" => workloads::cron_job(object),
        "Role" | "ClusterRole" => role(object),
        "RoleBinding" | "ClusterRoleBinding" => binding(object, kind.kind == "RoleBinding"),
        "Lease" => lease(object),
        "Ingress"
            if list(object, "/spec/rules").is_empty() && object.pointer("/spec/defaultBackend").is_none() =>
        {
            vec![Cause::invalid("spec", &Value::Null, "either `defaultBackend` or `rules` must be specified")]
        }
        "PersistentVolumeClaim" => claim(object),
        "HorizontalPodAutoscaler" => others::autoscaler(object),
        "EndpointSlice" => others::endpoint_slice(object),
        "StorageClass" => others::storage_class(object),
        "PriorityClass" => others::priority_class(object),
        "CertificateSigningRequest" => others::certificate_request(object),
        "Event" if kind.group.is_empty() => event(object),
        "CustomResourceDefinition" => crate::crd::validate(object),
        _ => Vec::new(),
    }
}

/// The rules of a built-in kind for a change.
pub(crate) fn builtin_update(kind: &GroupKind, new: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut immutable = |pointer: &str, path: &str| {
        let of = |object: &Value| object.pointer(pointer).cloned().unwrap_or_default();
        if of(new) != of(old) {
            causes.push(Cause::invalid(path, &of(new), "field is immutable"));
        }
    };
    match kind.kind.as_str() {
        "Secret" => immutable("/type", "type"),
        "EndpointSlice" => immutable("/addressType", "addressType"),
        "StorageClass" => {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                immutable(&format!("/{field}"), field);
            }
        }
        "PriorityClass" => {
            immutable("/preemptionPolicy", "preemptionPolicy");
            if new.get("value") != old.get("value") {
                causes.push(Cause::forbidden("value", "may not be changed in an update."));
            }
        }
        "Deployment" | "ReplicaSet" | "DaemonSet" => immutable("/spec/selector", "spec.selector"),
        "Job" => {
            immutable("/spec/selector", "spec.selector");
            immutable("/spec/completions", "spec.completions");
            immutable("/spec/template", "spec.template");
        }
        "RoleBinding" | "ClusterRoleBinding" if new.get("roleRef") != old.get("roleRef") => {
            let role = json!({
                "APIGroup": text(new, "/roleRef/apiGroup"), "Kind": text(new, "/roleRef/kind"),
                "Name": text(new, "/roleRef/name"),
            });
            causes.push(Cause::invalid("roleRef", &role, "cannot change roleRef"));
        }
        "CustomResourceDefinition" => {
            immutable("/spec/scope", "spec.scope");
            immutable("/spec/names/kind", "spec.names.kind");
        }
        "Pod" => causes.extend(pods::update(new, old)),
        _ => {}
    }
    if matches!(kind.kind.as_str(), "ConfigMap" | "Secret") && old.get("immutable") == Some(&json!(true)) {
        if new.get("immutable") != Some(&json!(true)) {
            causes.push(Cause::forbidden("immutable", "field is immutable when `immutable` is set"));
        }
        for field in ["data", "binaryData"] {
            if new.get(field) != old.get(field) {
                causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    causes
}

fn config_map(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in map(object, &format!("/{field}")) {
            size += value.as_str().unwrap_or_default().len();
            for why in names::config_key_faults(key) {
                causes.push(Cause::invalid(format!("{field}[{key}]"), &json!(key), why));
            }
            if field == "data" && object.pointer("/binaryData").and_then(|data| data.get(key)).is_some() {
                causes.push(Cause::invalid(
                    format!("data[{key}]"),
                    &json!(key),
                    "duplicate of key present in binaryData",
                ));
            }
        }
    }
    causes.extend(too_long("", size));
    causes
}

fn secret(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in map(object, "/data") {
        size += value.as_str().unwrap_or_default().len() / 4 * 3;
        for why in names::config_key_faults(key) {
            causes.push(Cause::invalid(format!("data[{key}]"), &json!(key), why));
        }
    }
    causes.extend(too_long("data", size));
    let required: &[&str] = match text(object, "/type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    for key in required {
        if object.pointer("/data").and_then(|data| data.get(key)).is_none() {
            causes.push(Cause::required(format!("data[{key}]"), ""));
        }
    }
    causes
}

fn too_long(field: &str, size: usize) -> Option<Cause> {
    (size > 1024 * 1024).then(|| {
        Cause::new(
            "FieldValueTooLong",
            field,
            format!("Too long: may not be more than {} bytes", 1024 * 1024),
        )
    })
}

fn service(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let ports = list(object, "/spec/ports");
    let headless = text(object, "/spec/clusterIP") == "None";
    if ports.is_empty() && !headless && text(object, "/spec/type") != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        if ports.len() > 1 && text(port, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        for field in ["port", "targetPort"] {
            if let Some(number) = port.get(field).and_then(Value::as_i64)
                && !(1..=65535).contains(&number)
            {
                causes.push(Cause::invalid(
                    format!("{path}.{field}"),
                    &port[field],
                    "must be between 1 and 65535, inclusive",
                ));
            }
        }
    }
    causes
}

fn role(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, rule) in list(object, "/rules").iter().enumerate() {
        let path = format!("rules[{index}]");
        let none = |field: &str| list(rule, &format!("/{field}")).is_empty();
        if none("verbs") {
            causes.push(Cause::required(format!("{path}.verbs"), "verbs must contain at least one value"));
        }
        if !none("nonResourceURLs") {
            if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                causes.push(Cause::invalid(
                    format!("{path}.nonResourceURLs"),
                    &rule["nonResourceURLs"],
                    "rules cannot apply to both regular resources and non-resource URLs",
                ));
            }
            continue;
        }
        if none("apiGroups") {
            causes.push(Cause::required(
                format!("{path}.apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if none("resources") {
            causes.push(Cause::required(
                format!("{path}.resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
    causes
}

fn binding(object: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text(object, "/roleRef/kind");
    if !kinds.contains(&kind) {
        causes.push(not_supported("roleRef.kind", kind, kinds));
    }
    if text(object, "/roleRef/name").is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    for (index, subject) in list(object, "/subjects").iter().enumerate() {
        let path = format!("subjects[{index}]");
        if text(subject, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        match text(subject, "/kind") {
            "User" | "Group" => {}
            "ServiceAccount" if !namespaced && text(subject, "/namespace").is_empty() => {
                causes.push(Cause::required(format!("{path}.namespace"), ""));
            }
            "ServiceAccount" => {}
            other => causes.push(not_supported(
                format!("{path}.kind"),
                other,
                &["ServiceAccount", "User", "Group"],
            )),
        }
    }
    causes
}

fn lease(object: &Value) -> Vec<Cause> {
    let duration = object.pointer("/spec/leaseDurationSeconds");
    match duration.and_then(Value::as_i64) {
        Some(seconds) if seconds <= 0 => {
            vec![Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), "must be greater than 0")]
        }
        _ => Vec::new(),
    }
}

fn claim(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if list(object, "/spec/accessModes").is_empty() {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if object.pointer("/spec/resources/requests/storage").is_none() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
    causes
}

fn event(object: &Value) -> Vec<Cause> {
    let about = text(object, "/involvedObject/namespace");
    let own = text(object, "/metadata/namespace");
    // Events of cluster-scoped objects are in "default".
    let fits = about == own || about.is_empty() && own == "default";
    if fits {
        return Vec::new();
    }
    vec![Cause::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace")]
}

/// Returns the fields of an object; none for other values.
fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
