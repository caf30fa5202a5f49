//! A command that makes a plugin act: it creates an object that one of the plugin's subscriptions matches.

use std::fmt::Write as _;

use oarlock_controller::{plan::SubscriptionPlan, provision::Example};
use oarlock_informer::{
    Object,
    listener::{FieldCondition, FieldTest},
};
use oarlock_plugin::contract::{Description, Namespaces, Subscription};
use serde_json::{Map, Value, json};

use crate::shell_word::quoted;

/// The namespace of an object, if the subscription names none.
const NAMESPACE: &str = "default";

/// The longest name of an object that every resource accepts.
const MAX_NAME: usize = 63;

/// Returns a command for the first subscription for which one can be built. `kubectl` is the beginning of the
/// command.
pub(super) fn of(plugin: &str, description: &Description, kubectl: &str) -> Example {
    let subscriptions = &description.subscriptions;
    match subscriptions.iter().find_map(|it| Some((it, command(plugin, it, kubectl)?))) {
        Some((subscription, command)) => Example {
            text: format!(
                "to see it act on its subscription {}, run in another terminal:",
                subscription.name
            ),
            command: Some(command),
        },
        None => {
            let mut acts: Vec<_> = subscriptions.iter().map(|it| format!("on {}", in_words(it))).collect();
            acts.extend(
                description.schedules.iter().map(|it| format!("at the times of its schedule {}", it.name)),
            );
            Example { text: format!("it acts {}", acts.join(", or ")), command: None }
        }
    }
}

fn command(plugin: &str, subscription: &Subscription, kubectl: &str) -> Option<String> {
    let Kind { api_version, kind, is_namespaced, body } = kind(subscription)?;
    let plan = SubscriptionPlan::of(subscription.clone()).ok()?;
    let name = format!("try-{plugin}");
    let name = name[..name.len().min(MAX_NAME)].trim_end_matches('-');
    let mut metadata = json!({ "name": name });
    let mut place = String::new();
    if is_namespaced {
        let namespace = match &subscription.namespaces {
            Namespaces::All => NAMESPACE,
            Namespaces::One(namespace) => namespace,
        };
        metadata["namespace"] = namespace.into();
        let _ = write!(place, " --namespace {namespace}");
    }
    let labels = plan.selector.example()?;
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    for (key, value) in body {
        object[key] = value;
    }
    for condition in &plan.conditions {
        meet(&mut object, condition)?;
    }
    let parsed = Object::parse(object.to_string().as_bytes(), None).ok()?;
    if !(parsed.is_selected_by(&plan.selector) && plan.conditions.iter().all(|it| it.matches(&parsed))) {
        return None;
    }
    let status = object.as_object_mut()?.remove("status");
    let json = object.to_string();
    // The echo of some shells interprets backslashes.
    let print = if json.contains('\\') { "printf %s" } else { "echo" };
    let mut command = format!("{print} {} | {kubectl} apply -f -", quoted(&json));
    if let Some(status) = status {
        let patch = quoted(&json!({ "status": status }).to_string());
        let plural = &subscription.target.plural;
        let _ = write!(
            command,
            "\n{kubectl} patch {plural} {name}{place} --subresource=status --type=merge --patch {patch}"
        );
    }
    Some(command)
}

/// Changes the object so that it meets a condition.
fn meet(object: &mut Value, condition: &FieldCondition) -> Option<()> {
    let pointer = condition.pointer().to_string();
    let there = object.pointer(&pointer).filter(|it| !it.is_null());
    let value = match condition.test() {
        FieldTest::Exists if there.is_some() => return Some(()),
        FieldTest::Exists => sample(&pointer),
        FieldTest::Equals(json) => serde_json::from_str(json).ok()?,
        FieldTest::In(values) => serde_json::from_str(values.first()?).ok()?,
        FieldTest::Greater(json) => beyond(json, 1)?,
        FieldTest::Less(json) => beyond(json, -1)?,
        FieldTest::Absent | FieldTest::Differs(_) | FieldTest::NotIn(_) => {
            if !condition.matches_value(there.map(ToString::to_string).as_deref()) {
                let (parent, name) = pointer.rsplit_once('/')?;
                object.pointer_mut(parent)?.as_object_mut()?.remove(&unescaped(name));
            }
            return Some(());
        }
    };
    let mut at = object;
    for segment in pointer.split('/').skip(1) {
        at = match at {
            Value::Array(items) => items.get_mut(segment.parse::<usize>().ok()?)?,
            Value::Object(map) => map.entry(unescaped(segment)).or_insert_with(|| json!({})),
            _ => return None,
        };
    }
    *at = value;
    Some(())
}

/// Returns a number or string that is greater or less than this JSON text, by the sign of `step`.
fn beyond(json: &str, step: i64) -> Option<Value> {
    match serde_json::from_str(json).ok()? {
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.checked_add(step).map(Value::from),
            None => Some((number.as_f64()? + step as f64).into()),
        },
        Value::String(text) if step > 0 => Some(format!("{text}0").into()),
        Value::String(text) if !text.is_empty() => Some("".into()),
        _ => None,
    }
}

