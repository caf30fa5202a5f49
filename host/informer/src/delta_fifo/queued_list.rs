//! A whole list that is queued as one piece.

use std::vec;

use crate::names::ObjectKey;
use crate::object::Object;

/// The objects of a list that were not popped yet, in the order of the list.
///
/// Each object takes one pointer, where a queued key takes an entry in the map and one in the queue. An
/// object is found by binary search, since the API server sorts its lists.
#[derive(Debug, Default)]
pub(super) struct QueuedList(vec::IntoIter<Object>);

// === impl QueuedList ===

impl QueuedList {
    /// Wraps a list; returns it as the error if it is not sorted or has an object twice.
    pub(super) fn new(objects: Vec<Object>) -> Result<Self, Vec<Object>> {
        let is_sorted = objects.is_sorted_by(|left, right| left.key().cmp_in_list(right.key()).is_lt());
        if is_sorted { Ok(Self(objects.into_iter())) } else { Err(objects) }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        let objects = self.0.as_slice();
        let place = objects.binary_search_by(|object| object.key().cmp_in_list(key));
        place.ok().map(|place| &objects[place])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.0.as_slice().iter().map(Object::key)
    }

    /// Removes and returns the first object.
    pub(super) fn pop(&mut self) -> Option<Object> {
        let object = self.0.next();
        if self.is_empty() {
            // Frees the memory.
            self.0 = vec::IntoIter::default();
        }
        object
    }

    /// Drops the objects whose keys are queued by themselves.
    pub(super) fn without(self, is_queued: impl Fn(&ObjectKey) -> bool) -> Self {
        let mut objects: Vec<_> = self.0.collect();
        objects.retain(|object| !is_queued(object.key()));
        Self(objects.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::TypeMeta;
    use crate::testing::Draft;

    fn objects(keys: &[&str]) -> Vec<Object> {
        let pod = TypeMeta::new("v1", "Pod");
        keys.iter().map(|key| Draft::new(key).at(&pod, "u", "1")).collect()
    }

    #[test]
    fn a_list_in_the_api_servers_order_is_queued_as_one_piece() {
        let keys = ["a-b/x", "a/x", "a/y", "b/a"];
        let mut list = QueuedList::new(objects(&keys)).unwrap();
        let key = |text: &str| objects(&[text])[0].key().clone();
        assert!(keys.iter().all(|text| list.get(&key(text)).is_some_and(|found| *found.key() == key(text))));
        assert!(list.get(&key("a/z")).is_none());
        assert_eq!(list.pop().map(|object| object.key().to_string()).as_deref(), Some("a-b/x"));
        assert!(list.get(&key("a-b/x")).is_none(), "a popped object is not found");
        let rest = list.without(|queued| *queued == key("a/y"));
        assert_eq!((rest.len(), rest.get(&key("a/y")).is_none()), (2, true));
    }

    #[test]
    fn a_list_in_another_order_is_returned() {
        for keys in [["a/x", "a-b/x"], ["a/x", "a/x"], ["b/x", "a/y"]] {
            assert_eq!(QueuedList::new(objects(&keys)).unwrap_err().len(), 2, "{keys:?}");
        }
    }
}
