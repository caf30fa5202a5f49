//! The queue between the reflector and the cache: client-go's DeltaFIFO.
//!
//! What the reflector sees is appended as [`Delta`]s to the list of its object; [`DeltaFifo::pop`] hands out whole lists, in the order in
//! which their keys were first queued. A key is in the queue exactly when its list is in the map, and a list is never empty.
//!
//! It is deliberately not the place where anybody waits for plugins: popping updates the cache and hands over, so the
//! queue stays short. It also does not know what an informer is; the known objects are behind a trait.

mod bulk;
mod deltas;
mod seen;
mod state;
mod store;
mod trace;
mod watermark;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use crate::keys::{KeyError, KeyFunction, Keyed};
use crate::names::{KeySet, ObjectKey};
use crate::object::{EditError, Object};
use crate::resource_version::Version;
use crate::user_function::{self, UserFunction};

use self::bulk::Bulk;
pub use self::deltas::{Delta, DeltaObject, Deltas, Tombstone};
use self::state::State;
use self::trace::Trace;
pub(crate) use self::watermark::{Unknown, Watermark};

/// Changes every object before it is queued, for instance by pruning it. Its uid and resourceVersion stay, whatever becomes of the text.
///
/// [`Object::with`], [`Object::without`] and [`Object::pruned`] change single fields:
///
/// ```
/// # use std::sync::Arc;
/// # use oarlock_informer::delta_fifo::{TransformError, Transformer};
/// # use oarlock_informer::Object;
/// # use oarlock_json::JsonPointer;
/// let env = JsonPointer::from(["spec", "containers", "0", "env"]);
/// let transformer: Transformer = Arc::new(move |pod: Object| Ok(pod.without(&env)?));
/// # drop(transformer);
/// ```
///
/// It should leave namespace and name alone: the cache keeps an object under the name that it is given here, while a deletion comes under the
/// one that the API server knows, and finds nothing (as in client-go).
pub type Transformer = Arc<dyn Fn(Object) -> Result<Object, TransformError> + Send + Sync>;

/// What a transformer answers when it cannot handle an object. A transformer that panics is taken to have answered this.
#[derive(Debug, thiserror::Error)]
#[error("transforming: {0}")]
pub struct TransformError(pub Box<dyn std::error::Error + Send + Sync>);

impl From<EditError> for TransformError {
    fn from(error: EditError) -> Self {
        Self(error.into())
    }
}

/// Why something was not queued.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It could not be transformed.
    #[error(transparent)]
    Transform(#[from] TransformError),
}

/// What [`DeltaFifo::pop`] answers once the queue is closed and empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta queue is closed")]
pub struct Closed;

/// The objects that the consumer of the queue has stored, as far as the queue needs to know.
pub trait KnownObjects: Send + Sync {
    /// Returns the stored object of that key.
    fn known(&self, key: &ObjectKey) -> Option<Object>;
    /// Returns the keys of all stored objects.
    fn known_keys(&self) -> Vec<ObjectKey>;
}

/// What the process callback of [`DeltaFifo::pop`] decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    /// The deltas are dealt with.
    Done,
    /// The deltas go back to the end of the queue, unless their key is queued again by then.
    Requeue,
}

/// What became of the deltas of a key.
enum Dealt {
    /// So many of them are dealt with.
    With(usize),
    /// They are to come again.
    Requeue,
}

/// How a [`DeltaFifo`] is made.
#[derive(Clone, Default)]
pub struct Config {
    /// Names the objects; `namespace/name` unless said otherwise.
    pub key_function: KeyFunction,
    /// What the consumer has stored. Without it deletes of objects that are not queued are dropped, and resync does nothing.
    pub known_objects: Option<Arc<dyn KnownObjects>>,
    /// Runs once over each object on its way in; never over tombstones and resynced objects. What a reflector lists has met it before it is
    /// queued, unless objects have keys of their own.
    pub transformer: Option<Transformer>,
}

/// A queue of objects' changes, grouped by object. See the module's words.
///
/// Producers may be many, the consumer is one. Every enqueue wakes the consumer.
pub struct DeltaFifo {
    config: Config,
    /// The config's, or what was set before the first object came.
    transformer: OnceLock<Transformer>,
    state: Mutex<State>,
    arrived: Notify,
    synced: watch::Sender<bool>,
    /// What was marked and passed.
    passed: Mutex<Watermark>,
    /// The same, for those who want to know; nobody is told while nobody listens.
    watermark: watch::Sender<Watermark>,
    /// The last version in it, likewise.
    seen: watch::Sender<Option<Box<str>>>,
}

// === impl DeltaFifo ===

