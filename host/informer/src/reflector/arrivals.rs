//! The private store into which everything streams before anyone sees it (WL-02).

use hashbrown::hash_map::Entry;

use crate::names::{KeyMap, ObjectKey};
use crate::object::Object;

/// The objects that came so far, each once, mostly in the order in which they came.
///
/// It exists beside the cache while a stream comes in. As long as objects come in the order of a list, none can come twice, and each takes
/// a pointer; after that also a place in a map.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    objects: Vec<Object>,
    places: Option<KeyMap<usize>>,
}

// === impl Arrivals ===

impl Arrivals {
    /// Takes an object, in place of the one of its key if there is one.
    pub(super) fn put(&mut self, object: Object) {
        let is_behind = |last: &Object| last.key().cmp_in_list(object.key()).is_lt();
        if self.places.is_none() && self.objects.last().is_none_or(is_behind) {
            self.objects.push(object);
            return;
        }
        let n_objects = self.objects.len();
        match self.places().entry(object.key().clone()) {
            Entry::Occupied(place) => {
                let place = *place.get();
                self.objects[place] = object;
            }
            Entry::Vacant(place) => {
                place.insert(n_objects);
                self.objects.push(object);
            }
        }
    }

    /// Drops the object of this key, if there is one. The last one takes its place.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        let Some(place) = self.places().remove(key) else { return };
        self.objects.swap_remove(place);
        if let Some(moved) = self.objects.get(place) {
            let moved = moved.key().clone();
            self.places().insert(moved, place);
        }
    }

    fn places(&mut self) -> &mut KeyMap<usize> {
        self.places.get_or_insert_with(|| {
            self.objects.iter().enumerate().map(|(place, object)| (object.key().clone(), place)).collect()
        })
    }

    pub(super) fn into_objects(self) -> Vec<Object> {
        self.objects
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::TypeMeta;
    use crate::testing::Draft;

    proptest! {
        #[test]
        fn arrivals_are_what_a_map_would_hold_wl_02(steps in prop::collection::vec((0..6_u8, any::<bool>()), 0..40)) {
            let mut arrivals = Arrivals::default();
            let mut model = std::collections::BTreeMap::new();
            for (version, (name, is_put)) in steps.into_iter().enumerate() {
                let key = format!("x/{name}");
                let object = Draft::new(&key).at(&TypeMeta::new("v1", "Pod"), "u", &version.to_string());
                if is_put {
                    model.insert(object.key().clone(), version.to_string());
                    arrivals.put(object);
                } else {
                    model.remove(object.key());
                    arrivals.remove(object.key());
                }
            }
            let objects = arrivals.into_objects();
            prop_assert_eq!(objects.len(), model.len());
            let found: std::collections::BTreeMap<_, _> = objects
                .iter()
                .map(|object| (object.key().clone(), object.resource_version().to_owned()))
                .collect();
            prop_assert_eq!(found, model);
        }
    }
}
