//! A whole list within the queue, as it came.

use std::vec;

use crate::names::ObjectKey;
use crate::object::Object;

/// What is left of a list, in its order: objects that have nothing queued but that the list has them.
///
/// Each takes a pointer, in place of an entry in the map and one in the queue. It is found by its key, since the API server
/// sorts its lists.
#[derive(Debug, Default)]
pub(super) struct Bulk(vec::IntoIter<Object>);

// === impl Bulk ===

impl Bulk {
    /// Takes a list; gives it back if it is not sorted, or has an object twice.
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

    /// Takes the oldest.
    pub(super) fn pop(&mut self) -> Option<Object> {
        let object = self.0.next();
        if self.is_empty() {
            // Gives the memory back.
            self.0 = vec::IntoIter::default();
        }
        object
    }

    /// Leaves out those that something else is queued of.
    pub(super) fn without(self, is_queued: impl Fn(&ObjectKey) -> bool) -> Self {
        let mut objects: Vec<_> = self.0.collect();
        objects.retain(|object| !is_queued(object.key()));
        Self(objects.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TypeMeta;
    use crate::testing::Draft;

    fn objects(keys: &[&str]) -> Vec<Object> {
        let pod = TypeMeta::new("v1", "Pod");
        keys.iter().map(|key| Draft::new(key).at(&pod, "u", "1")).collect()
    }

    #[test]
    fn a_list_as_the_api_server_sorts_it_is_taken_as_it_is() {
        let keys = ["a-b/x", "a/x", "a/y", "b/a"];
        let mut bulk = Bulk::new(objects(&keys)).unwrap();
        let key = |text: &str| objects(&[text])[0].key().clone();
        assert!(keys.iter().all(|text| bulk.get(&key(text)).is_some_and(|found| *found.key() == key(text))));
        assert!(bulk.get(&key("a/z")).is_none());
        assert_eq!(bulk.pop().map(|object| object.key().to_string()).as_deref(), Some("a-b/x"));
        assert!(bulk.get(&key("a-b/x")).is_none(), "what was popped is gone");
        let rest = bulk.without(|queued| *queued == key("a/y"));
        assert_eq!((rest.len(), rest.get(&key("a/y")).is_none()), (2, true));
    }

    #[test]
    fn any_other_list_is_given_back() {
        for keys in [["a/x", "a-b/x"], ["a/x", "a/x"], ["b/x", "a/y"]] {
            assert_eq!(Bulk::new(objects(&keys)).unwrap_err().len(), 2, "{keys:?}");
        }
    }
}
