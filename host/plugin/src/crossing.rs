//! Counts the bytes that cross the border between the host and a guest, and limits them for each call.
//!
//! Each answer of an import is bounded by itself, but a guest may call imports as often as its deadline
//! allows. Memory is not the reason for this limit, since the host keeps no answer; it bounds how much a
//! guest makes the host copy.

use crate::contract::{
    AddedArgument, DeletedArgument, Description, Entry, Error, Failure, FieldTexts, GroupVersionResource,
    Namespaces, ObjectKey, ObjectRef, ObjectRefArgument, Outcome, Page, PageRequest, Preconditions,
    Projection, Row, Synced, UpdatedArgument, WorkKey, Written,
};

/// The bytes that crossed during one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crossed {
    pub(crate) to_guest: u64,
    pub(crate) from_guest: u64,
}

/// A value of the contract that is copied into or from a guest.
pub(crate) trait Crossing {
    /// Returns the length of its texts, in bytes.
    fn bytes(&self) -> usize;
}

// === impl Crossed ===

impl Crossed {
    /// Adds bytes, unless both directions together would exceed the limit.
    pub(crate) fn add(&mut self, to_guest: usize, from_guest: usize, limit: u64) -> Result<(), Error> {
        let Self { to_guest: to, from_guest: from } = *self;
        let (to, from) = (to.saturating_add(to_guest as u64), from.saturating_add(from_guest as u64));
        let total = to.saturating_add(from);
        if total > limit {
            return Err(Error::LimitExceeded(format!(
                "{total} bytes between the host and the plugin in one call, more than limits.crossing ({limit})"
            )));
        }
        *self = Self { to_guest: to, from_guest: from };
        Ok(())
    }

    /// Adds bytes that were copied and cannot be refused, such as those of an import without an error.
    pub(crate) fn count(&mut self, to_guest: usize, from_guest: usize) {
        self.to_guest = self.to_guest.saturating_add(to_guest as u64);
        self.from_guest = self.from_guest.saturating_add(from_guest as u64);
    }
}

// === impl Crossing ===

impl Crossing for () {
    fn bytes(&self) -> usize {
        0
    }
}

impl Crossing for bool {
    fn bytes(&self) -> usize {
        0
    }
}

impl Crossing for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl<T: Crossing> Crossing for Option<T> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, T::bytes)
    }
}

impl<T: Crossing> Crossing for Vec<T> {
    fn bytes(&self) -> usize {
        self.iter().map(T::bytes).sum()
    }
}

impl Crossing for ObjectRef {
    fn bytes(&self) -> usize {
        self.as_argument().bytes()
    }
}

impl Crossing for ObjectRefArgument<'_> {
    fn bytes(&self) -> usize {
        let Self { namespace, name, uid, resource_version } = self;
        namespace.len() + name.len() + uid.len() + resource_version.len()
    }
}

impl Crossing for &FieldTexts<'_> {
    fn bytes(&self) -> usize {
        self.iter().flatten().map(|text| text.len()).sum()
    }
}

impl Crossing for Row {
    fn bytes(&self) -> usize {
        let Self { object, fields, json } = self;
        object.bytes() + fields.bytes() + json.bytes()
    }
}

impl Crossing for Page {
    fn bytes(&self) -> usize {
        let Self { rows, continue_token } = self;
        rows.bytes() + continue_token.len()
    }
}

impl Crossing for Written {
    /// Not counted: a write that was made must not be reported as refused, and its answer is short.
    fn bytes(&self) -> usize {
        0
    }
}

impl Crossing for AddedArgument<'_> {
    fn bytes(&self) -> usize {
        let Self { subscription, object, is_in_initial_list: _, fields } = self;
        subscription.len() + object.bytes() + fields.bytes()
    }
}

impl Crossing for UpdatedArgument<'_> {
    fn bytes(&self) -> usize {
        let Self { subscription, object, old_resource_version, old_uid, fields, old_fields } = self;
        let old = old_resource_version.len() + old_uid.map_or(0, str::len);
        subscription.len() + object.bytes() + old + fields.bytes() + old_fields.bytes()
    }
}

impl Crossing for DeletedArgument<'_> {
    fn bytes(&self) -> usize {
        let Self { subscription, object, final_state_unknown: _, fields } = self;
        subscription.len() + object.bytes() + fields.bytes()
    }
}

impl Crossing for Synced {
    fn bytes(&self) -> usize {
        self.subscription.len()
    }
}

impl Crossing for ObjectKey {
    fn bytes(&self) -> usize {
        self.namespace.len() + self.name.len()
    }
}

impl Crossing for WorkKey {
    fn bytes(&self) -> usize {
        self.kind.len() + self.object.bytes()
    }
}

impl Crossing for GroupVersionResource {
    fn bytes(&self) -> usize {
        self.group.len() + self.version.len() + self.plural.len()
    }
}

impl Crossing for Namespaces {
    fn bytes(&self) -> usize {
        match self {
            Self::All => 0,
            Self::One(namespace) => namespace.len(),
        }
    }
}

impl Crossing for Projection {
    fn bytes(&self) -> usize {
        match self {
            Self::Keys | Self::Json => 0,
            Self::Fields(pointers) => pointers.bytes(),
        }
    }
}

impl Crossing for PageRequest {
    fn bytes(&self) -> usize {
        self.continue_token.len()
    }
}

impl Crossing for Preconditions {
    fn bytes(&self) -> usize {
        self.uid.bytes() + self.resource_version.bytes()
    }
}

impl Crossing for Entry {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

impl Crossing for Description {
    /// Not counted: it is read once for each version, and `limits.hostcall` bounds it.
    fn bytes(&self) -> usize {
        0
    }
}

impl Crossing for Outcome {
    fn bytes(&self) -> usize {
        0
    }
}

impl Crossing for Failure {
    fn bytes(&self) -> usize {
        match self {
            Self::Retry(text) | Self::Terminal(text) => text.len(),
            Self::RetryAfter(info) => info.message.len(),
        }
    }
}

impl<T: Crossing, E: Crossing> Crossing for Result<T, E> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or_else(E::bytes, T::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_together_are_limited_and_refused_bytes_do_not_count() {
        let mut crossed = Crossed::default();
        crossed.add(60, 0, 100).unwrap();
        crossed.add(0, 40, 100).unwrap();
        let error = crossed.add(0, 1, 100).unwrap_err();
        insta::assert_snapshot!(format!("{error:?}"), @r#"Error::LimitExceeded("101 bytes between the host and the plugin in one call, more than limits.crossing (100)")"#);
        assert_eq!((crossed.to_guest, crossed.from_guest), (60, 40));
        assert!(crossed.add(usize::MAX, usize::MAX, u64::MAX - 1).is_err());
    }

    #[test]
    fn all_texts_of_a_page_count() {
        let object = ObjectRef {
            namespace: "1".into(),
            name: "22".into(),
            uid: "333".into(),
            resource_version: "4444".into(),
        };
        let row = Row { object, fields: vec![Some("55555".into()), None], json: Some("666666".into()) };
        let page = Page { rows: vec![row.clone(), row], continue_token: "7777777".into() };
        assert_eq!(page.bytes(), 2 * (1 + 2 + 3 + 4 + 5 + 6) + 7);
    }
}
