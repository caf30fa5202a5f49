//! The leaves of a written JSON text: keyed hashes of their pointers and values, and a few pointers as text.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

/// The maximum length of a text whose leaves are compared. A longer one is compared as a whole.
const MAX_TEXT: usize = 64 << 10;

/// The maximum number of leaves. A text with more is compared as a whole.
const MAX_LEAVES: usize = 4_096;

/// The maximum length of a shown pointer, in bytes.
const MAX_POINTER: usize = 512;

/// The maximum number of pointers that a waiting write keeps as text.
const MOST_PATHS: usize = 16;

/// Fields that differ between two equal writes that read the object at different times.
const IGNORED: [&str; 2] = ["/metadata/resourceVersion", "/metadata/uid"];

/// The leaves of one write, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// The hashes of the pointer and of the value.
    hashes: Vec<(u64, u64)>,
    /// The pointers of the first leaves.
    paths: Vec<Box<str>>,
}

/// A place where two writes differ: the pointer, if one of them has it as text, and the hashes of the two
/// values.
pub(super) type Unequal<'a> = (Option<&'a str>, Option<u64>, Option<u64>);

// === impl Leaves ===

impl Leaves {
    /// Reads the leaves of a text. `hashes` has a key of this process, so that a short value cannot be found
    /// by trying.
    pub(super) fn of(text: &str, hashes: &RandomState) -> Self {
        let whole =
            || Self { hashes: vec![(hashes.hash_one(""), hashes.hash_one(text))], paths: vec!["".into()] };
        if text.len() > MAX_TEXT {
            return whole();
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else { return whole() };
        let mut leaves = Self::default();
        if collect(&value, &mut String::new(), &mut leaves, hashes).is_none() {
            return whole();
        }
        leaves
    }

    /// Keeps only the first pointers as text.
    pub(super) fn keep_few_paths(&mut self) {
        self.paths.truncate(MOST_PATHS);
        self.paths.shrink_to_fit();
        self.hashes.shrink_to_fit();
    }

    /// Returns the memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        let Self { hashes, paths } = self;
        size_of_val(&**hashes) + paths.iter().map(|path| path.len() + size_of::<Box<str>>()).sum::<usize>()
    }

    /// Returns the first `most` places where two writes differ.
    pub(super) fn differences<'a>(&'a self, other: &'a Self, most: usize) -> Vec<Unequal<'a>> {
        let by_pointer = |leaves: &Self| -> HashMap<u64, usize> {
            leaves.hashes.iter().enumerate().map(|(i, (pointer, _))| (*pointer, i)).collect()
        };
        let (mine, others) = (by_pointer(self), by_pointer(other));
        let changed = self.hashes.iter().enumerate().filter_map(|(i, (pointer, value))| {
            let at = others.get(pointer).copied();
            let found = at.map(|at| other.hashes[at].1);
            let path = self.path(i).or_else(|| other.path(at?));
            (found != Some(*value)).then_some((path, Some(*value), found))
        });
        let added = other.hashes.iter().enumerate().filter(|(_, (pointer, _))| !mine.contains_key(pointer));
        changed.chain(added.map(|(i, (_, value))| (other.path(i), None, Some(*value)))).take(most).collect()
    }

    fn path(&self, i: usize) -> Option<&str> {
        self.paths.get(i).map(|path| &**path)
    }
}

/// Collects the leaves; an empty object or list is one. Returns `None` if there are too many.
fn collect(value: &Value, pointer: &mut String, leaves: &mut Leaves, hashes: &RandomState) -> Option<()> {
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
            if leaves.hashes.len() == MAX_LEAVES || pointer.len() > MAX_POINTER {
                return None;
            }
            leaves.hashes.push((hashes.hash_one(pointer.as_str()), hashes.hash_one(leaf.to_string())));
            leaves.paths.push(pointer.as_str().into());
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
        first
            .differences(&second, usize::MAX)
            .into_iter()
            .map(|(pointer, ..)| pointer.unwrap().to_owned())
            .collect()
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
        let long = format!("\"{}\"", "x".repeat(MAX_TEXT));
        assert_eq!(differ(&format!(r#"{{"a":{long}}}"#), "{}"), [""]);
    }

    #[test]
    fn a_waiting_write_keeps_few_paths_and_all_hashes() {
        let hashes = RandomState::new();
        let body = |last: u32| {
            let fields: Vec<_> = (0..99).map(|n| format!(r#""f{n}":{n}"#)).collect();
            format!(r#"{{{},"last":{last}}}"#, fields.join(","))
        };
        let (mut waiting, same) = (Leaves::of(&body(1), &hashes), Leaves::of(&body(1), &hashes));
        waiting.keep_few_paths();
        assert_eq!(waiting.paths.len(), MOST_PATHS);
        assert!(waiting.differences(&same, 9).is_empty());
        let other = Leaves::of(&body(2), &hashes);
        // The write that comes knows the path.
        assert_eq!(waiting.differences(&other, 9)[0].0, Some("/last"));
        let nothing = Leaves::of("{}", &hashes);
        let unknown = waiting.differences(&nothing, 99);
        assert_eq!((unknown[0].0, unknown[50].0), (Some("/f0"), None));
    }
}
