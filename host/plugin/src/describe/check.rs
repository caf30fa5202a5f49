//! Checks whether a description is valid.

use std::{collections::BTreeSet, fmt::Display};

use crate::{
    Component,
    contract::{
        Description, Enqueue, FieldCondition, GroupVersionResource, IndexSource, Namespaces, Subscription,
        Test,
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
        let Description { name, version, subscriptions, reads, indices, writes, stateless: _ } = description;
        check_name("name", name)?;
        check_text("version", version)?;
        check_count("subscriptions", subscriptions.len(), MAX_SUBSCRIPTIONS)?;
        check_count("reads", reads.len(), MAX_PARTS)?;
        check_count("indices", indices.len(), MAX_INDICES)?;
        check_count("writes", writes.len(), MAX_PARTS)?;
        check_unique("subscriptions", subscriptions.iter().map(|subscription| &subscription.name))?;
        check_unique("reads", reads.iter().map(|read| &read.name))?;
        check_unique("indices", indices.iter().map(|index| &index.name))?;
        for subscription in subscriptions {
            self.check_subscription(subscription)?;
        }
        for read in reads {
            let at = format!("reads[{}]", read.name);
            check_target(&at, &read.target)?;
            check_namespaces(&at, &read.namespaces)?;
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
        for (idx, write) in writes.iter().enumerate() {
            let at = format!("writes[{idx}]");
            check_target(&at, &write.target)?;
            check_namespaces(&at, &write.namespaces)?;
            check_text(&format!("{at}.subresource"), &write.subresource)?;
            check_count(&format!("{at}.verbs"), write.verbs.len(), 16)?;
            if write.verbs.is_empty() {
                return Err(invalid(format!("{at}.verbs"), "empty: a write names at least one verb"));
            }
            for verb in &write.verbs {
                if verb.is_empty() || !verb.bytes().all(|b| b.is_ascii_lowercase()) {
                    return Err(invalid(
                        format!("{at}.verbs"),
                        format_args!("{verb:?} is not a verb of the API"),
                    ));
                }
            }
        }
        Ok(())
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
            Enqueue::ControllerOwner(kind) => check_name(at, kind)?,
            Enqueue::Pointer(pointer) => check_part(at, pointer)?,
            Enqueue::Label(label) => check_label(at, label)?,
        }
        Ok(())
    }
}

fn check_condition(at: &str, condition: &FieldCondition) -> Result<(), Invalid> {
    check_part(&format!("{at}.pointer"), &condition.pointer)?;
    match &condition.test {
        Test::Exists | Test::Absent => Ok(()),
        Test::Equals(json) | Test::Differs(json) => {
            let at = format!("{at}.test");
            check_text(&at, json)?;
            serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(|e| {
                invalid(at, format_args!("{json:?} is not JSON ({e}); a string needs its quotes"))
            })?;
            Ok(())
        }
    }
}

fn check_target(at: &str, target: &GroupVersionResource) -> Result<(), Invalid> {
    let GroupVersionResource { group, version, plural } = target;
    let plain = |text: &str| {
        text.len() <= 253
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
    };
    if !plain(group) {
        return Err(invalid(
            format!("{at}.target.group"),
            format_args!("{} is not an API group", shown(group)),
        ));
    }
    if version.is_empty() || !plain(version) {
        return Err(invalid(
            format!("{at}.target.version"),
            format_args!("{} is not an API version", shown(version)),
        ));
    }
    if plural.is_empty() || !plain(plural) {
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
    if text.len() > MAX_TEXT_BYTES {
        return Err(invalid(at, format_args!("it has {} bytes, more than {MAX_TEXT_BYTES}", text.len())));
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
mod tests {
    use super::*;
    use crate::contract::Content;

    /// The defects that depend on the exports of a component. The fixture `misdescribes` covers the others.
    #[test]
    fn enqueue_requires_the_exported_interface() {
        let subscription = |enqueue| Subscription {
            name: "pods".into(),
            target: GroupVersionResource {
                group: String::new(),
                version: "v1".into(),
                plural: "pods".into(),
            },
            namespaces: Namespaces::All,
            label_selector: String::new(),
            conditions: vec![],
            fields: vec![],
            content: Content::Full,
            resync_seconds: 0,
            enqueue,
        };
        let check = |handler, reconciler, enqueue| {
            let checked = Checker { handler, reconciler }.check_subscription(&subscription(enqueue));
            checked.map_err(|invalid| invalid.to_string())
        };
        assert_eq!(check(true, false, Enqueue::Nothing), Ok(()));
        assert_eq!(check(false, true, Enqueue::Itself), Ok(()));
        assert_eq!(check(false, true, Enqueue::Pointer("/spec/nodeName".into())), Ok(()));
        insta::assert_snapshot!(check(false, true, Enqueue::Nothing).unwrap_err(), @"subscriptions[pods].enqueue: `nothing` calls the handler, which the component does not export");
        insta::assert_snapshot!(check(true, false, Enqueue::Itself).unwrap_err(), @"subscriptions[pods].enqueue: the component does not export `reconciler`, so it can only be `nothing`");
        insta::assert_snapshot!(check(true, true, Enqueue::Pointer("spec".into())).unwrap_err(), @r#"subscriptions[pods].enqueue: the JSON pointer "spec" does not begin with /, such as /metadata/name"#);
        insta::assert_snapshot!(check(true, true, Enqueue::Pointer(String::new())).unwrap_err(), @"subscriptions[pods].enqueue: the empty JSON pointer means the whole object: name a field of it, such as /spec");
        insta::assert_snapshot!(check(true, true, Enqueue::Label(String::new())).unwrap_err(), @"subscriptions[pods].enqueue: the label's name is empty");
        insta::assert_snapshot!(check(true, true, Enqueue::ControllerOwner("a b".into())).unwrap_err(), @r#"subscriptions[pods].enqueue: "a b" is not a name (at most 63 bytes, no white space)"#);
    }
}
