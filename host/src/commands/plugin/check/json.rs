//! A component and its description as JSON. The names are those of plugin files and of the contract, in camel
//! case.

use std::time::Duration;

use oarlock_controller::config::PluginFile;
use oarlock_plugin::contract::{
    Content, Description, Enqueue, FieldCondition, GroupVersionResource, Index, IndexSource, NamedAt,
    Namespaces, ObjectKey, OwnerKind, Read, Request, Schedule, Scope, Subscription, Test, Trigger, WallTimes,
    WorkKey,
};
use serde_json::{Value, json};

use super::{super::super::examine::Examined, Subject};

pub(super) fn of(subject: &Subject, warnings: &[String]) -> Value {
    let Subject { file, component: path, examined } = subject;
    let Examined { component, description, start, memory_bytes } = examined;
    json!({
        "plugin": file.as_ref().map(plugin),
        "component": {
            "file": path.display().to_string(),
            "bytes": component.size(),
            "digest": component.digest().to_string(),
            "world": examined.world(),
            "contract": examined.contract_version(),
            "compileMicroseconds": microseconds(component.compile_time()),
            "imports": component.imports(),
        },
        "start": {"microseconds": microseconds(*start), "memoryBytes": memory_bytes},
        "description": described(description),
        "warnings": warnings,
    })
}

/// For the compilation: until the code was loaded, which is short if it was compiled before.
fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn plugin(file: &PluginFile) -> Value {
    json!({
        "name": file.name,
        "file": file.path.display().to_string(),
        "serviceAccount": {"namespace": file.service_account.namespace, "name": file.service_account.name},
        "config": file.config,
        "limits": file.limits,
        "suspend": file.is_suspended,
        "suspendWrites": file.suspend_writes,
        "dryRun": file.dry_run,
        "concurrency": file.concurrency,
        "weight": file.weight,
    })
}

fn described(description: &Description) -> Value {
    let Description { name, version, subscriptions, reads, indices, requests, schedules, stateless } =
        description;
    json!({
        "name": name,
        "version": version,
        "stateless": stateless,
        "subscriptions": all(subscriptions, subscription),
        "reads": all(reads, |Read { name, target, namespaces, content, wakes }| json!({
            "name": name,
            "target": resource(target),
            "namespaces": self::namespaces(namespaces),
            "content": self::content(*content),
            "wakes": wakes,
        })),
        "indices": all(indices, |Index { name, lister, source }| json!({
            "name": name,
            "lister": lister,
            "source": match source {
                IndexSource::Label(label) => json!({ "label": label }),
                IndexSource::OwnerUid => json!("ownerUid"),
                IndexSource::Pointer(pointer) => json!({ "pointer": pointer }),
            },
        })),
        "requests": all(requests, |Request { target, namespaces, verbs, subresource }| json!({
            "target": resource(target),
            "subresource": subresource,
            "namespaces": self::namespaces(namespaces),
            "verbs": verbs,
        })),
        "schedules": all(schedules, |Schedule { name, trigger, at_start, key }| json!({
            "name": name,
            "trigger": match trigger {
                Trigger::EverySeconds(seconds) => json!({ "everySeconds": seconds }),
                Trigger::At(WallTimes { cron, time_zone }) => json!({"cron": cron, "timeZone": time_zone}),
            },
            "atStart": at_start,
            "key": key.as_ref().map(self::key),
        })),
    })
}

fn all<T>(items: &[T], of: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(of).collect())
}

fn subscription(it: &Subscription) -> Value {
    json!({
        "name": it.name,
        "target": resource(&it.target),
        "namespaces": namespaces(&it.namespaces),
        "labelSelector": it.label_selector,
        "conditions": all(&it.conditions, condition),
        "fields": it.fields,
        "content": content(it.content),
        "resyncSeconds": it.resync_seconds,
        "enqueue": match &it.enqueue {
            Enqueue::Nothing => json!("nothing"),
            Enqueue::Itself => json!("itself"),
            Enqueue::ControllerOwner(OwnerKind { group, kind, scope }) => {
                json!({"controllerOwner": {"group": group, "kind": kind, "scope": self::scope(*scope)}})
            }
            Enqueue::Pointer(NamedAt { at, scope }) => json!({"pointer": {"at": at, "scope": self::scope(*scope)}}),
            Enqueue::Label(NamedAt { at, scope }) => json!({"label": {"at": at, "scope": self::scope(*scope)}}),
            Enqueue::Key(key) => json!({"key": self::key(key)}),
        },
        "ignoreOwnWrites": it.ignore_own_writes,
    })
}

fn condition(FieldCondition { pointer, test }: &FieldCondition) -> Value {
    let test = match test {
        Test::Exists => json!("exists"),
        Test::Absent => json!("absent"),
        Test::Equals(value) => json!({ "equals": value }),
        Test::Differs(value) => json!({ "differs": value }),
        Test::In(values) => json!({ "in": values }),
        Test::NotIn(values) => json!({ "notIn": values }),
        Test::Greater(value) => json!({ "greater": value }),
        Test::Less(value) => json!({ "less": value }),
    };
    json!({"pointer": pointer, "test": test})
}

fn resource(GroupVersionResource { group, version, plural }: &GroupVersionResource) -> Value {
    json!({"group": group, "version": version, "plural": plural})
}

fn key(WorkKey { kind, object: ObjectKey { namespace, name } }: &WorkKey) -> Value {
    json!({"kind": kind, "namespace": namespace, "name": name})
}

/// Null for all of them.
fn namespaces(namespaces: &Namespaces) -> Value {
    match namespaces {
        Namespaces::All => Value::Null,
        Namespaces::One(namespace) => json!([namespace]),
    }
}

fn content(content: Content) -> &'static str {
    match content {
        Content::Full => "full",
        Content::Metadata => "metadata",
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::SameNamespace => "sameNamespace",
        Scope::Cluster => "cluster",
    }
}
