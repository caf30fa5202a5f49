//! The cells of kinds that have no controller in this server.

use super::cells::{human, items, joined, number, text};
use serde_json::{Value, json};

/// The number of addresses of an EndpointSlice that are shown.
const SHOWN: usize = 3;

/// Returns the cells of an object; `None` for the kinds of other files.
pub(super) fn cells(kind: &str, o: &Value, name: &str, age: &str) -> Option<Value> {
    Some(match kind {
        "HorizontalPodAutoscaler" => json!([
            name,
            format!(
                "{}/{}",
                text(o, "/spec/scaleTargetRef/kind", ""),
                text(o, "/spec/scaleTargetRef/name", "")
            ),
            joined(
                items(o, "/spec/metrics").map(target).collect::<Vec<_>>().iter().map(String::as_str),
                "<none>"
            ),
            o.pointer("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), Value::to_string),
            number(o, "/spec/maxReplicas"),
            number(o, "/status/currentReplicas"),
            age,
        ]),
        "EndpointSlice" => json!([name, text(o, "/addressType", ""), ports(o), addresses(o), age]),
        "StorageClass" => json!([
            name,
            text(o, "/provisioner", ""),
            text(o, "/reclaimPolicy", "Delete"),
            text(o, "/volumeBindingMode", "Immediate"),
            o.get("allowVolumeExpansion") == Some(&json!(true)),
            age,
        ]),
        "PriorityClass" => json!([
            name,
            number(o, "/value"),
            o.get("globalDefault") == Some(&json!(true)),
            age,
            text(o, "/preemptionPolicy", "PreemptLowerPriority"),
        ]),
        "CertificateSigningRequest" => {
            let seconds = o.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
            json!([
                name,
                age,
                text(o, "/spec/signerName", "<none>"),
                text(o, "/spec/username", ""),
                seconds.map_or_else(|| "<none>".to_owned(), human),
                condition(o),
            ])
        }
        _ => return None,
    })
}

/// No controller measures here, so only the targets are shown.
fn target(metric: &Value) -> String {
    let named = text(metric, "/resource/name", "");
    let aim = |field: &str| metric.pointer(&format!("/resource/target/{field}"));
    match (aim("averageUtilization"), aim("averageValue").and_then(Value::as_str)) {
        (Some(percent), _) => format!("{named}: <unknown>/{percent}%"),
        (None, Some(value)) => format!("{named}: <unknown>/{value}"),
        (None, None) => "<unknown>".into(),
    }
}

fn ports(slice: &Value) -> String {
    let ports: Vec<String> = items(slice, "/ports")
        .map(|port| {
            port.get("port").filter(|port| !port.is_null()).map_or_else(|| "*".to_owned(), Value::to_string)
        })
        .collect();
    joined(ports.iter().map(String::as_str), "<unset>")
}

fn addresses(slice: &Value) -> String {
    let all: Vec<&str> = items(slice, "/endpoints")
        .flat_map(|endpoint| items(endpoint, "/addresses"))
        .filter_map(Value::as_str)
        .collect();
    let shown = joined(all.iter().copied().take(SHOWN), "<unset>");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn condition(request: &Value) -> String {
    let has = |kind: &str| items(request, "/status/conditions").any(|one| one["type"] == kind);
    let mut conditions: Vec<&str> =
        ["Approved", "Denied"].into_iter().filter(|kind| has(kind)).take(1).collect();
    if conditions.is_empty() {
        conditions.push("Pending");
    }
    if has("Failed") {
        conditions.push("Failed");
    }
    if !text(request, "/status/certificate", "").is_empty() {
        conditions.push("Issued");
    }
    conditions.join(",")
}
