//! Validates kinds that no controller of this server uses: HorizontalPodAutoscalers, EndpointSlices,
//! StorageClasses and PriorityClasses, CertificateSigningRequests.

use super::{list, not_supported, text};
use crate::status::Cause;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Kubernetes' own priority classes.
const SYSTEM_CLASSES: &[&str] = &["system-node-critical", "system-cluster-critical"];
const HIGHEST_PRIORITY: i64 = 1_000_000_000;

pub(super) fn autoscaler(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let least = number("/spec/minReplicas");
    let most = number("/spec/maxReplicas").unwrap_or_default();
    if least.is_some_and(|least| least < 1) {
        causes.push(Cause::invalid("spec.minReplicas", &json!(least), "must be greater than or equal to 1"));
    }
    if most < 1 {
        causes.push(Cause::required("spec.maxReplicas", "must be set and greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), why));
    }
    for field in ["kind", "name"] {
        if text(object, &format!("/spec/scaleTargetRef/{field}")).is_empty() {
            causes.push(Cause::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    let version = text(object, "/spec/scaleTargetRef/apiVersion");
    if !version.contains('/') && text(object, "/spec/scaleTargetRef/kind") != "ReplicationController" {
        let why = "apiVersion must specify API group";
        causes.push(Cause::invalid("spec.scaleTargetRef.apiVersion", &json!(version), why));
    }
    causes
}

pub(super) fn endpoint_slice(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    match text(object, "/addressType") {
        "" => causes.push(Cause::required("addressType", "")),
        "IPv4" | "IPv6" | "FQDN" => {}
        other => causes.push(not_supported("addressType", other, &["FQDN", "IPv4", "IPv6"])),
    }
    for (index, endpoint) in list(object, "/endpoints").iter().enumerate() {
        if list(endpoint, "/addresses").is_empty() {
            let why = "must contain at least 1 address";
            causes.push(Cause::required(format!("endpoints[{index}].addresses"), why));
        }
    }
    causes
}

pub(super) fn storage_class(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if text(object, "/provisioner").is_empty() {
        causes.push(Cause::required("provisioner", ""));
    }
    for (field, supported) in [
        ("reclaimPolicy", ["Delete", "Retain"]),
        ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
    ] {
        let value = text(object, &format!("/{field}"));
        if !supported.contains(&value) && !value.is_empty() {
            causes.push(not_supported(field, value, &supported));
        }
    }
    causes
}

pub(super) fn priority_class(object: &Value) -> Vec<Cause> {
    let name = text(object, "/metadata/name");
    let value = object.get("value").and_then(Value::as_i64).unwrap_or_default();
    if name.starts_with("system-") {
        if SYSTEM_CLASSES.contains(&name) {
            return Vec::new();
        }
        return vec![Cause::forbidden(
            "metadata.name",
            format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
                 known system priority class"
            ),
        )];
    }
    if value > HIGHEST_PRIORITY {
        return vec![Cause::forbidden(
            "value",
            format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"),
        )];
    }
    Vec::new()
}

pub(super) fn certificate_request(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let request = text(object, "/spec/request");
    let pem = STANDARD.decode(request).unwrap_or_default();
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE REQUEST-----") {
        let shown = if request.is_empty() { Value::Null } else { request.into() };
        causes.push(Cause::invalid("spec.request", &shown, "PEM block type must be CERTIFICATE REQUEST"));
    }
    let signer = text(object, "/spec/signerName");
    if signer.is_empty() {
        causes.push(Cause::required("spec.signerName", ""));
    } else if !signer.split_once('/').is_some_and(|(domain, path)| domain.contains('.') && !path.is_empty()) {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.push(Cause::invalid("spec.signerName", &json!(signer), why));
    }
    if list(object, "/spec/usages").is_empty() {
        causes.push(Cause::required("spec.usages", ""));
    }
    causes
}

/// An approval or denial of a CertificateSigningRequest is final.
pub(crate) fn certificate_decisions(new: &Value, old: &Value) -> Vec<Cause> {
    let has = |object: &Value, kind: &str| {
        list(object, "/status/conditions").iter().any(|condition| condition["type"] == kind)
    };
    let mut causes = Vec::new();
    for kind in ["Approved", "Denied", "Failed"] {
        if has(old, kind) && !has(new, kind) {
            let why = format!("updates may not remove a condition of type {kind:?}");
            causes.push(Cause::forbidden("status.conditions", why));
        }
    }
    if has(new, "Approved") && has(new, "Denied") {
        let kind =
            list(new, "/status/conditions").last().map(|last| last["type"].clone()).unwrap_or_default();
        let why = "Approved and Denied conditions are mutually exclusive";
        causes.push(Cause::invalid("status.conditions", &kind, why));
    }
    causes
}
