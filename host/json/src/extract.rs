//! One walk over a JSON text that copies out what several pointers point at.
//!
//! What no pointer leads into is passed over in blocks (`scan`). On a text that is not JSON the walk finds something or
//! nothing, but never panics and never recurses deeper than the longest pointer.

use crate::pointer::Segment;
use crate::scan::{Cursor, Quoted};

/// A pointer that is still open at some depth of the walk: which one it is, and the segments it has left.
type Open<'p> = (usize, &'p [Segment]);

/// Returns, for each pointer, the JSON texts it points at, in document order.
///
/// A pointer without [`Segment::Every`] finds at most one.
pub fn extract(text: &str, pointers: &[&[Segment]]) -> Vec<Vec<String>> {
    let own = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    find_each(text, pointers).into_iter().map(own).collect()
}

/// The same without a copy.
pub fn find_each<'t>(text: &'t str, pointers: &[&[Segment]]) -> Vec<Vec<&'t str>> {
    let open: Vec<Open<'_>> = pointers.iter().copied().enumerate().collect();
    let mut walk = Walk { found: pointers.iter().map(|_| Vec::new()).collect() };
    let mut cursor = Cursor::new(text);
    cursor.blanks();
    // What is broken simply holds nothing.
    let _ = walk.value(&mut cursor, &open);
    walk.found
}

/// What a walk has found.
struct Walk<'t> {
    found: Vec<Vec<&'t str>>,
}

// === impl Walk ===

impl<'t> Walk<'t> {
    /// Passes over the value that stands next, and notes down what the open pointers want of it.
    fn value(&mut self, cursor: &mut Cursor<'t>, open: &[Open<'_>]) -> Option<()> {
        if open.is_empty() {
            return cursor.skip_value();
        }
        let start = cursor.position();
        let is_to_enter = open.iter().any(|(_, rest)| !rest.is_empty());
        match cursor.peek() {
            Some(b'{') if is_to_enter => self.object(cursor, open)?,
            Some(b'[') if is_to_enter => self.array(cursor, open)?,
            _ => cursor.skip_value()?,
        }
        let value = cursor.since(start)?;
        for (idx, _) in open.iter().filter(|(_, rest)| rest.is_empty()) {
            self.found[*idx].push(value);
        }
        Some(())
    }

    fn object(&mut self, cursor: &mut Cursor<'t>, open: &[Open<'_>]) -> Option<()> {
        let n_before: Vec<usize> = open.iter().map(|(idx, _)| self.found[*idx].len()).collect();
        cursor.object(|cursor, _, key| {
            let mut under = Vec::new();
            for ((idx, rest), n_before) in open.iter().zip(&n_before) {
                if rest.first().is_some_and(|segment| is_named(segment, key)) {
                    // The key may have been here before: the last one counts.
                    self.found[*idx].truncate(*n_before);
                    under.push((*idx, &rest[1..]));
                }
            }
            self.value(cursor, &under)
        })
    }

    fn array(&mut self, cursor: &mut Cursor<'t>, open: &[Open<'_>]) -> Option<()> {
        cursor.array(|cursor, element_idx| {
            let mut under = Vec::new();
            for (idx, rest) in open {
                match rest.first() {
                    Some(Segment::Name { index, .. }) if *index == Some(element_idx) => {}
                    Some(Segment::Every) => {}
                    _ => continue,
                }
                under.push((*idx, &rest[1..]));
            }
            self.value(cursor, &under)
        })
    }
}

fn is_named(segment: &Segment, key: Quoted<'_>) -> bool {
    matches!(segment, Segment::Name { name, .. } if key.is(name))
}
