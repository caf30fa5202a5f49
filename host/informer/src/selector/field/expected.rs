//! A JSON value that texts are compared with, without a tree being made of them.

use std::borrow::Cow;
use std::cmp::Ordering;

use oarlock_json::scan::Cursor;
use serde_json::{Number, Value};

/// What a field is compared with.
///
/// A comparison ends where the text first differs, so that its cost is bounded by what is expected and not by
/// the text. (A text that has a key twice equals nothing; the API server writes none.)
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expected {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Expected>),
    /// Sorted by key.
    Object(Vec<(String, Expected)>),
}

/// The most bytes that one byte of a string takes when it is escaped.
const ESCAPED: usize = 6;

// === impl Expected ===

impl Expected {
    /// Whether a JSON text has this value: neither white space nor the order of keys matters, and numbers are
    /// equal by value.
    pub(super) fn is(&self, text: &str) -> bool {
        let mut cursor = Cursor::new(text);
        cursor.blanks();
        let is_equal = self.stands_at(&mut cursor).is_some();
        cursor.blanks();
        is_equal && cursor.is_at_end()
    }

    /// Whether this is a value that others are greater or less than: a number or a string.
    pub(super) fn has_order(&self) -> bool {
        matches!(self, Self::Number(_) | Self::String(_))
    }

    /// Returns how a JSON text compares with this value: numbers by value, strings by their bytes. `None` for
    /// values of other types, and for two values of different types.
    pub(super) fn order_of(&self, text: &str) -> Option<Ordering> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        match self {
            Self::Number(expected) if !text.starts_with('"') => {
                compare(&serde_json::from_str(text).ok()?, expected)
            }
            Self::String(expected) => {
                let actual = beginning(text.strip_prefix('"')?, expected.len())?;
                Some(actual.as_bytes().cmp(expected.as_bytes()))
            }
            _ => None,
        }
    }

    /// Passes over the value that stands next if it is this one.
    fn stands_at(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        match self {
            Self::Null => cursor.word("null"),
            Self::Bool(true) => cursor.word("true"),
            Self::Bool(false) => cursor.word("false"),
            Self::Number(expected) => {
                let start = cursor.position();
                cursor.number()?;
                let actual: Number = serde_json::from_str(cursor.since(start)?).ok()?;
                is_equal(&actual, expected).then_some(())
            }
            Self::String(expected) => string(cursor, expected),
            Self::Array(expected) => {
                let mut n_equal = 0;
                cursor.array(|cursor, idx| {
                    n_equal += 1;
                    expected.get(idx)?.stands_at(cursor)
                })?;
                (n_equal == expected.len()).then_some(())
            }
            Self::Object(expected) => {
                let mut is_there = vec![false; expected.len()];
                cursor.object(|cursor, _, key| {
                    let key = key.text()?;
                    let place = expected.binary_search_by(|(other, _)| (**other).cmp(&*key)).ok()?;
                    let is_twice = std::mem::replace(&mut is_there[place], true);
                    if is_twice { None } else { expected[place].1.stands_at(cursor) }
                })?;
                is_there.iter().all(|is_there| *is_there).then_some(())
            }
        }
    }
}

impl From<Value> for Expected {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(text),
            Value::Array(values) => Self::Array(values.into_iter().map(Self::from).collect()),
            Value::Object(values) => {
                let mut entries: Vec<_> =
                    values.into_iter().map(|(key, value)| (key, Self::from(value))).collect();
                entries.sort_by(|(left, _), (right, _)| left.cmp(right));
                Self::Object(entries)
            }
        }
    }
}

fn is_equal(left: &Number, right: &Number) -> bool {
    left == right || (left.is_f64() != right.is_f64() && left.as_f64() == right.as_f64())
}

/// Passes over a string if it is this one. No more of it is looked at than could be equal.
fn string(cursor: &mut Cursor<'_>, expected: &str) -> Option<()> {
    let rest = cursor.rest();
    let plain = rest.strip_prefix('"')?;
    if plain.strip_prefix(expected).is_some_and(|rest| rest.starts_with('"'))
        && !expected.contains(['"', '\\'])
    {
        cursor.skip(expected.len() + 2);
        return Some(());
    }
    let most = (expected.len() * ESCAPED + 2).min(rest.len());
    let mut near = Cursor::new(&rest[..rest.floor_char_boundary(most)]);
    let actual = near.string()?.text()?;
    let length = near.position();
    (*actual == *expected).then(|| cursor.skip(length))
}

/// Compares numbers by value. Two integers, and an integer and a fraction, are compared exactly.
fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    let integer =
        |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => compare_with_fraction(left, right.as_f64()?),
        (None, Some(right)) => compare_with_fraction(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn compare_with_fraction(integer: i128, fraction: f64) -> Option<Ordering> {
    // The conversion saturates far beyond all 64-bit integers.
    let whole = fraction.trunc();
    match integer.cmp(&(whole as i128)) {
        Ordering::Equal => 0.0.partial_cmp(&(fraction - whole)),
        order => Some(order),
    }
}

/// Returns the content of a string, without escapes, from the text behind its opening quote. Of a long string
/// it returns the beginning, which has more than `length` bytes.
fn beginning(rest: &str, length: usize) -> Option<Cow<'_, str>> {
    let most = (length + 2) * ESCAPED;
    let near = &rest[..rest.floor_char_boundary(most)];
    if let Some(end) = end_of_content(near) {
        return unescaped(&near[..end]);
    }
    if near.len() == rest.len() {
        // Not a string: it has no end.
        return None;
    }
    // The string goes on. The cut may be within an escape, the longest of which are two units of a pair.
    (0..=2 * ESCAPED).find_map(|n_less| unescaped(near.get(..near.len().checked_sub(n_less)?)?))
}

/// Returns where the closing quote of a string's content is.
fn end_of_content(content: &str) -> Option<usize> {
    let mut is_escaped = false;
    content.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

fn unescaped(content: &str) -> Option<Cow<'_, str>> {
    if content.contains('\\') {
        serde_json::from_str(&format!("\"{content}\"")).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(content))
    }
}