impl DeltaFifo {
    /// Returns an empty, open queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            transformer: config.transformer.clone().map_or_else(OnceLock::new, OnceLock::from),
            config,
            state: Mutex::default(),
            arrived: Notify::new(),
            passed: Mutex::default(),
            synced: watch::channel(false).0,
            watermark: watch::channel(Watermark::default()).0,
            seen: watch::channel(None).0,
        }
    }

    /// Sets the transformer of a queue that was made without one, before anything is queued.
    pub(crate) fn set_transformer(&self, transformer: Transformer) {
        // One that is there already stays.
        let _ = self.transformer.set(transformer);
    }

    /// Queues that an object appeared.
    pub fn add(&self, object: Object) -> Result<(), Error> {
        self.enqueue(object, Delta::Added)
    }

    /// Queues that an object changed.
    pub fn update(&self, object: Object) -> Result<(), Error> {
        self.enqueue(object, Delta::Updated)
    }

    /// Queues that an object is gone, with its last state.
    ///
    /// Ignored when the object is neither queued nor known.
    pub fn delete(&self, object: Object) -> Result<(), Error> {
        let key = self.key_of(&object)?;
        let object = self.transform(object)?;
        self.delete_key(key, DeltaObject::Object(object));
        Ok(())
    }

    /// Queues that an object is gone whose deletion itself was missed.
    pub fn delete_tombstone(&self, tombstone: Tombstone) {
        self.delete_key(tombstone.key.clone(), DeltaObject::Tombstone(tombstone));
    }

    /// Queues a whole list: what it holds as replaced, and what it does not hold, though queued or known, as deleted.
    ///
    /// One critical section: a consumer sees all of it or nothing. On an error the objects before it stay queued, and the queue
    /// does not count as populated.
    pub fn replace(&self, objects: Vec<Object>) -> Result<(), Error> {
        if self.transformer.get().is_none() {
            return self.replace_transformed(objects);
        }
        let mut state = self.state.lock();
        let n_listed = self.replace_each(&mut state, objects, |object| self.transform(object))?;
        self.replaced(state, n_listed);
        Ok(())
    }

    /// Does as [`DeltaFifo::replace`] with what has been transformed already.
    pub(crate) fn replace_transformed(&self, objects: Vec<Object>) -> Result<(), Error> {
        let has_usual_keys = self.config.key_function.is_default();
        let list = if has_usual_keys { Bulk::new(objects) } else { Err(objects) };
        let mut state = self.state.lock();
        let n_queued = match list {
            Ok(bulk) => self.replace_bulk(&mut state, bulk),
            Err(objects) => self.replace_each(&mut state, objects, Ok)?,
        };
        self.replaced(state, n_queued);
        Ok(())
    }

    /// Queues a list, object by object; returns how many objects are queued because of it.
    fn replace_each(
        &self,
        state: &mut State,
        objects: Vec<Object>,
        transform: impl Fn(Object) -> Result<Object, TransformError>,
    ) -> Result<usize, Error> {
        state.unpack();
        let mut listed = KeySet::with_capacity_and_hasher(objects.len(), Default::default());
        for object in objects {
            let key = self.key_of(&object)?;
            let object = transform(object)?;
            state.push(key.clone(), Delta::Replaced(object));
            listed.insert(key);
        }
        let n_deleted = self.delete_unlisted(state, |key| listed.contains(key));
        Ok(listed.len() + n_deleted)
    }

    /// Queues a list as it is; returns how many objects are queued because of it.
    fn replace_bulk(&self, state: &mut State, bulk: Bulk) -> usize {
        state.unpack();
        let (before_bulk, n_listed) = (state.len(), bulk.len());
        let n_deleted = self.delete_unlisted(state, |key| bulk.get(key).is_some());
        state.push_bulk(bulk, before_bulk);
        n_listed + n_deleted
    }

    /// A whole list has been queued.
    fn replaced(&self, mut state: MutexGuard<'_, State>, n_queued: usize) {
        if !state.populated {
            state.populated = true;
            state.initial_population = n_queued;
            if n_queued == 0 {
                self.synced.send_replace(true);
            }
        }
        drop(state);
        self.arrived.notify_waiters();
    }

    /// Queues every known object again that has nothing queued. It never talks to anyone.
    pub fn resync(&self) {
        let Some(known_objects) = &self.config.known_objects else { return };
        let mut state = self.state.lock();
        for known_key in known_objects.known_keys() {
            let Some(object) = known_objects.known(&known_key) else {
                tracing::debug!(key = %known_key, "a known object vanished during resync");
                continue;
            };
            let key = match self.key_of(&object) {
                Ok(key) => key,
                Err(error) => {
                    tracing::debug!(%error, "a known object has no key during resync");
                    continue;
                }
            };
            if !state.has(&key) {
                state.push(key, Delta::Sync(object));
            }
        }
        drop(state);
        self.arrived.notify_waiters();
    }

    /// Notes that everything up to this resourceVersion has been queued: [`DeltaFifo::seen`] shows it once all of that is processed.
    pub fn mark(&self, resource_version: &str) {
        let mut state = self.state.lock();
        if let Some(passed) = state.seen.advanced(Version::new(resource_version)) {
            self.pass(passed);
        }
    }

    /// Notes that a whole list of this resourceVersion has been queued, which may be lower than what was marked before.
    pub(crate) fn mark_list(&self, resource_version: &str) {
        let mut state = self.state.lock();
        if let Some(passed) = state.seen.listed(Version::new(resource_version)) {
            self.pass(passed);
        }
    }

    /// Returns the last marked resourceVersion up to which everything has been processed, as it is and as it changes.
    /// Deltas that were put back count as processed.
    #[must_use]
    pub fn seen(&self) -> watch::Receiver<Option<Box<str>>> {
        let passed = self.passed.lock();
        self.seen.send_replace(passed.last().map(|last| last.text().into()));
        self.seen.subscribe()
    }

    /// Returns up to which resourceVersion everything has been processed, as it is and as it changes.
    pub(crate) fn watermark(&self) -> watch::Receiver<Watermark> {
        let passed = self.passed.lock();
        self.watermark.send_replace(passed.clone());
        self.watermark.subscribe()
    }

    /// Waits for the oldest key, removes it, and calls `process` with its deltas while the queue is locked.
    ///
    /// The flag says whether the queue had not synced when this pop began. Cancelling the wait loses nothing. A closed
    /// queue still hands out what it holds, then answers [`Closed`].
    pub async fn pop<F>(&self, process: F) -> Result<(), Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Processed,
    {
        self.pop_with(|key, deltas, is_in_initial_list| process(key, deltas, is_in_initial_list).into()).await
    }

    /// As [`DeltaFifo::pop`], but `process` says how many of the deltas, the oldest, it has dealt with. If these are not all the key is not
    /// popped: it stays at the head of the queue with the others, and what comes for it meanwhile follows them.
    pub(crate) async fn pop_some<F>(&self, process: F) -> Result<(), Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> usize,
    {
        self.pop_with(|key, deltas, is_in_initial_list| Dealt::With(process(key, deltas, is_in_initial_list)))
            .await
    }

    async fn pop_with<F>(&self, process: F) -> Result<(), Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Dealt,
    {
        let mut process = Some(process);
        loop {
            let arrived = self.arrived.notified();
            {
                let mut state = self.state.lock();
                if let Some(popped) = self.pop_locked(&mut state, &mut process) {
                    return popped;
                }
            }
            arrived.await;
        }
    }

    /// As [`DeltaFifo::pop`], but answers false at once when nothing is queued.
    pub fn try_pop<F>(&self, process: F) -> Result<bool, Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Processed,
    {
        self.try_pop_with(|key, deltas, is_in_initial_list| process(key, deltas, is_in_initial_list).into())
    }

    /// As [`DeltaFifo::pop_some`], but answers false at once when nothing is queued.
    pub(crate) fn try_pop_some<F>(&self, process: F) -> Result<bool, Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> usize,
    {
        self.try_pop_with(|key, deltas, is_in_initial_list| {
            Dealt::With(process(key, deltas, is_in_initial_list))
        })
    }

    fn try_pop_with<F>(&self, process: F) -> Result<bool, Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Dealt,
    {
        match self.pop_locked(&mut self.state.lock(), &mut Some(process)) {
            Some(popped) => popped.map(|()| true),
            None => Ok(false),
        }
    }

    /// Closes the queue. What it holds can still be popped; adding goes on being accepted.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_waiters();
    }

    /// Whether the first list, if there was one, has been processed whole. Sticky.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Returns a signal that turns true once the first list has been processed whole: after the last call of the process callback, not before.
    #[must_use]
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Returns how many keys are queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().len()
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key under which the queue has, or would have, an object.
    ///
    /// # Errors
    ///
    /// When the key function has none for it.
    pub fn key_of<'a>(&self, keyed: impl Into<Keyed<'a>>) -> Result<ObjectKey, KeyError> {
        self.config.key_function.key_of(keyed)
    }

    /// Returns the deltas queued for a key, for looking into the queue.
    #[must_use]
    pub fn queued(&self, key: &ObjectKey) -> Option<Deltas> {
        self.state.lock().deltas(key)
    }

    fn enqueue(&self, object: Object, delta: fn(Object) -> Delta) -> Result<(), Error> {
        let key = self.key_of(&object);
        let object = self.transform(object);
        let mut state = self.state.lock();
        self.populate(&mut state);
        state.push(key?, delta(object?));
        drop(state);
        self.arrived.notify_waiters();
        Ok(())
    }

    fn delete_key(&self, key: ObjectKey, object: DeltaObject) {
        let mut state = self.state.lock();
        self.populate(&mut state);
        let newest = match state.deltas(&key) {
            Some(deltas) => match deltas.newest() {
                Delta::Deleted(_) => None,
                newest => newest.last_known().cloned(),
            },
            None => match self.config.known_objects.as_ref().and_then(|known| known.known(&key)) {
                Some(known) => Some(known),
                None => return,
            },
        };
        if let (Some(newest), DeltaObject::Object(deleted)) = (newest, &object)
            && !newest.has_uid_of(deleted)
        {
            // It is another object of that name, created after the newest one had gone, and both were missed: three changes, since
            // nobody who knows the one should hear of the end of the other.
            let missed = Tombstone { key: key.clone(), object: Some(newest) };
            state.push(key.clone(), Delta::Deleted(DeltaObject::Tombstone(missed)));
            state.push(key.clone(), Delta::Added(deleted.clone()));
        }
        state.push(key, Delta::Deleted(object));
        drop(state);
        self.arrived.notify_waiters();
    }

    fn pass(&self, mark: Watermark) {
        let mut passed = self.passed.lock();
        if self.seen.receiver_count() > 0 {
            self.seen.send_replace(mark.last().map(|last| last.text().into()));
        }
        if self.watermark.receiver_count() > 0 {
            self.watermark.send_replace(mark.clone());
        }
        *passed = mark;
    }

    /// A queue that was populated by anything but a replace has no first list to wait for.
    fn populate(&self, state: &mut State) {
        if !state.populated {
            state.populated = true;
            self.synced.send_replace(true);
        }
    }

    pub(crate) fn transform(&self, object: Object) -> Result<Object, TransformError> {
        match self.transformer.get() {
            Some(transformer) => {
                let transformed = user_function::call(UserFunction::Transformer, object.key(), || {
                    transformer(object.clone())
                });
                Ok(transformed.map_err(|panic| TransformError(panic.into()))??.identified_as(&object))
            }
            None => Ok(object),
        }
    }

    /// Queues the deletion of what is queued or known but not listed; returns how many deletions that are.
    fn delete_unlisted(&self, state: &mut State, is_listed: impl Fn(&ObjectKey) -> bool) -> usize {
        let mut n_deleted = 0;
        let queued: Vec<_> = state.keys().filter(|key| !is_listed(key)).cloned().collect();
        for key in queued {
            // The newest queued state, never a tombstone within a tombstone.
            let object = state.deltas(&key).and_then(|deltas| deltas.newest().last_known().cloned());
            state.push(key.clone(), Delta::Deleted(DeltaObject::Tombstone(Tombstone { key, object })));
            n_deleted += 1;
        }
        let Some(known_objects) = &self.config.known_objects else { return n_deleted };
        for key in known_objects.known_keys() {
            if is_listed(&key) || state.has(&key) {
                continue;
            }
            let object = known_objects.known(&key);
            if object.is_none() {
                tracing::debug!(%key, "a known object vanished during replace");
            }
            state.push(key.clone(), Delta::Deleted(DeltaObject::Tombstone(Tombstone { key, object })));
            n_deleted += 1;
        }
        n_deleted
    }

    /// Pops one key, if there is one; `None` means that the caller has to wait.
    fn pop_locked<F>(&self, state: &mut State, process: &mut Option<F>) -> Option<Result<(), Closed>>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Dealt,
    {
        let Some((key, deltas)) = state.pop() else {
            return state.closed.then_some(Err(Closed));
        };
        let is_in_initial_list = !*self.synced.borrow();
        let trace = Trace::of(state.len());
        let process =
            process.take().map(|process| AssertUnwindSafe(|| process(&key, &deltas, is_in_initial_list)));
        let dealt = process.map(catch_unwind);
        trace.end(&key);
        match &dealt {
            Some(Ok(Dealt::Requeue)) => state.requeue(key, deltas),
            Some(Ok(Dealt::With(n_done))) => {
                if let Some(rest) = deltas.without(*n_done) {
                    state.put_back(key, rest);
                    return Some(Ok(()));
                }
            }
            Some(Err(_)) | None => {}
        }
        if let Some(passed) = state.seen.popped() {
            self.pass(passed);
        }
        state.shrink();
        if state.initial_population > 0 {
            state.initial_population -= 1;
            if state.initial_population == 0 {
                self.synced.send_replace(true);
            }
        }
        if let Some(Err(panic)) = dealt {
            // It is the caller's own. The queue, which others use, has gone on.
            resume_unwind(panic);
        }
        Some(Ok(()))
    }
}

// === impl Dealt ===

impl From<Processed> for Dealt {
    fn from(processed: Processed) -> Self {
        match processed {
            Processed::Done => Self::With(usize::MAX),
            Processed::Requeue => Self::Requeue,
        }
    }
}

#[cfg(test)]
mod tests;
