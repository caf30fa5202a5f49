//! The defaults of built-in kinds, which kube-apiserver fills in when it decodes.
//!
//! Defaults of a type are looked up by the type's name, those of a kind by the kind's name.

use crate::schema::{Node, Shape};
use serde_json::{Map, Value, json};

/// The annotation with the generation of a DaemonSet's template.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

type Object = Map<String, Value>;

/// Fills in the defaults of an object of a built-in kind.
pub(super) fn fill_in(root: &Node, kind: &str, object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        of_kind(kind, object);
    }
    visit(root, object);
    if kind == "Pod"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        missing(spec, "enableServiceLinks", json!(true));
        for list in ["initContainers", "containers"] {
            for container in objects(spec.get_mut(list)) {
                requests_from_limits(container);
            }
        }
    }
}

fn visit(node: &Node, value: &mut Value) {
    match (&node.shape, value) {
        (Shape::Struct(of), Value::Object(object)) => {
            let of = of.get();
            for (name, field) in &of.fields {
                if let Some(default) = &field.default {
                    missing(object, name, default.clone());
                }
            }
            of_type(&of.name, object);
            for (name, value) in object.iter_mut() {
                if let Some(field) = of.fields.get(name) {
                    visit(field, value);
                }
            }
        }
        (Shape::Map(inner), Value::Object(map)) => map.values_mut().for_each(|value| visit(inner, value)),
        (Shape::List(inner), Value::Array(list)) => list.iter_mut().for_each(|value| visit(inner, value)),
        _ => {}
    }
}

fn of_kind(kind: &str, object: &mut Object) {
    match kind {
        "Namespace" => {
            let name = object.get("metadata").and_then(|m| m.get("name")).cloned();
            if let Some(name) = name.filter(|name| name.as_str().is_some_and(|name| !name.is_empty())) {
                let metadata = object_in(object, "metadata");
                object_in(metadata, "labels").insert("kubernetes.io/metadata.name".into(), name);
            }
        }
        "Secret" => missing(object, "type", json!("Opaque")),
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = object_in(object, "roleRef");
            missing(role, "apiGroup", json!("rbac.authorization.k8s.io"));
            for subject in objects(object.get_mut("subjects")) {
                if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                    missing(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
                }
            }
        }
        "StatefulSet" => {
            let templates = object.get_mut("spec").and_then(|spec| spec.get_mut("volumeClaimTemplates"));
            for template in objects(templates) {
                missing(template, "kind", json!("PersistentVolumeClaim"));
                missing(template, "apiVersion", json!("v1"));
                missing(object_in(template, "status"), "phase", json!("Pending"));
            }
        }
        "DaemonSet" => {
            let annotations = object_in(object_in(object, "metadata"), "annotations");
            missing(annotations, TEMPLATE_GENERATION, json!("0"));
        }
        "StorageClass" => {
            missing(object, "reclaimPolicy", json!("Delete"));
            missing(object, "volumeBindingMode", json!("Immediate"));
        }
        "PriorityClass" => missing(object, "preemptionPolicy", json!("PreemptLowerPriority")),
        "Job" | "ReplicationController" => {
            if kind == "Job" {
                job(object_in(object, "spec"));
            }
            let labels =
                object.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
            if let Some(labels) = labels {
                missing(object_in(object, "metadata"), "labels", labels);
            }
        }
        _ => {}
    }
}

