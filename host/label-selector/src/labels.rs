//! The labels of an object, as a selector reads them.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// The labels of one object.
pub trait Labels {
    /// Returns the value of a label.
    fn get(&self, key: &str) -> Option<Cow<'_, str>>;
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key).map(|value| Cow::Borrowed(value.as_ref()))
    }
}

impl<K: Borrow<str> + Eq + Hash, V: AsRef<str>, S: BuildHasher> Labels for HashMap<K, V, S> {
    fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key).map(|value| Cow::Borrowed(value.as_ref()))
    }
}

/// Looks through all pairs. The first one of a key counts.
impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        let pair = self.iter().find(|(found, _)| found.as_ref() == key);
        pair.map(|(_, value)| Cow::Borrowed(value.as_ref()))
    }
}
