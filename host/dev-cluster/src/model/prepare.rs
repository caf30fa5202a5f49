//! The fields that a write resets or fills in, regardless of the client: the "strategy" of each kind.

use super::Model;
use super::defaults::TEMPLATE_GENERATION;
use serde_json::{Map, Value, json};

// === impl Model ===

impl Model {
    /// Prepares a decoded object for its creation. Name, uid and creation time are already set.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        let Some(map) = object.as_object_mut() else {
            return;
        };
        if self.has_status {
            map.shift_remove("status");
        }
        if self.is_custom() {
            return;
        }
        match self.kind.kind.as_str() {
            "Namespace" => {
                map.insert("spec".into(), json!({"finalizers": ["kubernetes"]}));
                map.insert("status".into(), json!({"phase": "Active"}));
            }
            "Pod" => {
                admit_pod(map);
                let class = qos_class(map);
                map.insert("status".into(), json!({"phase": "Pending", "qosClass": class}));
            }
            "PersistentVolume" | "PersistentVolumeClaim" => {
                map.insert("status".into(), json!({"phase": "Pending"}));
            }
            "Job" => {
                select_own_pods(map);
                label_as_template(map);
            }
            "DaemonSet" => set_template_generation(map, 1),
            _ => {}
        }
        self.write_empty_status(map);
    }

    /// Prepares an update of the object itself. The status is kept.
    pub(crate) fn prepare_update(&self, new: &mut Value, old: &Value) {
        if self.has_status {
            keep(new, old, "status");
        }
        if self.kind.kind == "Namespace" && self.kind.group.is_empty() {
            // Only `finalize` changes them.
            let finalizers = old.pointer("/spec/finalizers").cloned();
            if let (Some(finalizers), Some(spec)) =
                (finalizers, new.get_mut("spec").and_then(Value::as_object_mut))
            {
                spec.insert("finalizers".into(), finalizers);
            }
        }
        if self.kind.kind == "CertificateSigningRequest" && self.kind.group == "certificates.k8s.io" {
            keep(new, old, "spec");
        }
        if self.kind.kind == "DaemonSet" && !self.is_custom() {
            let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
            let generation = template_generation(old) + i64::from(changed);
            if let Some(new) = new.as_object_mut() {
                set_template_generation(new, generation);
            }
        }
        if self.kind.kind == "Pod" && self.kind.group.is_empty() {
            // Set once at admission; an update without them keeps them.
            for field in ["priority", "preemptionPolicy"] {
                if let (Some(value), Some(spec)) = (
                    old.pointer(&format!("/spec/{field}")),
                    new.get_mut("spec").and_then(Value::as_object_mut),
                ) {
                    spec.entry(field).or_insert_with(|| value.clone());
                }
            }
        }
    }

    /// Prepares an update of the status. Everything else is kept, except for some metadata.
    pub(crate) fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        let fields: Vec<String> = [new, old]
            .into_iter()
            .filter_map(|object| object.as_object())
            .flat_map(|object| object.keys().cloned())
            .filter(|key| !matches!(key.as_str(), "status" | "metadata" | "kind" | "apiVersion"))
            .collect();
        for field in fields {
            keep(new, old, &field);
        }
        let kept: &[&str] = if self.is_custom() {
            &["labels", "annotations", "finalizers", "ownerReferences", "generateName"]
        } else {
            match self.kind.kind.as_str() {
                "Pod" => &["ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"],
                "Deployment" | "Ingress" => &["labels"],
                _ => &[],
            }
        };
        for field in kept {
            if let (Some(new), Some(old)) = (new.get_mut("metadata"), old.get("metadata")) {
                keep(new, old, field);
            }
        }
    }

    /// Returns whether a change increments the generation: any change outside metadata and status, for kinds
    /// with a generation.
    pub(crate) fn changes_generation(&self, new: &Value, old: &Value) -> bool {
        // A PriorityClass keeps its generation: the fields that would increment it are immutable.
        if !self.counts_generations() || !self.is_custom() && self.kind.kind == "PriorityClass" {
            return false;
        }
        let content = |object: &Value| -> Map<String, Value> {
            let mut map = object.as_object().cloned().unwrap_or_default();
            map.shift_remove("metadata");
            if self.has_status || !self.is_custom() {
                map.shift_remove("status");
            }
            map
        };
        content(new) != content(old)
    }

    /// Returns whether objects of this kind have a generation.
    pub(crate) fn counts_generations(&self) -> bool {
        self.is_custom()
            || matches!(
                self.kind.kind.as_str(),
                "CronJob"
                    | "CustomResourceDefinition"
                    | "DaemonSet"
                    | "Deployment"
                    | "EndpointSlice"
                    | "Ingress"
                    | "IngressClass"
                    | "Job"
                    | "NetworkPolicy"
                    | "Pod"
                    | "PodDisruptionBudget"
                    | "PriorityClass"
                    | "ReplicaSet"
                    | "ReplicationController"
                    | "StatefulSet"
            )
    }

    /// Go writes the status of a kind that has one, even if it is empty.
    fn write_empty_status(&self, map: &mut Map<String, Value>) {
        if self.has_status && !map.contains_key("status") {
            let mut status = json!({});
            if let Some(node) = self.root.field("status") {
                status = super::decode::written(node, status);
            }
            map.insert("status".into(), status);
        }
    }
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(new) = new.as_object_mut() else {
        return;
    };
    match old.get(field) {
        Some(value) => {
            new.insert(field.to_owned(), value.clone());
        }
        None => {
            new.shift_remove(field);
        }
    }
}

/// The admission plugins Priority and DefaultTolerationSeconds.
fn admit_pod(pod: &mut Map<String, Value>) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry("priority").or_insert_with(|| json!(0));
    spec.entry("preemptionPolicy").or_insert_with(|| json!("PreemptLowerPriority"));
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|one| {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "" | "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

fn qos_class(pod: &Map<String, Value>) -> &'static str {
    let containers = |list: &str| -> Vec<Value> {
        pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (mut any, mut guaranteed) = (false, true);
    for container in containers("containers").into_iter().chain(containers("initContainers")) {
        let of = |kind: &str, name: &str| container.pointer(&format!("/resources/{kind}/{name}")).cloned();
        for name in ["cpu", "memory"] {
            let (request, limit) = (of("requests", name), of("limits", name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Sets missing labels to those of the Pod template.
fn label_as_template(object: &mut Map<String, Value>) {
    let labels = object.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let (Some(labels), Some(metadata)) =
        (labels, object.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.entry("labels").or_insert(labels);
    }
}

fn template_generation(object: &Value) -> i64 {
    object
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(TEMPLATE_GENERATION))
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(object: &mut Map<String, Value>, generation: i64) {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
    }
}

/// Sets the labels and the selector with which a Job finds its Pods.
fn select_own_pods(job: &mut Map<String, Value>) {
    let metadata = |key: &str| -> Value {
        job.get("metadata").and_then(|metadata| metadata.get(key)).cloned().unwrap_or_default()
    };
    let (name, uid) = (metadata("name"), metadata("uid"));
    let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("manualSelector") == Some(&json!(true)) || uid.is_null() {
        return;
    }
    if let Some(labels) = spec
        .get_mut("template")
        .and_then(Value::as_object_mut)
        .map(|template| template.entry("metadata").or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut)
        .map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut)
    {
        for (label, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            labels.entry(label).or_insert_with(|| value.clone());
        }
    }
    spec.entry("selector")
        .or_insert_with(|| json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
}
