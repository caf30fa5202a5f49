//! Checks whether a description is valid.

use std::{collections::BTreeSet, fmt::Display};

use crate::{
    Component,
    contract::{
        Description, Enqueue, FieldCondition, GroupVersionResource, IndexSource, Namespaces, OwnerKind,
        Schedule, Subscription, Test, Trigger, WallTimes, WorkKey,
    },
    guest, imports,
};

/// The maximum length of a text in a description.
pub(super) const MAX_TEXT_BYTES: usize = 4 << 10;

const MAX_NAME_BYTES: usize = 63;
/// Every change of an object is matched for each subscription to its resource.
const MAX_SUBSCRIPTIONS: usize = 32;
/// Every change of an object updates each index of its resource.
const MAX_INDICES: usize = 32;
const MAX_FIELDS: usize = 64;
const MAX_CONDITIONS: usize = 16;
const MAX_PARTS: usize = 256;
const MAX_SCHEDULES: usize = 32;
/// The maximum number of values of one `in` or `not-in`.
const MAX_VALUES: usize = 64;
/// A year.
const MAX_INTERVAL_SECONDS: u32 = 31_536_000;
const MAX_CRON_BYTES: usize = 256;
const MAX_OBJECT_NAME_BYTES: usize = 253;

/// The first defect of a description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Invalid {
    /// The field, such as `subscriptions[pods].fields[2]`.
    pub field: String,
    /// The defect.
    pub reason: String,
}

/// Checks everything that does not depend on Kubernetes.
pub(super) fn check(description: &Description, component: &Component) -> Result<(), Invalid> {
    Checker { handler: component.exports_handler(), reconciler: component.exports_reconciler() }
        .check(description)
}

struct Checker {
    handler: bool,
    reconciler: bool,
}

// === impl Checker ===

impl Checker {
    fn check(&self, description: &Description) -> Result<(), Invalid> {
        let Description { name, version, subscriptions, reads, indices, requests, schedules, stateless: _ } =
            description;
        check_name("name", name)?;
        check_text("version", version)?;
        check_count("subscriptions", subscriptions.len(), MAX_SUBSCRIPTIONS)?;
        check_count("reads", reads.len(), MAX_PARTS)?;
        check_count("indices", indices.len(), MAX_INDICES)?;
        check_count("requests", requests.len(), MAX_PARTS)?;
        check_count("schedules", schedules.len(), MAX_SCHEDULES)?;
        check_unique("subscriptions", subscriptions.iter().map(|subscription| &subscription.name))?;
        check_unique("reads", reads.iter().map(|read| &read.name))?;
        check_unique("indices", indices.iter().map(|index| &index.name))?;
        check_unique("schedules", schedules.iter().map(|schedule| &schedule.name))?;
        for subscription in subscriptions {
            self.check_subscription(subscription)?;
        }
        for read in reads {
            let at = format!("reads[{}]", read.name);
            check_target(&at, &read.target)?;
            check_namespaces(&at, &read.namespaces)?;
            if read.wakes && !self.reconciler {
                return Err(invalid(
                    format!("{at}.wakes"),
                    "it queues keys, and the component does not export `reconciler`",
                ));
            }
        }
        for index in indices {
            let at = format!("indices[{}]", index.name);
            if !reads.iter().any(|read| read.name == index.lister) {
                return Err(invalid(
                    format!("{at}.lister"),
                    format_args!("no read has the name {:?}", index.lister),
                ));
            }
            match &index.source {
                IndexSource::Label(label) => check_label(&format!("{at}.source"), label)?,
                IndexSource::Pointer(pointer) => check_part(&format!("{at}.source"), pointer)?,
                IndexSource::OwnerUid => {}
            }
        }
        for (idx, request) in requests.iter().enumerate() {
            let at = format!("requests[{idx}]");
            check_target(&at, &request.target)?;
            check_namespaces(&at, &request.namespaces)?;
            check_text(&format!("{at}.subresource"), &request.subresource)?;
            check_count(&format!("{at}.verbs"), request.verbs.len(), 16)?;
            if request.verbs.is_empty() {
                return Err(invalid(format!("{at}.verbs"), "empty: a request names at least one verb"));
            }
            for verb in &request.verbs {
                if verb.is_empty() || !verb.bytes().all(|b| b.is_ascii_lowercase()) {
                    return Err(invalid(
                        format!("{at}.verbs"),
                        format_args!("{verb:?} is not a verb of the API"),
                    ));
                }
            }
        }
        for schedule in schedules {
            self.check_schedule(schedule)?;
        }
        Ok(())
    }

