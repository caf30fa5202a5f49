//! The values of declared fields that notifications carry.
//!
//! They are copied once for all listeners, by the decoder of a watch or by the walk that matches a change.
//! Notifications carry them to the consumers. The informer keeps them for the next change of the object, so
//! that it need not read the old text again.

use std::fmt;

use triomphe::ThinArc;

use crate::object::StateValues;

/// Which of the values of a plan are those of a listener's declared fields, in their order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Selection(ThinArc<(), u32>);

/// The values of a listener's declared fields in one state of an object.
#[derive(Clone)]
pub struct FieldValues {
    values: StateValues,
    selection: Selection,
}

/// The values of a listener's declared fields in the states of a notification.
///
/// A state has none if the listener declares no fields, if the values are long, if the notification is a
/// delete event or an initial add of a long object, or if the change was not matched together with others.
/// The consumer then finds them in the text.
#[derive(Clone, Debug, Default)]
pub struct NotificationFields {
    /// Those of the state before an update, or of the last state before a delete.
    pub old: Option<FieldValues>,
    /// Those of the state after an add or update.
    pub new: Option<FieldValues>,
}

// === impl Selection ===

impl Selection {
    pub(super) fn new(indices: &[u32]) -> Self {
        Self(ThinArc::from_header_and_slice((), indices))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0.slice).finish()
    }
}

// === impl FieldValues ===

impl FieldValues {
    pub(super) fn new(values: StateValues, selection: Selection) -> Self {
        Self { values, selection }
    }

    /// Returns the JSON texts of the values, in the order of the listener's fields; none for a field that
    /// does not exist.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> + Clone {
        self.selection.0.slice.iter().map(|index| self.values.get(*index as usize))
    }

    /// Returns how many bytes of memory they take, with those that they share with other listeners.
    #[must_use]
    pub fn size(&self) -> usize {
        self.values.size()
    }
}

impl fmt::Debug for FieldValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldValues({} of {:?})", self.selection.0.slice.len(), self.values)
    }
}

// === impl NotificationFields ===

impl NotificationFields {
    /// Returns how many bytes of memory they take, with those that they share with other listeners.
    pub(super) fn size(&self) -> usize {
        [&self.old, &self.new].into_iter().flatten().map(FieldValues::size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_the_order_of_their_listener() {
        let values = [Some("\"é\""), None, Some("1"), Some("{}")];
        let values = StateValues::copy(0, values.into_iter(), &mut String::new()).unwrap();
        let fields = FieldValues::new(values, Selection::new(&[3, 0, 0, 1]));
        assert_eq!(fields.iter().collect::<Vec<_>>(), [Some("{}"), Some("\"é\""), Some("\"é\""), None]);
    }
}
