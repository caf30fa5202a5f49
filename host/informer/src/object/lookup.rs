//! Values at pointers in the text of an object.

use oarlock_json::{Finding, Found, JsonPointer, PointerPattern, PointerSet, Segment, extract};

use super::{Json, Object};

// === impl Object ===

impl Object {
    /// Returns the JSON text at `pointer`, as it stands in the text. Returns `None` when the object has no
    /// value there.
    pub fn pointer(&self, pointer: &JsonPointer) -> Option<String> {
        self.extract(&[pointer.segments()]).pop().and_then(|mut found| found.pop())
    }

    /// Returns the JSON texts at several pointers, in the order of the pointers, with one walk over the text.
    pub fn pointers(&self, pointers: &[JsonPointer]) -> Vec<Option<String>> {
        self.find(&PointerSet::new(pointers)).iter().map(|found| found.map(str::to_owned)).collect()
    }

    /// Finds the values at all pointers of a set, with one walk over the text. Copies nothing but a cold
    /// text.
    pub fn find(&self, set: &PointerSet) -> Found<Json> {
        self.finding(set).finish()
    }

    /// Starts the walk of [`find`](Self::find) for a caller that yields between slices of it.
    pub fn finding<'s>(&self, set: &'s PointerSet) -> Finding<'s, Json> {
        Finding::new(set, self.json())
    }

    /// Returns the same as [`pointers`](Self::pointers), if it has at most `max_bytes` bytes together.
    ///
    /// # Errors
    ///
    /// Returns the number of bytes when there are more. Nothing is copied then.
    pub fn pointers_within(
        &self,
        pointers: &[JsonPointer],
        max_bytes: usize,
    ) -> Result<Vec<Option<String>>, usize> {
        let found = self.find(&PointerSet::new(pointers));
        let n_bytes = found.n_bytes();
        if n_bytes > max_bytes {
            return Err(n_bytes);
        }
        Ok(found.iter().map(|found| found.map(str::to_owned)).collect())
    }

    /// Returns all JSON texts that `pattern` matches, in the order of the text.
    pub fn pattern(&self, pattern: &PointerPattern) -> Vec<String> {
        self.extract(&[pattern.segments()]).pop().unwrap_or_default()
    }

    fn extract(&self, pointers: &[&[Segment]]) -> Vec<Vec<String>> {
        extract(&self.json(), pointers)
    }
}
