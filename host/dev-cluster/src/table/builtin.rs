//! The columns of the built-in kinds, as the real server names them, and their cells.

use super::Column;
use super::cells::{age, entries, items, joined, labels, number, pod, text};
use super::others;
use crate::resource::Resource;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Kind and columns: `*` marks those of `-o wide`, `#` integers, `?` booleans. The first is the name, unless `@` says
/// which is.
const COLUMNS: &[(&str, &str)] = &[
    ("ConfigMap", "Name|Data|Age"),
    ("Endpoints", "Name|Endpoints|Age"),
    ("Event", "Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*@"),
    ("Namespace", "Name|Status|Age"),
    (
        "Node",
        "Name|Status|Roles|Age|Version|Internal-IP*|External-IP*|OS-Image*|Kernel-Version*|Container-Runtime*",
    ),
    (
        "PersistentVolumeClaim",
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode*",
    ),
    (
        "PersistentVolume",
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|VolumeMode*",
    ),
    ("Pod", "Name|Ready|Status|Restarts|Age|IP*|Node*|Nominated Node*|Readiness Gates*"),
    ("PodTemplate", "Name|Containers|Images|Pod Labels"),
    ("ReplicationController", "Name|Desired#|Current#|Ready#|Age|Containers*|Images*|Selector*"),
    ("ResourceQuota", "Name|Request|Limit|Age"),
    ("Secret", "Name|Type|Data|Age"),
    ("ServiceAccount", "Name|Age"),
    ("Service", "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector*"),
    ("ControllerRevision", "Name|Controller|Revision|Age"),
    (
        "DaemonSet",
        "Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|Containers*|Images*|Selector*",
    ),
    ("Deployment", "Name|Ready|Up-to-date|Available|Age|Containers*|Images*|Selector*"),
    ("ReplicaSet", "Name|Desired#|Current#|Ready#|Age|Containers*|Images*|Selector*"),
    ("StatefulSet", "Name|Ready|Age|Containers*|Images*"),
    ("CronJob", "Name|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|Containers*|Images*|Selector*"),
    ("Job", "Name|Status|Completions|Duration|Age|Containers*|Images*|Selector*"),
    ("ClusterRoleBinding", "Name|Role|Age|Users*|Groups*|ServiceAccounts*"),
    ("RoleBinding", "Name|Role|Age|Users*|Groups*|ServiceAccounts*"),
    ("Lease", "Name|Holder|Age"),
    ("PodDisruptionBudget", "Name|Min Available|Max Unavailable|Allowed Disruptions#|Age"),
    ("IngressClass", "Name|Controller|Parameters|Age"),
    ("Ingress", "Name|Class|Hosts|Address|Ports|Age"),
    ("NetworkPolicy", "Name|Pod-Selector|Age"),
    ("HorizontalPodAutoscaler", "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age"),
    ("EndpointSlice", "Name|AddressType|Ports|Endpoints|Age"),
    ("StorageClass", "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"),
    ("PriorityClass", "Name|Value#|Global-Default?|Age|PreemptionPolicy"),
    ("CertificateSigningRequest", "Name|Age|SignerName|Requestor|RequestedDuration|Condition"),
];

pub(super) fn name_column() -> Column {
    column("Name", "string", "name")
}

pub(super) fn age_column(kind: &str) -> Column {
    column("Age", kind, "")
}

fn column(name: &str, kind: &str, format: &str) -> Column {
    let description = match name {
        "Name" => "Name must be unique within a namespace.",
        "Age" | "Created At" => "CreationTimestamp is the time at which this object was created.",
        _ => "",
    };
    Column {
        name: name.into(),
        kind: kind.into(),
        format: format.into(),
        description: description.into(),
        priority: 0,
    }
}

pub(super) fn columns(resource: &Resource) -> Vec<Column> {
    let Some((_, columns)) = COLUMNS.iter().find(|(kind, _)| *kind == resource.kind) else {
        return vec![name_column(), column("Created At", "date", "")];
    };
    let parse = |(at, text): (usize, &str)| {
        let name = text.trim_end_matches(['*', '#', '?', '@']);
        let marks = &text[name.len()..];
        let kind = match marks {
            _ if marks.contains('#') => "integer",
            _ if marks.contains('?') => "boolean",
            _ => "string",
        };
        let is_name = marks.contains('@') || (at == 0 && name == "Name");
        let mut column = column(name, kind, if is_name { "name" } else { "" });
        column.priority = i64::from(marks.contains('*'));
        column
    };
    columns.split('|').enumerate().map(parse).collect()
}

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
    let said: Vec<String> = wanted
        .map(|(name, hard)| {
            let used = object.pointer("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    said.join(", ")
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
    // Both views of an Event come here.
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
        let said = of_kind.map(|subject| match text(subject, "/namespace", "") {
            "" => text(subject, "/name", "").to_owned(),
            namespace => format!("{namespace}/{}", text(subject, "/name", "")),
        });
        said.collect::<Vec<_>>().join(", ")
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
