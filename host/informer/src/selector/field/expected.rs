//! A JSON value that texts are compared with, without a tree being made of them.

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
