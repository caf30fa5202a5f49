//! The keys of a plugin's work queue.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use oarlock_plugin::contract::{self, WorkKey};

use crate::report::Named;

/// About how many bytes a key takes beside its texts, which all the places that hold the key share.
const KEY_COST: usize = 384;

/// Hashes the texts of keys. A plugin cannot find keys that hash alike.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A key to reconcile: the contract's work key, usable as a key of maps.
///
/// A table that grows hashes all its keys again. With 100,000 keys in several tables that would stop the
/// worker for 80 ms, so a key has the hash of its texts in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Key {
    hash: u64,
    texts: Arc<KeyTexts>,
}

#[derive(Debug, Eq, Hash, PartialEq)]
pub(crate) struct KeyTexts {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

// === impl Key ===

impl Key {
    pub(in super::super) fn to_contract(&self) -> WorkKey {
        let KeyTexts { kind, namespace, name } = &**self;
        let object = contract::ObjectKey { namespace: namespace.clone(), name: name.clone() };
        WorkKey { kind: kind.clone(), object }
    }

    /// Returns about how many bytes the key takes.
    pub(super) fn cost(&self) -> usize {
        KEY_COST + self.n_bytes()
    }

    /// Returns the length of its texts.
    pub(in super::super) fn n_bytes(&self) -> usize {
        self.kind.len() + self.namespace.len() + self.name.len()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Deref for Key {
    type Target = KeyTexts;

    fn deref(&self) -> &KeyTexts {
        &self.texts
    }
}

impl From<WorkKey> for Key {
    fn from(key: WorkKey) -> Self {
        let WorkKey { kind, object: contract::ObjectKey { namespace, name } } = key;
        let texts = KeyTexts { kind, namespace, name };
        Self { hash: HASHER.hash_one(&texts), texts: Arc::new(texts) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyTexts { kind, namespace, name } = &**self;
        Named(kind, namespace, name).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasherDefault;

    use super::*;

    /// Counts the bytes that are hashed.
    #[derive(Default)]
    struct Counter(u64);

    impl Hasher for Counter {
        fn write(&mut self, bytes: &[u8]) {
            self.0 += bytes.len() as u64;
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    fn key(name: &str) -> Key {
        let object = contract::ObjectKey { namespace: "a".into(), name: name.to_owned() };
        WorkKey { kind: "it".into(), object }.into()
    }

    #[test]
    fn promise_4_a_table_that_grows_does_not_read_the_texts_of_its_keys() {
        let hasher = BuildHasherDefault::<Counter>::default();
        assert_eq!([key("a"), key(&"a".repeat(253))].map(|key| hasher.hash_one(key)), [8, 8]);
    }

    #[test]
    fn a_key_is_shown_without_what_it_lacks() {
        let shown = [("", ""), ("", "a"), ("b", "a")].map(|(namespace, name)| {
            let object = contract::ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() };
            Key::from(WorkKey { kind: "tick".into(), object }).to_string()
        });
        assert_eq!(shown, ["tick", "tick a", "tick b/a"]);
    }

    #[test]
    fn equal_keys_hash_alike_and_others_do_not() {
        assert_eq!((key("a"), key("a").hash), (key("a"), key("a").hash));
        assert_ne!((key("a"), key("a").hash), (key("b"), key("b").hash));
        let moved = |kind: &str, namespace: &str| {
            let object = contract::ObjectKey { namespace: namespace.to_owned(), name: String::new() };
            Key::from(WorkKey { kind: kind.to_owned(), object })
        };
        assert_ne!(moved("ab", "").hash, moved("a", "b").hash);
    }
}
