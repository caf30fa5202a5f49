//! A plugin and its component as aligned text.

use std::{fmt::Write, path::Path};

use oarlock_controller::{config::PluginFile, report::OneLine};
use oarlock_plugin::contract::{
    Content, Description, Enqueue, FieldCondition, GroupVersionResource, IndexSource, NamedAt, Namespaces,
    OwnerKind, Read, Request, Schedule, Scope, Subscription, Test, Trigger, WallTimes, WorkKey,
};

use super::super::examine::Examined;

/// Rows of a label and a text; a label is not repeated.
#[derive(Default)]
struct Table {
    rows: Vec<(&'static str, String)>,
}

/// Returns the content of a plugin's file.
pub(super) fn plugin(file: &PluginFile) -> String {
    let mut table = Table::default();
    table.row("plugin", format!("{} ({})", file.name, file.path.display()));
    table.row("acts as", format!("ServiceAccount {}", file.service_account));
    let settings = [
        (file.is_suspended, "the host does not call it"),
        (file.suspend_writes, "the host refuses its writes"),
        (file.dry_run, "its writes are dry runs"),
    ];
    for (_, what) in settings.into_iter().filter(|(is_set, _)| *is_set) {
        table.row("suspended", what.to_owned());
    }
    let limits = serde_json::to_value(&file.limits).unwrap_or_default();
    for (name, value) in limits.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        table.row("limits", format!("{name} {value}"));
    }
    table.to_string()
}

/// Returns a component's properties and its description.
pub(super) fn component(path: &Path, examined: &Examined) -> String {
    let Examined { component, description, start, memory_bytes } = examined;
    let mut table = Table::default();
    table.row("component", format!("{}, {} KiB", path.display(), component.size().div_ceil(1024)));
    table.row("digest", component.digest().to_string());
    table.row("world", format!("{}, contract {}", examined.world(), examined.contract_version()));
    for import in component.imports() {
        table.row("imports", import.clone());
    }
    let (ms, kib) = (start.as_secs_f64() * 1e3, memory_bytes.div_ceil(1024));
    table.row("instance", format!("{kib} KiB of linear memory, ready after {ms:.1} ms on this machine"));
    described(&mut table, description);
    table.to_string()
}

fn described(table: &mut Table, description: &Description) {
    let Description { name, version, subscriptions, reads, indices, requests, schedules, stateless } =
        description;
    let state = if *stateless {
        "stateless"
    } else {
        "with state: after a trap or swap all objects are delivered to it again"
    };
    table.row("describes", format!("{name} {version}, {state}"));
    for it in subscriptions {
        table.row("watches", subscription(it));
    }
    for Read { name, target, namespaces, content, wakes } in reads {
        let what = resource(target);
        let wakes = if *wakes { ", wakes the keys that read it" } else { "" };
        let (place, content) = (place(namespaces), metadata_only(*content));
        table.row("reads", format!("{name}: {what} in {place}{content}{wakes}"));
    }
    for index in indices {
        let source = match &index.source {
            IndexSource::Label(label) => format!("label {label}"),
            IndexSource::OwnerUid => "owner uid".to_owned(),
            IndexSource::Pointer(pointer) => pointer.clone(),
        };
        table.row("indices", format!("{}: {} by {source}", index.name, index.lister));
    }
    for Request { target, namespaces, verbs, subresource } in requests {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let what = resource(target);
        let verbs = verbs.join(", ");
        table.row("requests", format!("{what}{slash}{subresource} in {}: {verbs}", place(namespaces)));
    }
    for it in schedules {
        table.row("schedules", schedule(it));
    }
}

fn schedule(Schedule { name, trigger, at_start, key }: &Schedule) -> String {
    let times = match trigger {
        Trigger::EverySeconds(seconds) => format!("every {seconds} s"),
        Trigger::At(WallTimes { cron, time_zone }) if time_zone.is_empty() => format!("at {cron} UTC"),
        Trigger::At(WallTimes { cron, time_zone }) => format!("at {cron} {time_zone}"),
    };
    let start = if *at_start { ", and at the start" } else { "" };
    let key = key.as_ref().map_or_else(String::new, |key| format!(", enqueues {}", show_key(key)));
    format!("{name}: {times}{start}{key}")
}