    fn check_schedule(&self, schedule: &Schedule) -> Result<(), Invalid> {
        let Schedule { name, trigger, at_start: _, key } = schedule;
        let at = format!("schedules[{name}]");
        if !self.reconciler {
            return Err(invalid(at, "it adds a key, and the component does not export `reconciler`"));
        }
        match trigger {
            Trigger::EverySeconds(seconds) if !(1..=MAX_INTERVAL_SECONDS).contains(seconds) => {
                return Err(invalid(
                    format!("{at}.trigger"),
                    format_args!("the interval is {seconds} s, not 1 to {MAX_INTERVAL_SECONDS}"),
                ));
            }
            Trigger::EverySeconds(_) => {}
            Trigger::At(WallTimes { cron, time_zone }) => {
                check_length(&format!("{at}.trigger.cron"), cron, MAX_CRON_BYTES)?;
                check_length(&format!("{at}.trigger.time-zone"), time_zone, MAX_CRON_BYTES)?;
            }
        }
        key.as_ref().map_or(Ok(()), |key| check_key(&format!("{at}.key"), key))
    }

    fn check_subscription(&self, subscription: &Subscription) -> Result<(), Invalid> {
        let Subscription {
            name,
            target,
            namespaces,
            label_selector,
            conditions,
            fields,
            content: _,
            resync_seconds: _,
            enqueue,
            ignore_own_writes: _,
        } = subscription;
        let at = format!("subscriptions[{name}]");
        check_target(&at, target)?;
        check_namespaces(&at, namespaces)?;
        check_text(&format!("{at}.label-selector"), label_selector)?;
        check_count(&format!("{at}.conditions"), conditions.len(), MAX_CONDITIONS)?;
        for (idx, condition) in conditions.iter().enumerate() {
            check_condition(&format!("{at}.conditions[{idx}]"), condition)?;
        }
        check_count(&format!("{at}.fields"), fields.len(), MAX_FIELDS)?;
        for (idx, pointer) in fields.iter().enumerate() {
            check_part(&format!("{at}.fields[{idx}]"), pointer)?;
        }
        self.check_enqueue(&format!("{at}.enqueue"), enqueue)
    }

    fn check_enqueue(&self, at: &str, enqueue: &Enqueue) -> Result<(), Invalid> {
        match enqueue {
            Enqueue::Nothing if !self.handler => {
                return Err(invalid(at, "`nothing` calls the handler, which the component does not export"));
            }
            Enqueue::Nothing => return Ok(()),
            _ if !self.reconciler => {
                return Err(invalid(
                    at,
                    "the component does not export `reconciler`, so it can only be `nothing`",
                ));
            }
            Enqueue::Itself => {}
            Enqueue::ControllerOwner(OwnerKind { group, kind, scope: _ }) => {
                check_group(&format!("{at}.group"), group)?;
                check_name(at, kind)?;
            }
            Enqueue::Pointer(named) => check_part(at, &named.at)?,
            Enqueue::Label(named) => check_label(at, &named.at)?,
            Enqueue::Key(key) => check_key(at, key)?,
        }
        Ok(())
    }
}

fn check_condition(at: &str, condition: &FieldCondition) -> Result<(), Invalid> {
    check_part(&format!("{at}.pointer"), &condition.pointer)?;
    let at = format!("{at}.test");
    match &condition.test {
        Test::Exists | Test::Absent => Ok(()),
        Test::Equals(json) | Test::Differs(json) => check_json(&at, json).map(|_| ()),
        Test::In(values) | Test::NotIn(values) => {
            check_count(&at, values.len(), MAX_VALUES)?;
            if values.is_empty() {
                return Err(invalid(at, "there is no value to compare with"));
            }
            let n_bytes = values.iter().map(String::len).sum();
            check_size(&at, n_bytes, MAX_TEXT_BYTES)?;
            values
                .iter()
                .enumerate()
                .try_for_each(|(idx, json)| check_json(&format!("{at}[{idx}]"), json).map(|_| ()))
        }
        Test::Greater(json) | Test::Less(json) => match check_json(&at, json)? {
            serde_json::Value::Number(_) | serde_json::Value::String(_) => Ok(()),
            _ => Err(invalid(at, format_args!("{json:?} is neither a number nor a string"))),
        },
    }
}

fn check_json(at: &str, json: &str) -> Result<serde_json::Value, Invalid> {
    check_text(at, json)?;
    serde_json::from_str(json)
        .map_err(|e| invalid(at, format_args!("{json:?} is not JSON ({e}); a string needs its quotes")))
}

