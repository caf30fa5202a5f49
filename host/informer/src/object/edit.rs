//! Objects with a field more, less or other: what transformers need, without a tree and without any handling of text.

use oarlock_json::scan::Cursor;
use oarlock_json::{JsonPointer, Segment};
use serde::Serialize;

use super::{Error, Object, Pruning};

/// Why an object cannot be changed like this.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The pointer leads through a scalar, or to an element of a list that is not there.
    #[error(
        "nothing can be set at {0}: what it leads through is neither an object nor a list with that element"
    )]
    NoPlace(JsonPointer),
    /// The value cannot be written as JSON.
    #[error("the value cannot be written as JSON")]
    Value(#[source] serde_json::Error),
    /// What came of it is no object, for instance because its name is no text any more.
    #[error("what came of the change is no object")]
    Object(#[from] Error),
}

/// Copies a text but for one place.
struct Splice<'v> {
    out: String,
    /// What to put there; none to leave it out.
    value: Option<&'v str>,
    has_no_place: bool,
}

// === impl Object ===

impl Object {
    /// Returns the object with this value at `pointer`, in place of what is there, if anything.
    ///
    /// Objects that are missing on the way are made. An element of a list is replaced by its index; the index behind the last one, or
    /// `-`, appends.
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
    /// When there is no place for it, or what comes of it is no object.
    pub fn with(&self, pointer: &JsonPointer, value: impl Serialize) -> Result<Self, EditError> {
        let value = serde_json::to_string(&value).map_err(EditError::Value)?;
        self.spliced(pointer, Some(&value))
    }

    /// Returns the object without what is at `pointer`; as it is, where there is nothing. The elements of a list behind one that is left out
    /// move up.
    ///
    /// # Errors
    ///
    /// When what comes of it is no object.
    pub fn without(&self, pointer: &JsonPointer) -> Result<Self, EditError> {
        self.spliced(pointer, None)
    }

    /// Returns the object but for what `pruning` leaves out.
    ///
    /// # Errors
    ///
    /// When the text is faulty deep in what was not read when the object came in.
    pub fn pruned(&self, pruning: &Pruning) -> Result<Self, EditError> {
        Ok(Self::parse_pruned(self.json().as_bytes(), None, pruning)?)
    }

    fn spliced(&self, pointer: &JsonPointer, value: Option<&str>) -> Result<Self, EditError> {
        let json = self.json();
        let mut splice = Splice { out: String::with_capacity(json.len()), value, has_no_place: false };
        let copied = splice.value(&mut Cursor::new(&json), pointer.segments());
        if splice.has_no_place || copied.is_none() {
            return Err(EditError::NoPlace(pointer.clone()));
        }
        if splice.out == *json {
            return Ok(self.clone());
        }
        Ok(Self::parse(splice.out.as_bytes(), None)?)
    }
}

// === impl Splice ===

impl Splice<'_> {
    /// Copies the value at the cursor, changed at the end of the path. Goes as deep as the path.
    fn value(&mut self, cursor: &mut Cursor<'_>, path: &[Segment]) -> Option<()> {
        let Some((segment, rest)) = path.split_first() else {
            cursor.skip_value()?;
            // What is to be left out is the whole object: nothing remains, which is no object.
            self.out.push_str(self.value.unwrap_or_default());
            return Some(());
        };
        let Segment::Name { name, index } = segment else { return None };
        match cursor.peek()? {
            b'{' => self.object(cursor, name, rest),
            b'[' => self.array(cursor, name, *index, rest),
            _ => {
                self.has_no_place |= self.value.is_some();
                self.whole(cursor)
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
            if is_it { self.value(cursor, rest) } else { self.whole(cursor) }
        })?;
        if !is_there && self.value.is_some() {
            self.comma('{');
            self.named(name, rest);
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
            if Some(idx) == index { self.value(cursor, rest) } else { self.whole(cursor) }
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

    /// Writes the value as what is at the end of a path of which nothing is there.
    fn nested(&mut self, path: &[Segment]) {
        match path.split_first() {
            None => self.out.push_str(self.value.unwrap_or_default()),
            Some((Segment::Name { name, .. }, rest)) => {
                self.out.push('{');
                self.named(name, rest);
                self.out.push('}');
            }
            Some((Segment::Every, _)) => self.has_no_place = true,
        }
    }

    fn named(&mut self, name: &str, rest: &[Segment]) {
        self.out.push_str(&serde_json::Value::from(name).to_string());
        self.out.push(':');
        self.nested(rest);
    }

    fn comma(&mut self, open: char) {
        if !self.out.ends_with(open) {
            self.out.push(',');
        }
    }

    fn whole(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let start = cursor.position();
        cursor.skip_value()?;
        self.out.push_str(cursor.since(start)?);
        Some(())
    }
}

#[cfg(test)]
mod tests;