fn show_key(WorkKey { kind, object }: &WorkKey) -> String {
    match (object.namespace.as_str(), object.name.as_str()) {
        ("", "") => kind.clone(),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

fn cluster_scoped(scope: Scope) -> &'static str {
    match scope {
        Scope::SameNamespace => "",
        Scope::Cluster => "cluster-scoped ",
    }
}

fn subscription(it: &Subscription) -> String {
    let mut text = format!("{}: {} in {}", it.name, resource(&it.target), place(&it.namespaces));
    // Writing into a String cannot fail.
    if !it.label_selector.is_empty() {
        let _ = write!(text, ", labels {}", it.label_selector);
    }
    for FieldCondition { pointer, test } in &it.conditions {
        let _ = match test {
            Test::Exists => write!(text, ", has {pointer}"),
            Test::Absent => write!(text, ", lacks {pointer}"),
            Test::Equals(value) => write!(text, ", {pointer} = {value}"),
            Test::Differs(value) => write!(text, ", {pointer} != {value}"),
            Test::In(values) => write!(text, ", {pointer} in ({})", values.join(", ")),
            Test::NotIn(values) => write!(text, ", {pointer} not in ({})", values.join(", ")),
            Test::Greater(value) => write!(text, ", {pointer} > {value}"),
            Test::Less(value) => write!(text, ", {pointer} < {value}"),
        };
    }
    if !it.fields.is_empty() {
        let _ = write!(text, ", fields {}", it.fields.join(" "));
    }
    if it.resync_seconds > 0 {
        let _ = write!(text, ", again every {} s", it.resync_seconds);
    }
    let _ = match &it.enqueue {
        Enqueue::Nothing => Ok(()),
        Enqueue::Itself => write!(text, ", enqueues itself"),
        Enqueue::ControllerOwner(OwnerKind { group, kind, scope }) => {
            let dot = if group.is_empty() { "" } else { "." };
            write!(text, ", enqueues its owning {}{kind}{dot}{group}", cluster_scoped(*scope))
        }
        Enqueue::Pointer(NamedAt { at, scope }) => {
            write!(text, ", enqueues the {}object that {at} names", cluster_scoped(*scope))
        }
        Enqueue::Label(NamedAt { at, scope }) => {
            write!(text, ", enqueues the {}object that the label {at} names", cluster_scoped(*scope))
        }
        Enqueue::Key(key) => write!(text, ", enqueues {}", show_key(key)),
    };
    if it.ignore_own_writes {
        text.push_str(", ignores its own writes");
    }
    text.push_str(metadata_only(it.content));
    text
}

pub(super) fn resource(target: &GroupVersionResource) -> String {
    match target.group.as_str() {
        "" => format!("{}/{}", target.version, target.plural),
        group => format!("{group}/{}/{}", target.version, target.plural),
    }
}

fn place(namespaces: &Namespaces) -> String {
    match namespaces {
        Namespaces::All => "all namespaces".to_owned(),
        Namespaces::One(namespace) => format!("namespace {namespace}"),
    }
}

fn metadata_only(content: Content) -> &'static str {
    match content {
        Content::Full => "",
        Content::Metadata => ", metadata only",
    }
}

// === impl Table ===

impl Table {
    fn row(&mut self, label: &'static str, text: String) {
        self.rows.push((label, text));
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut before = "";
        for (label, text) in &self.rows {
            let shown = if *label == before { "" } else { label };
            // The component chose this text.
            writeln!(f, "{shown:<10} {}", OneLine(text))?;
            before = label;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_printed_as_a_table() {
        let target = |group: &str, plural: &str| GroupVersionResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
        };
        let description = Description {
            name: "scaler".to_owned(),
            version: "1.2.3".to_owned(),
            subscriptions: vec![Subscription {
                name: "apps".to_owned(),
                target: target("apps", "deployments"),
                namespaces: Namespaces::One("team-a".to_owned()),
                label_selector: "app=web".to_owned(),
                conditions: vec![FieldCondition {
                    pointer: "/spec/paused".to_owned(),
                    test: Test::Differs("true".to_owned()),
                }],
                fields: vec!["/spec/replicas".to_owned()],
                content: Content::Full,
                resync_seconds: 60,
                enqueue: Enqueue::Itself,
                ignore_own_writes: false,
            }],
            reads: vec![Read {
                name: "pods".to_owned(),
                target: target("", "pods"),
                namespaces: Namespaces::All,
                content: Content::Metadata,
                wakes: false,
            }],
            indices: Vec::new(),
            schedules: vec![],
            requests: vec![Request {
                target: target("apps", "deployments"),
                namespaces: Namespaces::All,
                verbs: vec!["patch".to_owned()],
                subresource: "status".to_owned(),
            }],
            stateless: true,
        };
        let mut table = Table::default();
        described(&mut table, &description);
        insta::assert_snapshot!(table, @"
        describes  scaler 1.2.3, stateless
        watches    apps: apps/v1/deployments in namespace team-a, labels app=web, /spec/paused != true, fields /spec/replicas, again every 60 s, enqueues itself
        reads      pods: v1/pods in all namespaces, metadata only
        requests   apps/v1/deployments/status in all namespaces: patch
        ");
    }
}
