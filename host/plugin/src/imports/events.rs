//! `events`: Kubernetes Events about an object.

use crate::{
    bindings::oarlock::plugin::events::Host,
    contract::{Error, EventType, GroupVersionResource, ObjectRef},
    kube_access::GuestEvent,
    state::StoreState,
};

const MAX_REASON_CHARS: usize = 128;
const MAX_NOTE_BYTES: usize = 1_024;
/// The maximum length of a label of a DNS name: versions, resources, kinds, namespaces.
const MAX_LABEL_BYTES: usize = 63;
/// The maximum length of any other name, of a uid and of a resourceVersion.
const MAX_NAME_BYTES: usize = 253;

impl Host for StoreState {
    fn emit(
        &mut self,
        target: GroupVersionResource,
        regarding: ObjectRef,
        kind: String,
        event_type: EventType,
        reason: String,
        note: String,
    ) -> Result<(), Error> {
        self.takes(&[&target, &regarding, &kind, &reason, &note])?;
        check_fields(&target, &regarding, &kind)?;
        check_reason(&reason)?;
        if note.len() > MAX_NOTE_BYTES {
            return Err(Error::Invalid(format!(
                "the note has {} bytes, more than {MAX_NOTE_BYTES}",
                note.len()
            )));
        }
        self.access.events.emit(GuestEvent { target, regarding, kind, event_type, reason, note })
    }
}

/// Checks the lengths of an Event's fields. The host holds an Event until it is written, and for some time
/// after that.
fn check_fields(target: &GroupVersionResource, regarding: &ObjectRef, kind: &str) -> Result<(), Error> {
    let GroupVersionResource { group, version, plural } = target;
    let ObjectRef { namespace, name, uid, resource_version } = regarding;
    for (what, text, longest) in [
        ("group", group.as_str(), MAX_NAME_BYTES),
        ("version", version, MAX_LABEL_BYTES),
        ("resource", plural, MAX_LABEL_BYTES),
        ("kind", kind, MAX_LABEL_BYTES),
        ("namespace", namespace, MAX_LABEL_BYTES),
        ("object's name", name, MAX_NAME_BYTES),
        ("uid", uid, MAX_NAME_BYTES),
        ("resourceVersion", resource_version, MAX_NAME_BYTES),
    ] {
        if text.len() > longest {
            return Err(Error::Invalid(format!("the {what} has {} bytes, more than {longest}", text.len())));
        }
    }
    Ok(())
}

fn check_reason(reason: &str) -> Result<(), Error> {
    let camel_case = reason.starts_with(|c: char| c.is_ascii_uppercase())
        && reason.bytes().all(|b| b.is_ascii_alphanumeric());
    if camel_case && reason.len() <= MAX_REASON_CHARS {
        return Ok(());
    }
    let shown = &reason[..reason.floor_char_boundary(80)];
    Err(Error::Invalid(format!(
        "the reason {shown:?} is not one CamelCase word of at most {MAX_REASON_CHARS} characters"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_longer_than_kubernetes_allows_is_invalid() {
        let text = |n: usize| "x".repeat(n);
        let about = |name: usize, uid: usize| ObjectRef {
            namespace: text(63),
            name: text(name),
            uid: text(uid),
            resource_version: text(20),
        };
        let target = |plural: usize| GroupVersionResource {
            group: text(253),
            version: text(63),
            plural: text(plural),
        };
        assert_eq!(check_fields(&target(63), &about(253, 36), &text(63)), Ok(()));
        for (target, regarding, kind) in [
            (target(64), about(253, 36), text(63)),
            (target(63), about(254, 36), text(63)),
            (target(63), about(253, 254), text(63)),
            (target(63), about(253, 36), text(64)),
        ] {
            let refused = check_fields(&target, &regarding, &kind);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_reason_is_one_camel_case_word() {
        for good in ["Created", "FailedMount2", "X"] {
            assert_eq!(check_reason(good), Ok(()), "{good}");
        }
        for bad in ["", "created", "Two Words", "Snake_Case", "Ümlaut", &"A".repeat(129)] {
            assert!(matches!(check_reason(bad), Err(Error::Invalid(_))), "{bad}");
        }
    }
}