/// Returns a value for a field that may have any value. In an annotation with a list, `*` is most likely to
/// be valid.
fn sample(pointer: &str) -> Value {
    match pointer {
        _ if pointer.starts_with("/metadata/annotations/") => "*".into(),
        _ if pointer.starts_with("/metadata/labels/") => "true".into(),
        "/metadata/finalizers" => json!(["example.com/try"]),
        // Also valid Base64, for Secrets.
        _ if pointer.starts_with("/data/") => "aGk=".into(),
        _ => "example".into(),
    }
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

struct Kind {
    api_version: String,
    kind: &'static str,
    is_namespaced: bool,
    /// The fields that the API server requires.
    body: Map<String, Value>,
}

/// Returns the kind of a subscription's resource, if it is one of the known built-in kinds.
fn kind(subscription: &Subscription) -> Option<Kind> {
    let target = &subscription.target;
    let labels = json!({ "try": "oarlock" });
    let pod = |restart: &str| {
        json!({
            "restartPolicy": restart,
            "containers": [{ "name": "main", "image": "registry.k8s.io/pause:3.10" }],
        })
    };
    let template = json!({ "metadata": { "labels": labels }, "spec": pod("Always") });
    let workload = || json!({ "selector": { "matchLabels": labels }, "template": template });
    let job = json!({ "template": { "spec": pod("Never") } });
    let spec = |spec: Value| json!({ "spec": spec });
    let (kind, body) = match (target.group.as_str(), target.plural.as_str()) {
        ("", "configmaps") => ("ConfigMap", json!({ "data": { "greeting": "hi" } })),
        ("", "secrets") => ("Secret", json!({ "data": { "greeting": "aGk=" } })),
        ("", "pods") => ("Pod", spec(pod("Always"))),
        ("", "services") => ("Service", spec(json!({ "ports": [{ "port": 80 }] }))),
        ("", "serviceaccounts") => ("ServiceAccount", json!({})),
        ("", "namespaces") => ("Namespace", json!({})),
        ("", "nodes") => ("Node", json!({})),
        ("", "endpoints") => ("Endpoints", json!({})),
        ("", "resourcequotas") => ("ResourceQuota", spec(json!({ "hard": { "pods": "10" } }))),
        ("", "persistentvolumeclaims") => (
            "PersistentVolumeClaim",
            spec(json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            })),
        ),
        ("apps", "deployments") => ("Deployment", spec(workload())),
        ("apps", "replicasets") => ("ReplicaSet", spec(workload())),
        ("apps", "daemonsets") => ("DaemonSet", spec(workload())),
        ("apps", "statefulsets") => {
            let mut stateful = workload();
            stateful["serviceName"] = "try".into();
            ("StatefulSet", spec(stateful))
        }
        ("batch", "jobs") => ("Job", spec(job)),
        ("batch", "cronjobs") => {
            ("CronJob", spec(json!({ "schedule": "0 0 1 1 *", "jobTemplate": { "spec": job } })))
        }
        ("rbac.authorization.k8s.io", "roles") => ("Role", json!({ "rules": [] })),
        ("rbac.authorization.k8s.io", "clusterroles") => ("ClusterRole", json!({ "rules": [] })),
        ("coordination.k8s.io", "leases") => ("Lease", spec(json!({}))),
        ("networking.k8s.io", "networkpolicies") => ("NetworkPolicy", spec(json!({ "podSelector": {} }))),
        ("networking.k8s.io", "ingresses") => (
            "Ingress",
            spec(json!({
                "defaultBackend": { "service": { "name": "try", "port": { "number": 80 } } },
            })),
        ),
        _ => return None,
    };
    const CLUSTER_SCOPED: [&str; 3] = ["Namespace", "Node", "ClusterRole"];
    Some(Kind {
        api_version: match target.group.as_str() {
            "" => target.version.clone(),
            group => format!("{group}/{}", target.version),
        },
        kind,
        is_namespaced: !CLUSTER_SCOPED.contains(&kind),
        body: match body {
            Value::Object(body) => body,
            _ => Map::new(),
        },
    })
}

/// Describes the objects that a subscription matches, for people.
fn in_words(subscription: &Subscription) -> String {
    let Subscription { target, namespaces, label_selector, conditions, .. } = subscription;
    let dot = if target.group.is_empty() { "" } else { "." };
    let mut text = format!("{}{dot}{}", target.plural, target.group);
    if let Namespaces::One(namespace) = namespaces {
        let _ = write!(text, " in the namespace {namespace}");
    }
    if !label_selector.is_empty() {
        let _ = write!(text, " with labels {label_selector}");
    }
    if !conditions.is_empty() {
        let fields: Vec<_> = conditions.iter().map(|it| it.pointer.as_str()).collect();
        let _ = write!(text, " that meet its conditions on {}", fields.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;