fn check_key(at: &str, key: &WorkKey) -> Result<(), Invalid> {
    let WorkKey { kind, object } = key;
    check_name(&format!("{at}.kind"), kind)?;
    check_length(&format!("{at}.object.namespace"), &object.namespace, MAX_OBJECT_NAME_BYTES)?;
    check_length(&format!("{at}.object.name"), &object.name, MAX_OBJECT_NAME_BYTES)
}

fn is_plain(text: &str) -> bool {
    text.len() <= MAX_OBJECT_NAME_BYTES
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}

fn check_group(at: &str, group: &str) -> Result<(), Invalid> {
    if !is_plain(group) {
        return Err(invalid(at, format_args!("{} is not an API group", shown(group))));
    }
    Ok(())
}

fn check_target(at: &str, target: &GroupVersionResource) -> Result<(), Invalid> {
    let GroupVersionResource { group, version, plural } = target;
    check_group(&format!("{at}.target.group"), group)?;
    // As a CustomResourceDefinition may name it (RFC 1035).
    let is_version = version.starts_with(|first: char| first.is_ascii_lowercase())
        && !version.ends_with('-')
        && version.len() <= 63
        && !version.contains('.');
    if !is_version || !is_plain(version) {
        return Err(invalid(
            format!("{at}.target.version"),
            format_args!(
                "{} is not an API version: letters, digits and -, a letter first, such as v1",
                shown(version)
            ),
        ));
    }
    if plural.is_empty() || !is_plain(plural) {
        return Err(invalid(
            format!("{at}.target.plural"),
            format_args!("{} is not a plural resource name, such as `configmaps`", shown(plural)),
        ));
    }
    Ok(())
}

fn check_namespaces(at: &str, namespaces: &Namespaces) -> Result<(), Invalid> {
    match namespaces {
        Namespaces::One(namespace) if namespace.is_empty() => {
            Err(invalid(format!("{at}.namespaces"), "`one` has an empty name; use `all` for all namespaces"))
        }
        Namespaces::One(namespace) => check_name(&format!("{at}.namespaces"), namespace),
        Namespaces::All => Ok(()),
    }
}

fn check_pointer(at: &str, text: &str) -> Result<(), Invalid> {
    imports::check_pointer(text).map_err(|reason| invalid(at, reason))
}

/// Checks a pointer that is looked up at every change of an object, and so must not select the whole object.
fn check_part(at: &str, text: &str) -> Result<(), Invalid> {
    check_pointer(at, text)?;
    if text.is_empty() {
        return Err(invalid(
            at,
            "the empty JSON pointer means the whole object: name a field of it, such as /spec",
        ));
    }
    Ok(())
}

fn check_label(at: &str, label: &str) -> Result<(), Invalid> {
    check_text(at, label)?;
    if label.is_empty() { Err(invalid(at, "the label's name is empty")) } else { Ok(()) }
}

fn check_unique<'a>(at: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (idx, name) in names.enumerate() {
        check_name(&format!("{at}[{idx}].name"), name)?;
        if !seen.insert(name) {
            return Err(invalid(format!("{at}[{idx}].name"), format_args!("{name:?} occurs twice")));
        }
    }
    Ok(())
}

fn check_name(at: &str, name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(invalid(at, "the name is empty"));
    }
    if name.len() > MAX_NAME_BYTES || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(invalid(
            at,
            format_args!("{} is not a name (at most {MAX_NAME_BYTES} bytes, no white space)", shown(name)),
        ));
    }
    Ok(())
}

fn check_text(at: &str, text: &str) -> Result<(), Invalid> {
    check_length(at, text, MAX_TEXT_BYTES)
}

fn check_length(at: &str, text: &str, most: usize) -> Result<(), Invalid> {
    check_size(at, text.len(), most)
}

fn check_size(at: &str, n_bytes: usize, most: usize) -> Result<(), Invalid> {
    if n_bytes > most {
        return Err(invalid(at, format_args!("it has {n_bytes} bytes, more than {most}")));
    }
    Ok(())
}

fn check_count(at: &str, n: usize, most: usize) -> Result<(), Invalid> {
    if n > most {
        return Err(invalid(at, format_args!("there are {n}, more than {most}")));
    }
    Ok(())
}

fn shown(text: &str) -> String {
    format!("{:?}", &text[..text.floor_char_boundary(80)])
}

fn invalid(field: impl Into<String>, reason: impl Display) -> Invalid {
    // Both quote text of the guest.
    Invalid { field: guest::text::line(field.into(), 256), reason: guest::text::line(reason, 1 << 10) }
}

#[cfg(test)]
mod tests;
