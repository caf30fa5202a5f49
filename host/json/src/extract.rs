//! One walk over a JSON text that finds the values of several patterns.
//!
//! The walk skips values that no pattern leads into, in blocks (`scan`). In a text that is not JSON it finds
//! any values or none; it never panics, and recurses no deeper than the longest pattern.

use crate::pointer::Segment;
use crate::scan::{Cursor, Quoted};

/// A pattern that matches the path so far: its index, and its remaining segments.
type Open<'p> = (usize, &'p [Segment]);

/// Returns the values of each pattern as copies, in the order of the text.
///
/// A pattern without [`Segment::Every`] finds at most one value.
pub fn extract(text: &str, pointers: &[&[Segment]]) -> Vec<Vec<String>> {
    let own = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    find_each(text, pointers).into_iter().map(own).collect()
}

/// Returns the values of each pattern, borrowed from the text, in its order.
pub fn find_each<'t>(text: &'t str, pointers: &[&[Segment]]) -> Vec<Vec<&'t str>> {
    let open: Vec<Open<'_>> = pointers.iter().copied().enumerate().collect();
    let mut walk = Walk { found: pointers.iter().map(|_| Vec::new()).collect() };
    let mut cursor = Cursor::new(text);
    cursor.blanks();
    // Malformed JSON has no more values.
    let _ = walk.value(&mut cursor, &open);
    walk.found
}

/// The values found so far.
struct Walk<'t> {
    found: Vec<Vec<&'t str>>,
}

// === impl Walk ===

impl<'t> Walk<'t> {
    /// Walks over the next value, and records it for the patterns that end here.
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
        let mut has_been = vec![false; open.len()];
        cursor.object(|cursor, _, key| {
            let mut under = Vec::new();
            for ((idx, rest), has_been) in open.iter().zip(&mut has_been) {
                // Of a repeated key the first value counts.
                if !*has_been && rest.first().is_some_and(|segment| is_named(segment, key)) {
                    *has_been = true;
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
