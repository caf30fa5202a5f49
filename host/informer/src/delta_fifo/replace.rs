//! Lists: what a list holds is queued as replaced, what it does not hold as deleted.

use parking_lot::MutexGuard;

use super::queued_list::QueuedList;
use super::state::DeltaFifoState;
use super::{Delta, DeltaFifo, DeltaObject, Error, Tombstone, TransformError};
use crate::names::{KeySet, ObjectKey};
use crate::object::Object;
use crate::resource_version::Version;

// === impl DeltaFifo ===

impl DeltaFifo {
    /// Queues a whole list: its objects as replaced, and the objects that are queued or known but not listed
    /// as deleted.
    ///
    /// This is one critical section: a consumer sees all of the list or nothing. On an error the objects
    /// before the failed one stay queued, and the queue does not count as populated.
    pub fn replace(&self, objects: Vec<Object>) -> Result<(), Error> {
        self.replace_at(objects, None)
    }

    /// Does as [`DeltaFifo::replace`] with a list of this version.
    pub(super) fn replace_at(
        &self,
        objects: Vec<Object>,
        resource_version: Option<&str>,
    ) -> Result<(), Error> {
        if self.config.transformer.is_none() {
            return self.replace_transformed(objects, resource_version);
        }
        let mut state = self.state.lock();
        self.replace_each(&mut state, objects, |object| self.transform(object))?;
        self.list_queued(state, resource_version);
        Ok(())
    }

    /// Does as [`DeltaFifo::replace`] with objects that have been transformed already.
    pub(crate) fn replace_transformed(
        &self,
        objects: Vec<Object>,
        resource_version: Option<&str>,
    ) -> Result<(), Error> {
        let has_default_keys = self.config.key_function.is_default();
        let list = if has_default_keys { QueuedList::new(objects) } else { Err(objects) };
        let mut state = self.state.lock();
        match list {
            Ok(list) => self.replace_sorted(&mut state, list),
            Err(objects) => self.replace_each(&mut state, objects, Ok)?,
        }
        self.list_queued(state, resource_version);
        Ok(())
    }

    /// Queues a list object by object.
    fn replace_each(
        &self,
        state: &mut DeltaFifoState,
        objects: Vec<Object>,
        transform: impl Fn(Object) -> Result<Object, TransformError>,
    ) -> Result<(), Error> {
        state.unpack_list();
        let mut listed = KeySet::with_capacity_and_hasher(objects.len(), Default::default());
        for object in objects {
            let key = self.key_of(&object)?;
            let object = transform(object)?;
            state.push(key.clone(), Delta::Replaced(object));
            listed.insert(key);
        }
        self.delete_unlisted(state, |key| listed.contains(key));
        Ok(())
    }

    /// Queues a sorted list as one piece.
    fn replace_sorted(&self, state: &mut DeltaFifoState, list: QueuedList) {
        state.unpack_list();
        let n_before_list = state.len();
        self.delete_unlisted(state, |key| list.get(key).is_some());
        state.push_list(list, n_before_list);
    }

    /// Queues the deletion of each object that is queued or known but not listed.
    fn delete_unlisted(&self, state: &mut DeltaFifoState, is_listed: impl Fn(&ObjectKey) -> bool) {
        let queued: Vec<_> = state.keys().filter(|key| !is_listed(key)).cloned().collect();
        for key in queued {
            // The newest queued state, never a tombstone within a tombstone.
            let object = state.deltas(&key).and_then(|deltas| deltas.newest().last_known().cloned());
            state.push(key.clone(), Delta::Deleted(DeltaObject::Tombstone(Tombstone { key, object })));
        }
        let Some(known_objects) = &self.config.known_objects else { return };
        for key in known_objects.known_keys() {
            if is_listed(&key) || state.has(&key) {
                continue;
            }
            let object = known_objects.known(&key);
            if object.is_none() {
                tracing::debug!(%key, "a known object vanished during replace");
            }
            state.push(key.clone(), Delta::Deleted(DeltaObject::Tombstone(Tombstone { key, object })));
        }
    }

    fn list_queued(&self, mut state: MutexGuard<'_, DeltaFifoState>, resource_version: Option<&str>) {
        if let Some(reached) = state.progress.list_queued(resource_version.map(Version::new)) {
            self.publish(reached);
        }
        drop(state);
        self.changed.notify_waiters();
    }
}
