//! Copies the kept ranges of a JSON text.

use oarlock_json::scan::{Cursor, Quoted};

/// Collects the ranges of a text that are kept, from left to right, and copies them once at the end.
pub(super) struct Splicer<'t> {
    text: &'t str,
    /// The kept text before `next`.
    pieces: Vec<&'t str>,
    /// The length of all pieces together.
    pieces_length: usize,
    /// The end of the last cut. Everything behind it is kept so far.
    next: usize,
}

/// Whether an entry of an object stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splice {
    /// The entry stays.
    Keep,
    /// The entry is cut out, with the comma that separates it.
    Cut,
}

/// A state of a [`Splicer`] to which it can return.
pub(super) struct Mark {
    n_pieces: usize,
    pieces_length: usize,
    next: usize,
}

// === impl Splicer ===

impl<'t> Splicer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, pieces: Vec::new(), pieces_length: 0, next: 0 }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { n_pieces: self.pieces.len(), pieces_length: self.pieces_length, next: self.next }
    }

    /// Undoes all cuts made after `mark`.
    pub(super) fn rewind(&mut self, mark: &Mark) {
        self.pieces.truncate(mark.n_pieces);
        (self.pieces_length, self.next) = (mark.pieces_length, mark.next);
    }

    /// Returns where a place of the text will be in the copy. All cuts so far must be before it.
    pub(super) fn output_position(&self, position: usize) -> usize {
        self.pieces_length + position - self.next
    }

    /// Returns the copy from its position `start` up to the place `end` of the text.
    pub(super) fn output(&self, start: usize, end: usize) -> Option<String> {
        self.copy("", start, end, "")
    }

    /// Returns `head`, the copy from its position `start` up to the place `end` of the text, and `tail`.
    ///
    /// All cuts must be before `end`.
    pub(super) fn copy(&self, head: &str, start: usize, end: usize, tail: &str) -> Option<String> {
        let rest = self.text.get(self.next..end)?;
        let length = (self.pieces_length + rest.len()).checked_sub(start)?;
        let mut copy = String::with_capacity(head.len() + length + tail.len());
        copy.push_str(head);
        let mut n_skipped = 0;
        for piece in self.pieces.iter().chain([&rest]) {
            let n_left = (start - n_skipped).min(piece.len());
            copy.push_str(piece.get(n_left..)?);
            n_skipped += n_left;
        }
        copy.push_str(tail);
        Some(copy)
    }

    /// Passes over the object at the cursor. `entry` passes over each value and decides whether the entry
    /// stays. Returns whether the object has entries left.
    #[inline]
    pub(super) fn object(
        &mut self,
        cursor: &mut Cursor<'t>,
        mut entry: impl FnMut(&mut Self, &mut Cursor<'t>, Quoted<'t>) -> Option<Splice>,
    ) -> Option<bool> {
        // The end of the last entry that stays.
        let mut kept_end = None;
        // The start of a cut that ends at the next entry: no entry before it stays.
        let mut cut_start = None;
        cursor.object(|cursor, start, key| {
            if let Some(cut_start) = cut_start.take() {
                self.cut(cut_start, start)?;
            }
            match (entry(self, cursor, key)?, kept_end) {
                (Splice::Keep, _) => kept_end = Some(cursor.position()),
                (Splice::Cut, Some(kept_end)) => self.cut(kept_end.max(self.next), cursor.position())?,
                (Splice::Cut, None) => cut_start = Some(start),
            }
            Some(())
        })?;
        if let Some(cut_start) = cut_start {
            self.cut(cut_start, cursor.position() - 1)?;
        }
        Some(kept_end.is_some())
    }

    /// Passes over the value at the cursor, and copies `with` in its place.
    pub(super) fn replace_value(&mut self, cursor: &mut Cursor<'t>, with: &'static str) -> Option<()> {
        let start = cursor.position();
        cursor.skip_value()?;
        self.cut(start, cursor.position())?;
        self.push(with);
        Some(())
    }

    fn cut(&mut self, start: usize, end: usize) -> Option<()> {
        let kept = self.text.get(self.next..start)?;
        self.push(kept);
        self.next = end;
        Some(())
    }

    fn push(&mut self, piece: &'t str) {
        if !piece.is_empty() {
            self.pieces.push(piece);
            self.pieces_length += piece.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts the entries whose key begins with `x`, at every depth of objects.
    fn without_x(text: &str) -> String {
        fn value<'t>(splicer: &mut Splicer<'t>, cursor: &mut Cursor<'t>) -> Option<Splice> {
            if cursor.peek()? != b'{' {
                cursor.skip_value()?;
                return Some(Splice::Keep);
            }
            splicer.object(cursor, |splicer, cursor, key| {
                if key.raw.starts_with('x') {
                    cursor.skip_value()?;
                    return Some(Splice::Cut);
                }
                value(splicer, cursor)
            })?;
            Some(Splice::Keep)
        }
        let mut splicer = Splicer::new(text);
        value(&mut splicer, &mut Cursor::new(text)).unwrap();
        splicer.output(0, text.len()).unwrap()
    }

    #[test]
    fn an_entry_is_cut_with_its_comma_and_other_white_space_stays() {
        for (text, expected) in [
            ("{}", "{}"),
            (r#"{ "a" : 1 }"#, r#"{ "a" : 1 }"#),
            (r#"{"x":1}"#, "{}"),
            (r#"{ "x" : 1 }"#, "{ }"),
            (r#"{"x":1,"x2":2,"a":3,"x3":4,"x4":5,"b":6,"x5":7}"#, r#"{"a":3,"b":6}"#),
            (r#"{ "x": 1 , "a": 2 , "x": 3 , "b": 4 }"#, r#"{ "a": 2 , "b": 4 }"#),
            (r#"{"a":{"x":1,"b":{"x":2}},"x":3}"#, r#"{"a":{"b":{}}}"#),
            (r#"{"a":{"b":1,"x":2},"x":3,"c":{"x":{"d":4}}}"#, r#"{"a":{"b":1},"c":{}}"#),
        ] {
            assert_eq!(without_x(text), expected, "{text}");
        }
    }

    #[test]
    fn a_rewound_cut_leaves_no_trace() {
        let text = r#"{"a":1,"b":2}"#;
        let mut splicer = Splicer::new(text);
        splicer.cut(6, 12).unwrap();
        let mark = splicer.mark();
        splicer.cut(12, 13).unwrap();
        splicer.rewind(&mark);
        assert_eq!(splicer.output_position(13), 7);
        assert_eq!(splicer.output(2, 13).as_deref(), Some(r#"a":1}"#));
        assert_eq!(splicer.copy("<", 1, 13, ">").as_deref(), Some(r#"<"a":1}>"#));
    }
}
