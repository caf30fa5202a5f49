//! Who reads through one lister, and which of its readers a change wakes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use oarlock_informer::{Notification, Object};

use super::{Read, WakingLister};
use crate::dispatch::queue::Key;

/// The most selectors of one lister in one namespace, or in all, that a change is compared with.
pub(super) const MOST_SELECTORS: usize = 1_024;

/// Who reads through one lister.
pub(super) struct Lister {
    pub(super) declared: WakingLister,
    /// The first generation of the unbroken series that has this lister.
    pub(super) since: u64,
    pub(super) readers: HashMap<Arc<Read>, HashSet<Key>>,
    /// The selectors among these, by namespace.
    pub(super) selectors: HashMap<Option<Box<str>>, Vec<Arc<Read>>>,
    /// How many of these are about an index.
    pub(super) n_by_index: HashMap<Arc<str>, usize>,
    /// The keys that every change wakes.
    pub(super) any: HashSet<Key>,
}

// === impl Lister ===

impl Lister {
    pub(super) fn new(declared: WakingLister, since: u64) -> Self {
        Self {
            declared,
            since,
            readers: HashMap::new(),
            selectors: HashMap::new(),
            n_by_index: HashMap::new(),
            any: HashSet::new(),
        }
    }

    pub(super) fn has_room_for(&self, read: &Arc<Read>) -> bool {
        match &**read {
            Read::Selector { namespace, .. } => {
                let of_namespace = self.selectors.get(namespace).map_or(0, Vec::len);
                of_namespace < MOST_SELECTORS || self.readers.contains_key(read)
            }
            _ => true,
        }
    }

    pub(super) fn add(&mut self, read: &Arc<Read>, key: &Key) {
        let readers = self.readers.entry(read.clone()).or_default();
        let is_first = readers.is_empty();
        readers.insert(key.clone());
        match &**read {
            _ if !is_first => {}
            Read::Object(_) => {}
            Read::Selector { namespace, .. } => {
                self.selectors.entry(namespace.clone()).or_default().push(read.clone());
            }
            Read::Value { index, .. } | Read::Values { index } => {
                *self.n_by_index.entry(index.clone()).or_default() += 1;
            }
        }
    }

    pub(super) fn remove(&mut self, read: &Arc<Read>, key: &Key) {
        let Some(readers) = self.readers.get_mut(read) else { return };
        readers.remove(key);
        if !readers.is_empty() {
            return;
        }
        self.readers.remove(read);
        match &**read {
            Read::Object(_) => {}
            Read::Selector { namespace, .. } => {
                let Some(selectors) = self.selectors.get_mut(namespace) else { return };
                selectors.retain(|it| it != read);
                if selectors.is_empty() {
                    self.selectors.remove(namespace);
                }
            }
            Read::Value { index, .. } | Read::Values { index } => {
                if let Some(n) = self.n_by_index.get_mut(index) {
                    *n -= 1;
                }
            }
        }
    }

    pub(super) fn changed(&self, notification: &Notification, due: &mut HashSet<Key>) {
        due.extend(self.any.iter().cloned());
        if self.readers.is_empty() {
            return;
        }
        let states = [notification.old(), notification.new()];
        let object = notification.object().key();
        let mut wake = |read: &Read| due.extend(self.readers.get(read).into_iter().flatten().cloned());
        wake(&Read::Object(object.clone()));
        let of_namespace = Some(Box::from(object.namespace()));
        for read in [&None, &of_namespace].into_iter().filter_map(|it| self.selectors.get(it)).flatten() {
            let Read::Selector { selector, .. } = &**read else { continue };
            if states.iter().flatten().any(|state| state.is_selected_by(selector)) {
                wake(read);
            }
        }
        for (index, source) in &self.declared.indices {
            if self.n_by_index.get(index).is_none_or(|n| *n == 0) {
                continue;
            }
            // An object that cannot be indexed has no values.
            let values = |state: Option<&Object>| {
                state.map(|state| source.values(state).unwrap_or_default()).unwrap_or_default()
            };
            let [old, new] = states.map(values);
            if old != new {
                wake(&Read::Values { index: index.clone() });
            }
            for value in old.into_iter().chain(new) {
                let value = Box::<str>::from(value);
                for namespace in [None, of_namespace.clone()] {
                    wake(&Read::Value { namespace, index: index.clone(), value: value.clone() });
                }
            }
        }
    }
}
