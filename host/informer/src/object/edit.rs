//! Objects with one field set or removed, for transformers. No tree of values is built.

use oarlock_json::scan::Cursor;
use oarlock_json::{JsonPointer, Segment};
use serde::Serialize;

use super::{Error, Object, Pruning};

/// Why a field cannot be set or removed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The pointer descends into a scalar, or names an element that the list does not have.
    #[error(
        "no value can be set at {0}: the pointer descends into a scalar, or names an element that the list does not have"
    )]
    NoPlace(JsonPointer),
    /// The value cannot be serialized.
    #[error("the value cannot be serialized to JSON")]
    Value(#[source] serde_json::Error),
    /// The changed text is not a Kubernetes object, for example because its name is a number.
    #[error("the changed text is not a Kubernetes object")]
    Object(#[from] Error),
}

/// Copies a text and changes one field in the copy.
struct FieldEdit<'v> {
    out: String,
    /// The value to set. `None` removes the field.
    value: Option<&'v str>,
    /// Whether the value could not be set.
    has_no_place: bool,
}

// === impl Object ===

impl Object {
    /// Returns the object with this value at `pointer`, in place of the previous value, if any.
    ///
    /// Missing objects on the path are created. An index replaces an element of a list. The index after the
    /// last element, or `-`, appends.
    ///
    /// ```
    /// # use oarlock_informer::Object;
    /// # fn example(pod: Object) -> Result<(), Box<dyn std::error::Error>> {
    /// let pod = pod.with(&"/metadata/annotations/seen-by".parse()?, "me")?;
    /// let pod = pod.without(&"/spec/containers/0/env".parse()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The pointer leads to no place for a value, or the result is not a Kubernetes object.
    pub fn with(&self, pointer: &JsonPointer, value: impl Serialize) -> Result<Self, EditError> {
        let value = serde_json::to_string(&value).map_err(EditError::Value)?;
        self.edited(pointer, Some(&value))
    }

    /// Returns the object without the value at `pointer`. Returns the same object when nothing is there.
    /// Removing an element of a list moves the later elements up.
    ///
    /// # Errors
    ///
    /// The result is not a Kubernetes object.
    pub fn without(&self, pointer: &JsonPointer) -> Result<Self, EditError> {
        self.edited(pointer, None)
    }

    /// Returns the object without the fields that `pruning` leaves out.
    ///
    /// # Errors
    ///
    /// The text has a fault deep inside of a value that the decoder skipped.
    pub fn pruned(&self, pruning: &Pruning) -> Result<Self, EditError> {
        Ok(Self::parse_pruned(self.json().as_bytes(), None, pruning)?)
    }

    fn edited(&self, pointer: &JsonPointer, value: Option<&str>) -> Result<Self, EditError> {
        let json = self.json();
        let mut edit = FieldEdit { out: String::with_capacity(json.len()), value, has_no_place: false };
        let copied = edit.value(&mut Cursor::new(&json), pointer.segments());
        if edit.has_no_place || copied.is_none() {
            return Err(EditError::NoPlace(pointer.clone()));
        }
        if edit.out == *json {
            return Ok(self.clone());
        }
        Ok(Self::parse(edit.out.as_bytes(), None)?)
    }
}

// === impl FieldEdit ===

impl FieldEdit<'_> {
    /// Copies the value at the cursor and changes the field at the end of the path. Recurses as deep as the
    /// path.
    fn value(&mut self, cursor: &mut Cursor<'_>, path: &[Segment]) -> Option<()> {
        let Some((segment, rest)) = path.split_first() else {
            cursor.skip_value()?;
            // Removing the whole object leaves an empty text, which the caller refuses.
            self.out.push_str(self.value.unwrap_or_default());
            return Some(());
        };
        let Segment::Name { name, index } = segment else { return None };
        match cursor.peek()? {
            b'{' => self.object(cursor, name, rest),
            b'[' => self.array(cursor, name, *index, rest),
            _ => {
                self.has_no_place |= self.value.is_some();
                self.copy(cursor)
            }
        }
    }

    fn object(&mut self, cursor: &mut Cursor<'_>, name: &str, rest: &[Segment]) -> Option<()> {
        self.out.push('{');
        let mut is_there = false;
        cursor.object(|cursor, _, key| {
            let is_it = key.text().is_some_and(|text| *text == *name);
            is_there |= is_it;
            if is_it && rest.is_empty() && self.value.is_none() {
                return cursor.skip_value();
            }
            self.comma('{');
            self.out.extend(["\"", key.raw, "\":"]);
            if is_it { self.value(cursor, rest) } else { self.copy(cursor) }
        })?;
        if !is_there && self.value.is_some() {
            self.comma('{');
            self.entry(name, rest);
        }
        self.out.push('}');
        Some(())
    }

    fn array(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: &str,
        index: Option<usize>,
        rest: &[Segment],
    ) -> Option<()> {
        self.out.push('[');
        let mut length = 0;
        cursor.array(|cursor, idx| {
            length = idx + 1;
            if Some(idx) == index && rest.is_empty() && self.value.is_none() {
                return cursor.skip_value();
            }
            self.comma('[');
            if Some(idx) == index { self.value(cursor, rest) } else { self.copy(cursor) }
        })?;
        if self.value.is_some() && index.is_none_or(|index| index >= length) {
            if name == "-" || index == Some(length) {
                self.comma('[');
                self.nested(rest);
            } else {
                self.has_no_place = true;
            }
        }
        self.out.push(']');
        Some(())
    }

    /// Writes the value, and the objects of the remaining path around it.
    fn nested(&mut self, path: &[Segment]) {
        match path.split_first() {
            None => self.out.push_str(self.value.unwrap_or_default()),
            Some((Segment::Name { name, .. }, rest)) => {
                self.out.push('{');
                self.entry(name, rest);
                self.out.push('}');
            }
            Some((Segment::Every, _)) => self.has_no_place = true,
        }
    }

    fn entry(&mut self, name: &str, rest: &[Segment]) {
        self.out.push_str(&serde_json::Value::from(name).to_string());
        self.out.push(':');
        self.nested(rest);
    }

    fn comma(&mut self, open: char) {
        if !self.out.ends_with(open) {
            self.out.push(',');
        }
    }

    fn copy(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let start = cursor.position();
        cursor.skip_value()?;
        self.out.push_str(cursor.since(start)?);
        Some(())
    }
}

#[cfg(test)]
mod tests;
