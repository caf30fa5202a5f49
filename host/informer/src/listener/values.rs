//! The values that one state of an object has at the pointers of a plan, as copies of parts of its text.
//!
//! They are found once for all listeners, in the walk that matches a change. Notifications carry them to the
//! consumers, and the matcher keeps them for the next change of the object, so that it need not read the old
//! text again.

use std::fmt;

use triomphe::ThinArc;

/// States with more bytes of values than this carry none: their readers look into the text.
pub(crate) const MAX_CARRIED: usize = 8 << 10;

/// No values are copied at more pointers than this.
pub(crate) const MAX_POINTERS: usize = 1 << 10;

/// The width of a position in [`StateValues`].
const WIDTH: usize = size_of::<u16>();

/// The JSON texts of one state at the pointers of a plan, in the order of the pointers. A clone costs one
/// reference count.
///
/// The bytes are the end of each text, relative to the end of these positions, and then the texts. A value
/// that does not exist has an empty text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StateValues(ThinArc<u16, u8>);

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

// === impl StateValues ===

impl StateValues {
    /// Copies values. Returns none if there are too many, or too many bytes.
    pub(super) fn copy<'t>(
        values: impl ExactSizeIterator<Item = Option<&'t str>> + Clone,
        buffer: &mut Vec<u8>,
    ) -> Option<Self> {
        let n_values = values.len();
        if n_values > MAX_POINTERS {
            return None;
        }
        buffer.clear();
        let mut end = 0;
        for value in values.clone() {
            end += value.map_or(0, str::len);
            if end > MAX_CARRIED {
                return None;
            }
            buffer.extend_from_slice(&(end as u16).to_le_bytes());
        }
        values.flatten().for_each(|value| buffer.extend_from_slice(value.as_bytes()));
        Some(Self(ThinArc::from_header_and_slice(n_values as u16, buffer)))
    }

    /// Returns a value as bytes; empty if it does not exist.
    #[inline]
    pub(super) fn bytes(&self, index: usize) -> &[u8] {
        let n_values = usize::from(self.0.header.header);
        if index >= n_values {
            return &[];
        }
        let texts = n_values * WIDTH;
        let start = if index == 0 { 0 } else { self.end(index - 1) };
        self.0.slice.get(texts + start..texts + self.end(index)).unwrap_or_default()
    }

    /// Returns a value.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let bytes = self.bytes(index);
        // A part of a text is text. A JSON value has at least one byte.
        if bytes.is_empty() { None } else { std::str::from_utf8(bytes).ok() }
    }

    fn end(&self, index: usize) -> usize {
        let bytes = self.0.slice.get(index * WIDTH..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes).into())
    }

    /// Returns how many bytes these values take.
    pub(crate) fn size(&self) -> usize {
        // The reference count, the header and the length.
        3 * size_of::<usize>() + self.0.slice.len()
    }
}

/// Shows sizes only: the values may be those of a Secret.
impl fmt::Debug for StateValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateValues({} values of {} bytes)", self.0.header.header, self.size())
    }
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

    fn copy(values: &[Option<&str>]) -> Option<StateValues> {
        StateValues::copy(values.iter().copied(), &mut vec![1, 2, 3])
    }

    #[test]
    fn values_are_copied_in_their_order() {
        let values = [Some("\"é\""), None, Some("1"), Some("{}"), None];
        let copied = copy(&values).unwrap();
        assert_eq!((0..5).map(|index| copied.get(index)).collect::<Vec<_>>(), values);
        assert_eq!(copied.get(5), None);
        let fields = FieldValues::new(copied, Selection::new(&[3, 0, 0, 1]));
        assert_eq!(fields.iter().collect::<Vec<_>>(), [Some("{}"), Some("\"é\""), Some("\"é\""), None]);
    }

    #[test]
    fn promise_4_neither_long_values_nor_many_are_copied() {
        let half = "x".repeat(MAX_CARRIED / 2);
        assert!(copy(&[Some(&half), None, Some(&half)]).is_some());
        assert!(copy(&[Some(&half), Some("1"), Some(&half)]).is_none());
        assert!(copy(&[Some("1"); MAX_POINTERS]).is_some());
        assert!(copy(&[None; MAX_POINTERS + 1]).is_none());
    }
}