fn of_type(name: &str, object: &mut Object) {
    match name {
        "core.v1.PodSpec" => {
            missing(object, "restartPolicy", json!("Always"));
            missing(object, "terminationGracePeriodSeconds", json!(30));
            missing(object, "dnsPolicy", json!("ClusterFirst"));
            missing(object, "securityContext", json!({}));
            missing(object, "schedulerName", json!("default-scheduler"));
            same(object, "serviceAccountName", "serviceAccount");
        }
        "core.v1.Container" | "core.v1.EphemeralContainer" => container(object),
        "core.v1.Probe" => {
            missing(object, "timeoutSeconds", json!(1));
            missing(object, "periodSeconds", json!(10));
            missing(object, "successThreshold", json!(1));
            missing(object, "failureThreshold", json!(3));
        }
        "core.v1.HTTPGetAction" => {
            missing(object, "path", json!("/"));
            missing(object, "scheme", json!("HTTP"));
        }
        "core.v1.GRPCAction" => missing(object, "service", json!("")),
        "core.v1.SecretVolumeSource"
        | "core.v1.ConfigMapVolumeSource"
        | "core.v1.DownwardAPIVolumeSource"
        | "core.v1.ProjectedVolumeSource" => missing(object, "defaultMode", json!(420)),
        "core.v1.ServiceAccountTokenProjection" => missing(object, "expirationSeconds", json!(3600)),
        "core.v1.HostPathVolumeSource" => missing(object, "type", json!("")),
        "core.v1.ObjectFieldSelector" => missing(object, "apiVersion", json!("v1")),
        "core.v1.PersistentVolumeClaimSpec" => missing(object, "volumeMode", json!("Filesystem")),
        "core.v1.PersistentVolumeSpec" => {
            missing(object, "persistentVolumeReclaimPolicy", json!("Retain"));
            missing(object, "volumeMode", json!("Filesystem"));
        }
        "core.v1.ServiceSpec" => service(object),
        "core.v1.ReplicationControllerSpec" | "apps.v1.ReplicaSetSpec" => {
            missing(object, "replicas", json!(1))
        }
        "apps.v1.DeploymentSpec" => {
            missing(object, "replicas", json!(1));
            missing(object, "revisionHistoryLimit", json!(10));
            missing(object, "progressDeadlineSeconds", json!(600));
            let strategy = object_in(object, "strategy");
            missing(strategy, "type", json!("RollingUpdate"));
            if strategy.get("type") == Some(&json!("RollingUpdate")) {
                let rolling = object_in(strategy, "rollingUpdate");
                missing(rolling, "maxUnavailable", json!("25%"));
                missing(rolling, "maxSurge", json!("25%"));
            }
        }
        "apps.v1.StatefulSetSpec" => {
            missing(object, "podManagementPolicy", json!("OrderedReady"));
            missing(object, "replicas", json!(1));
            missing(object, "revisionHistoryLimit", json!(10));
            let strategy = object_in(object, "updateStrategy");
            missing(strategy, "type", json!("RollingUpdate"));
            if strategy.get("type") == Some(&json!("RollingUpdate")) {
                missing(object_in(strategy, "rollingUpdate"), "partition", json!(0));
            }
            let retention = object_in(object, "persistentVolumeClaimRetentionPolicy");
            missing(retention, "whenDeleted", json!("Retain"));
            missing(retention, "whenScaled", json!("Retain"));
        }
        "apps.v1.DaemonSetSpec" => {
            missing(object, "revisionHistoryLimit", json!(10));
            let strategy = object_in(object, "updateStrategy");
            missing(strategy, "type", json!("RollingUpdate"));
            if strategy.get("type") == Some(&json!("RollingUpdate")) {
                let rolling = object_in(strategy, "rollingUpdate");
                missing(rolling, "maxUnavailable", json!(1));
                missing(rolling, "maxSurge", json!(0));
            }
        }
        "batch.v1.CronJobSpec" => {
            missing(object, "concurrencyPolicy", json!("Allow"));
            missing(object, "suspend", json!(false));
            missing(object, "successfulJobsHistoryLimit", json!(3));
            missing(object, "failedJobsHistoryLimit", json!(1));
        }
        "networking.v1.NetworkPolicySpec" => {
            let egress = object.get("egress").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            missing(object, "policyTypes", types);
        }
        "networking.v1.NetworkPolicyPort" => missing(object, "protocol", json!("TCP")),
        "discovery.v1.EndpointPort" => {
            missing(object, "name", json!(""));
            missing(object, "protocol", json!("TCP"));
        }
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => {
            missing(object, "minReplicas", json!(1));
            if object.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                let target = json!({"type": "Utilization", "averageUtilization": 80});
                object.insert(
                    "metrics".into(),
                    json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
                );
            }
        }
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => {
            let scale_up = object_in(object, "scaleUp");
            missing(scale_up, "stabilizationWindowSeconds", json!(0));
            missing(scale_up, "selectPolicy", json!("Max"));
            missing(
                scale_up,
                "policies",
                json!([
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15},
                ]),
            );
            let scale_down = object_in(object, "scaleDown");
            missing(scale_down, "selectPolicy", json!("Max"));
            missing(scale_down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
        }
        "apiextensions.v1.CustomResourceDefinitionSpec" => {
            missing(object, "conversion", json!({"strategy": "None"}));
            let names = object_in(object, "names");
            let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !kind.is_empty() {
                missing(names, "singular", kind.to_lowercase().into());
                missing(names, "listKind", format!("{kind}List").into());
            }
        }
        _ => {}
    }
}

