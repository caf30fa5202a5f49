//! The cells of the built-in kinds, in the order of their columns (`columns.rs`).

use super::cells::{age, entries, items, joined, labels, number, pod, text};
use super::others;
use crate::resource::Resource;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Returns the cells of one object, in the order of its columns.
pub(super) fn cells(resource: &Resource, o: &Value, now: Timestamp) -> Vec<Value> {
    let name = text(o, "/metadata/name", "");
    let age_text = age(o, "/metadata/creationTimestamp", now);
    let containers = || names(o, "/spec/template/spec/containers", "name");
    let images = || names(o, "/spec/template/spec/containers", "image");
    let selector = || labels(o, "/spec/selector/matchLabels");
    let of = |status: &str| number(o, &format!("/status/{status}"));
    let desired = |default: i64| o.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(default);
    let cells = match resource.kind.as_str() {
        "ConfigMap" => json!([name, entries(o, &["/data", "/binaryData"]), age_text]),
        "Secret" => json!([name, text(o, "/type", ""), entries(o, &["/data"]), age_text]),
        "ServiceAccount" => json!([name, age_text]),
        "Namespace" => json!([name, text(o, "/status/phase", ""), age_text]),
        "Endpoints" => json!([name, endpoints(o), age_text]),
        "Event" => event(o, name, now),
        "Node" => node(o, name, &age_text),
        "Pod" => {
            let (ready, status, restarts) = pod(o);
            json!([
                name,
                ready,
                status,
                restarts,
                age_text,
                text(o, "/status/podIP", "<none>"),
                text(o, "/spec/nodeName", "<none>"),
                text(o, "/status/nominatedNodeName", "<none>"),
                "<none>",
            ])
        }
        "PodTemplate" => json!([
            name,
            names(o, "/template/spec/containers", "name"),
            names(o, "/template/spec/containers", "image"),
            labels(o, "/template/metadata/labels"),
        ]),
        "ReplicationController" => json!([
            name,
            desired(1),
            of("replicas"),
            of("readyReplicas"),
            age_text,
            containers(),
            images(),
            labels(o, "/spec/selector"),
        ]),
        "ReplicaSet" => json!([
            name,
            desired(1),
            of("replicas"),
            of("readyReplicas"),
            age_text,
            containers(),
            images(),
            selector(),
        ]),
        "Deployment" => json!([
            name,
            format!("{}/{}", of("readyReplicas"), desired(1)),
            of("updatedReplicas"),
            of("availableReplicas"),
            age_text,
            containers(),
            images(),
            selector(),
        ]),
        "StatefulSet" => {
            json!([name, format!("{}/{}", of("readyReplicas"), desired(1)), age_text, containers(), images()])
        }
        "DaemonSet" => json!([
            name,
            of("desiredNumberScheduled"),
            of("currentNumberScheduled"),
            of("numberReady"),
            of("updatedNumberScheduled"),
            of("numberAvailable"),
            labels(o, "/spec/template/spec/nodeSelector"),
            age_text,
            containers(),
            images(),
            selector(),
        ]),
        "ControllerRevision" => {
            let owner = items(o, "/metadata/ownerReferences").find(|owner| owner["controller"] == true);
            let owner = owner.map(|owner| {
                format!("{}/{}", text(owner, "/kind", "").to_lowercase(), text(owner, "/name", ""))
            });
            json!([name, owner.as_deref().unwrap_or("<none>"), number(o, "/revision").to_string(), age_text])
        }
        "CronJob" => json!([
            name,
            text(o, "/spec/schedule", ""),
            text(o, "/spec/timeZone", "<none>"),
            o.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false),
            items(o, "/status/active").count(),
            age(o, "/status/lastScheduleTime", now),
            age_text,
            names(o, "/spec/jobTemplate/spec/template/spec/containers", "name"),
            names(o, "/spec/jobTemplate/spec/template/spec/containers", "image"),
            "<none>",
        ]),
        "Job" => json!([
            name,
            job_status(o),
            format!("{}/{}", of("succeeded"), number(o, "/spec/completions").max(1)),
            age(o, "/status/startTime", now),
            age_text,
            containers(),
            images(),
            selector(),
        ]),
        "Service" => service(o, name, &age_text),
        "RoleBinding" | "ClusterRoleBinding" => binding(o, name, &age_text),
        "Lease" => json!([name, text(o, "/spec/holderIdentity", ""), age_text]),
        "PodDisruptionBudget" => json!([
            name,
            int_or_text(o, "/spec/minAvailable"),
            int_or_text(o, "/spec/maxUnavailable"),
            of("disruptionsAllowed"),
            age_text,
        ]),
        "IngressClass" => json!([
            name,
            text(o, "/spec/controller", ""),
            text(o, "/spec/parameters/name", "<none>"),
            age_text,
        ]),
        "Ingress" => json!([
            name,
            text(o, "/spec/ingressClassName", "<none>"),
            joined(items(o, "/spec/rules").map(|rule| text(rule, "/host", "*")), "*"),
            joined(
                items(o, "/status/loadBalancer/ingress").map(|at| text(at, "/ip", text(at, "/hostname", ""))),
                ""
            ),
            if items(o, "/spec/tls").count() > 0 { "80, 443" } else { "80" },
            age_text,
        ]),
        "NetworkPolicy" => json!([name, labels(o, "/spec/podSelector/matchLabels"), age_text]),
        "ResourceQuota" => json!([name, quota(o, ""), quota(o, "limits."), age_text]),
        "PersistentVolumeClaim" => json!([
            name,
            text(o, "/status/phase", ""),
            text(o, "/spec/volumeName", ""),
            text(o, "/status/capacity/storage", ""),
            joined(items(o, "/status/accessModes").filter_map(access_mode), ""),
            text(o, "/spec/storageClassName", ""),
            text(o, "/spec/volumeAttributesClassName", "<unset>"),
            age_text,
            text(o, "/spec/volumeMode", "<unset>"),
        ]),
        "PersistentVolume" => json!([
            name,
            text(o, "/spec/capacity/storage", ""),
            joined(items(o, "/spec/accessModes").filter_map(access_mode), ""),
            text(o, "/spec/persistentVolumeReclaimPolicy", ""),
            text(o, "/status/phase", ""),
            claim(o),
            text(o, "/spec/storageClassName", ""),
            text(o, "/spec/volumeAttributesClassName", "<unset>"),
            text(o, "/status/reason", ""),
            age_text,
            text(o, "/spec/volumeMode", "<unset>"),
        ]),
        kind => others::cells(kind, o, name, &age_text)
            .unwrap_or_else(|| json!([name, text(o, "/metadata/creationTimestamp", "")])),
    };
    match cells {
        Value::Array(cells) => cells,
        other => vec![other],
    }
}

