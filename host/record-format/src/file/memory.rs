//! How much memory a decoded entry takes, estimated from its text before it is decoded.
//!
//! A value takes up to a hundred times its text: `{"":0}` is an allocation of some 600 bytes. The writer
//! bounds what it writes ([`json_size`]), and a reader refuses what no writer wrote ([`of_text`]).

use serde_json::Value;

/// The most memory that one decoded entry takes. Entries that a host wrote take less than this.
pub(super) const MOST: usize = 384 << 20;

/// A text of at most this size is decoded unseen: it cannot take more than [`MOST`].
const SMALL: usize = 1 << 20;

/// The bytes of a value in an array, which may have as much room again.
const VALUE: usize = 2 * size_of::<Value>();

/// The bytes of an object or array beside its values: the first entries of a map, a hash table, allocations.
const COLLECTION: usize = 700;

/// Estimates the memory of an entry from its JSON. Text that is not JSON gets some number.
pub(super) fn of_text(json: &[u8]) -> usize {
    if json.len() <= SMALL {
        return 0;
    }
    let (mut n_values, mut n_collections, mut at) = (0, 0, 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at += length_of_string(&json[at + 1..]),
            b',' => n_values += 1,
            b'{' | b'[' => n_collections += 1,
            _ => {}
        }
        at += 1;
    }
    json.len() + (n_values + n_collections) * VALUE + n_collections * COLLECTION
}

/// Returns the length of the rest of a string, with the quote that ends it.
fn length_of_string(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
        at += found + 1;
        if rest[at - 1] == b'"' {
            return at;
        }
        // What follows a backslash ends no string.
        at += 1;
        if at >= rest.len() {
            break;
        }
    }
    rest.len()
}

/// Returns about the length of a value as JSON, and no less than a twentieth of the memory that it takes.
/// Quotes in texts count twice.
#[must_use]
pub fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + memchr::memchr_iter(b'"', text.as_bytes()).count() + 8,
        Value::Array(items) => items.iter().map(json_size).sum::<usize>() + COLLECTION / 10,
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| name.len() + 4 + json_size(value));
            fields.sum::<usize>() + COLLECTION / 10
        }
    }
}