fn container(object: &mut Object) {
    let image = object.get("image").and_then(Value::as_str).unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let tag = last
        .split_once('@')
        .map_or_else(|| last.split_once(':').map_or("latest", |(_, tag)| tag), |_| "by digest");
    let policy = if tag == "latest" { "Always" } else { "IfNotPresent" };
    missing(object, "imagePullPolicy", json!(policy));
    missing(object, "terminationMessagePath", json!("/dev/termination-log"));
    missing(object, "terminationMessagePolicy", json!("File"));
}

fn requests_from_limits(container: &mut Object) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    let requests = object_in(resources, "requests");
    for (name, limit) in limits {
        missing(requests, &name, limit);
    }
}

fn service(object: &mut Object) {
    missing(object, "sessionAffinity", json!("None"));
    missing(object, "type", json!("ClusterIP"));
    if object.get("sessionAffinity") == Some(&json!("ClientIP")) {
        missing(object, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
    }
    let of_type = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if of_type != "ExternalName" {
        missing(object, "internalTrafficPolicy", json!("Cluster"));
    }
    if matches!(of_type.as_str(), "NodePort" | "LoadBalancer") {
        missing(object, "externalTrafficPolicy", json!("Cluster"));
    }
    if of_type == "LoadBalancer" {
        missing(object, "allocateLoadBalancerNodePorts", json!(true));
    }
    for port in objects(object.get_mut("ports")) {
        missing(port, "protocol", json!("TCP"));
        if let Some(number) = port.get("port").cloned()
            && port.get("targetPort").is_none_or(|target| *target == json!(0) || *target == json!(""))
        {
            port.insert("targetPort".into(), number);
        }
    }
}

fn job(object: &mut Object) {
    if !object.contains_key("completions") && !object.contains_key("parallelism") {
        missing(object, "completions", json!(1));
    }
    missing(object, "parallelism", json!(1));
    if !object.contains_key("backoffLimit") {
        let per_index = object.contains_key("backoffLimitPerIndex");
        missing(object, "backoffLimit", if per_index { json!(i32::MAX) } else { json!(6) });
    }
    missing(object, "completionMode", json!("NonIndexed"));
    missing(object, "suspend", json!(false));
    missing(object, "manualSelector", json!(false));
    let policy = if object.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    missing(object, "podReplacementPolicy", json!(policy));
}

/// Sets a field that is absent, or empty where an empty value counts as absent.
fn missing(object: &mut Object, name: &str, value: Value) {
    let absent = match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty() && value != json!(""),
        Some(_) => false,
    };
    if absent {
        object.insert(name.into(), value);
    }
}

/// Copies a field to its older name, or back.
fn same(object: &mut Object, name: &str, older: &str) {
    if let Some(value) = object.get(name).or_else(|| object.get(older)).cloned() {
        missing(object, name, value.clone());
        object.insert(older.into(), value);
    }
}

fn object_in<'o>(object: &'o mut Object, name: &str) -> &'o mut Object {
    let value = object.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(inner) => inner,
        _ => unreachable!("it was just made an object"),
    }
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Object> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
