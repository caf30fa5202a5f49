//! `events`: Kubernetes Events about an object.

use super::{check_short, check_target};
use crate::{
    bindings::oarlock::plugin::events::Host,
    contract::{Error, EventType, GroupVersionResource, ObjectRef},
    kube_access::GuestEvent,
    state::State,
};

const MAX_REASON_CHARS: usize = 128;
const MAX_NOTE_BYTES: usize = 1_024;

impl Host for State {
    fn emit(
        &mut self,
        target: GroupVersionResource,
        regarding: ObjectRef,
        kind: String,
        event_type: EventType,
        reason: String,
        note: String,
    ) -> Result<(), Error> {
        check_target(&target)?;
        check_short("kind", &kind)?;
        check_short("namespace", &regarding.namespace)?;
        check_short("object's name", &regarding.name)?;
        check_short("uid", &regarding.uid)?;
        check_short("resourceVersion", &regarding.resource_version)?;
        check_reason(&reason)?;
        if note.len() > MAX_NOTE_BYTES {
            return Err(Error::Invalid(format!(
                "the note has {} bytes, more than {MAX_NOTE_BYTES}",
                note.len()
            )));
        }
        self.access.event_emit(GuestEvent { target, regarding, kind, event_type, reason, note })
    }
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
    fn a_reason_is_one_camel_case_word() {
        for good in ["Created", "FailedMount2", "X"] {
            assert_eq!(check_reason(good), Ok(()), "{good}");
        }
        for bad in ["", "created", "Two Words", "Snake_Case", "Ümlaut", &"A".repeat(129)] {
            assert!(matches!(check_reason(bad), Err(Error::Invalid(_))), "{bad}");
        }
    }
}
