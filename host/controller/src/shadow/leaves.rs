//! The leaves of a written JSON text: their pointers, and keyed hashes of their values.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

/// The maximum length of a text whose leaves are compared. A longer one is compared as a whole.
const MAX_TEXT: usize = 1 << 20;

/// The maximum number of leaves. A text with more is compared as a whole.
const MAX_LEAVES: usize = 4_096;

/// The maximum length of a shown pointer, in bytes.
const MAX_POINTER: usize = 512;

/// Fields that differ between two equal writes that read the object at different times.
const IGNORED: [&str; 2] = ["/metadata/resourceVersion", "/metadata/uid"];

/// The leaves of one write: hashes by JSON pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Leaves(BTreeMap<Box<str>, u64>);

// === impl Leaves ===

impl Leaves {
    /// Reads the leaves of a text. `hashes` has a key of this process, so that a short value cannot be found
    /// by trying.
    pub(super) fn of(text: &str, hashes: &RandomState) -> Self {
        let whole = || Self(BTreeMap::from([("".into(), hashes.hash_one(text))]));
        if text.len() > MAX_TEXT {
            return whole();
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else { return whole() };
        let mut leaves = BTreeMap::new();
        if collect(&value, &mut String::new(), &mut leaves, hashes).is_none() {
            return whole();
        }
        Self(leaves)
    }

    /// Returns where two writes differ: the pointer, and the two hashes.
    pub(super) fn differences<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a str, Option<u64>, Option<u64>)> {
        let Self(first) = self;
        let Self(second) = other;
        let changed = first.iter().filter_map(|(pointer, hash)| {
            let found = second.get(pointer).copied();
            (found != Some(*hash)).then_some((&**pointer, Some(*hash), found))
        });
        let added = second.iter().filter(|(pointer, _)| !first.contains_key(*pointer));
        changed.chain(added.map(|(pointer, hash)| (&**pointer, None, Some(*hash))))
    }
}

/// Collects the leaves; an empty object or list is one. Returns `None` if there are too many.
fn collect(
    value: &Value,
    pointer: &mut String,
    leaves: &mut BTreeMap<Box<str>, u64>,
    hashes: &RandomState,
) -> Option<()> {
    let length = pointer.len();
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                collect(value, pointer, leaves, hashes)?;
                pointer.truncate(length);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, value) in items.iter().enumerate() {
                pointer.push_str(&format!("/{i}"));
                collect(value, pointer, leaves, hashes)?;
                pointer.truncate(length);
            }
        }
        _ if IGNORED.contains(&pointer.as_str()) => {}
        leaf => {
            if leaves.len() == MAX_LEAVES || pointer.len() > MAX_POINTER {
                return None;
            }
            leaves.insert(pointer.as_str().into(), hashes.hash_one(leaf.to_string()));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differ(first: &str, second: &str) -> Vec<String> {
        let hashes = RandomState::new();
        let (first, second) = (Leaves::of(first, &hashes), Leaves::of(second, &hashes));
        first.differences(&second).map(|(pointer, ..)| pointer.to_owned()).collect()
    }

    #[test]
    fn differences_are_named_by_their_pointers() {
        assert!(differ(r#"{"a":1,"b":[1,{}]}"#, r#"{ "b":[1,{}], "a":1 }"#).is_empty());
        assert_eq!(differ(r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1,"c":3},"d":[]}"#), ["/a/c", "/d"]);
        assert_eq!(differ(r#"{"a/b":"x"}"#, "{}"), ["/a~1b", ""]);
        assert!(
            differ(r#"{"metadata":{"resourceVersion":"1","name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#)
                .is_empty()
        );
    }

    #[test]
    fn a_text_beyond_the_limits_is_one_leaf() {
        let many = serde_json::to_string(&(0..=MAX_LEAVES).collect::<Vec<_>>()).unwrap();
        assert_eq!(differ(&many, "[]"), [""]);
        assert_eq!(differ("not json", "not json, too"), [""]);
        assert!(differ(&many, &many).is_empty());
    }
}