fn names(object: &Value, pointer: &str, field: &str) -> String {
    joined(items(object, pointer).filter_map(|item| item[field].as_str()), "")
}

fn int_or_text(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        None => "N/A".into(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

fn access_mode(mode: &Value) -> Option<&str> {
    Some(match mode.as_str()? {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    })
}

fn claim(volume: &Value) -> String {
    match volume.pointer("/spec/claimRef") {
        Some(claim) => format!("{}/{}", text(claim, "/namespace", ""), text(claim, "/name", "")),
        None => String::new(),
    }
}

fn quota(object: &Value, prefix: &str) -> String {
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    let wanted =
        hard.into_iter().flatten().filter(|(name, _)| name.starts_with("limits.") != prefix.is_empty());
    let entries: Vec<String> = wanted
        .map(|(name, hard)| {
            let used = object.pointer("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    entries.join(", ")
}

fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(object, "/subsets") {
        for address in items(subset, "/addresses") {
            let ip = text(address, "/ip", "");
            let before = all.len();
            all.extend(items(subset, "/ports").map(|port| format!("{ip}:{}", number(port, "/port"))));
            if all.len() == before {
                all.push(ip.to_owned());
            }
        }
    }
    if all.is_empty() { "<none>".into() } else { all.join(",") }
}

fn event(o: &Value, name: &str, now: Timestamp) -> Value {
    // Events of both groups are formatted here.
    let either = |core: &str, new: &str| text(o, core, text(o, new, "")).to_owned();
    let last = either("/lastTimestamp", "/deprecatedLastTimestamp");
    let last = if last.is_empty() { either("/series/lastObservedTime", "/eventTime") } else { last };
    let first = either("/firstTimestamp", "/deprecatedFirstTimestamp");
    let first = if first.is_empty() { text(o, "/eventTime", "").to_owned() } else { first };
    let object = format!(
        "{}/{}",
        either("/involvedObject/kind", "/regarding/kind").to_lowercase(),
        either("/involvedObject/name", "/regarding/name")
    );
    let source = either("/source/component", "/reportingController");
    let count = number(o, "/count").max(number(o, "/deprecatedCount")).max(number(o, "/series/count")).max(1);
    json!([
        super::cells::age_of(&last, now),
        text(o, "/type", ""),
        text(o, "/reason", ""),
        object,
        either("/involvedObject/fieldPath", "/regarding/fieldPath"),
        source,
        either("/message", "/note").trim(),
        super::cells::age_of(&first, now),
        count.to_string(),
        name,
    ])
}

fn node(o: &Value, name: &str, age_text: &str) -> Value {
    let ready = items(o, "/status/conditions").find(|condition| condition["type"] == "Ready");
    let mut status = match ready.map(|condition| &condition["status"]) {
        Some(status) if *status == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".into(),
        None => "Unknown".into(),
    };
    if o.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = o.pointer("/metadata/labels").and_then(Value::as_object);
    let roles =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
    let address = |kind: &str| {
        let found = items(o, "/status/addresses").find(|address| address["type"] == kind);
        found.and_then(|address| address["address"].as_str()).unwrap_or("<none>").to_owned()
    };
    let info = |field: &str| text(o, &format!("/status/nodeInfo/{field}"), "<unknown>").to_owned();
    json!([
        name,
        status,
        joined(roles, "<none>"),
        age_text,
        text(o, "/status/nodeInfo/kubeletVersion", ""),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ])
}

fn job_status(o: &Value) -> &'static str {
    let is = |kind: &str| items(o, "/status/conditions").any(|c| c["type"] == kind && c["status"] == "True");
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if !text(o, "/metadata/deletionTimestamp", "").is_empty() => "Terminating",
        () if is("Suspended") => "Suspended",
        () => "Running",
    }
}

fn service(o: &Value, name: &str, age_text: &str) -> Value {
    let ports = items(o, "/spec/ports").map(|port| {
        let node_port = match number(port, "/nodePort") {
            0 => String::new(),
            node_port => format!(":{node_port}"),
        };
        format!("{}{node_port}/{}", number(port, "/port"), text(port, "/protocol", "TCP"))
    });
    let ports = ports.collect::<Vec<_>>().join(",");
    json!([
        name,
        text(o, "/spec/type", ""),
        text(o, "/spec/clusterIP", "<none>"),
        joined(
            items(o, "/spec/externalIPs").filter_map(Value::as_str),
            text(o, "/spec/externalName", "<none>")
        ),
        if ports.is_empty() { "<none>" } else { &ports },
        age_text,
        labels(o, "/spec/selector"),
    ])
}

fn binding(o: &Value, name: &str, age_text: &str) -> Value {
    let subjects = |kind: &str| {
        let of_kind = items(o, "/subjects").filter(|subject| subject["kind"] == kind);
        let names = of_kind.map(|subject| match text(subject, "/namespace", "") {
            "" => text(subject, "/name", "").to_owned(),
            namespace => format!("{namespace}/{}", text(subject, "/name", "")),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    json!([
        name,
        format!("{}/{}", text(o, "/roleRef/kind", ""), text(o, "/roleRef/name", "")),
        age_text,
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ])
}
