//! What the last runs of `reconcile` read through the listers that wake: the keys to queue again when an
//! object changes.
//!
//! One [`ReadSets`] belongs to a plugin, not to one of its generations. A read is registered before it is
//! made, so that no change falls between the two. A run that fails adds its reads to those of the runs
//! before; a run that succeeds replaces them. A key that leaves the work queue keeps its reads. A run that
//! goes on after a switch may read through a lister that is not there any more: its key is queued again, for
//! the version that serves.
//!
//! **Bounds.** A key has at most [`MOST_READS`] reads, a lister [`MOST_SELECTORS`](lister::MOST_SELECTORS)
//! selectors in one namespace, and the plugin's account a share for all of them. A key that reads more is
//! queued at every change of the lister. When the share is full, the host first forgets the keys whose last
//! run found nothing, such as those of deleted objects. Then it forgets what other keys read, and queues
//! them at every change. Both begin with the oldest run. When no room is left even so, a read fails.

mod lister;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_informer::Notification;
use oarlock_informer::indexer::IndexSource;
use oarlock_informer::object::ObjectKey;
use oarlock_label_selector::LabelSelector;
use oarlock_plugin::contract::Error;
use oarlock_plugin::guest::host_bytes::Charge;
use parking_lot::Mutex;

use self::lister::Lister;
use super::queue::Key;

/// The most reads of one run that are remembered, and half of those of one key: a run that fails adds to
/// those of the runs before. The contract states it, too.
const MOST_READS: usize = 256;

/// The bytes for reads. The rest of the account's share is for the keys that any change wakes.
const MOST_BYTES: usize = 12 << 20;

/// About how many bytes a read of a key takes beside its texts.
const READ_COST: usize = 320;

/// About how many bytes a key takes that has reads, or is woken by any change of a lister.
const KEY_COST: usize = 256;

/// The read sets of one plugin. Clones are handles on the same sets.
#[derive(Clone, Default)]
pub(crate) struct ReadSets {
    state: Arc<Mutex<State>>,
}

/// One read through a lister that wakes. A namespace of `None` stands for all that the account may read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Read {
    /// An object, or its absence.
    Object(ObjectKey),
    /// The objects that a selector matches.
    Selector { namespace: Option<Box<str>>, selector: LabelSelector, n_bytes: usize },
    /// The objects with a value of an index.
    Value { namespace: Option<Box<str>>, index: Arc<str>, value: Box<str> },
    /// All values of an index.
    Values { index: Arc<str> },
}

/// A lister that wakes, as a generation declares it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WakingLister {
    pub(crate) name: Arc<str>,
    pub(crate) indices: Vec<(Arc<str>, IndexSource)>,
}

/// One run of `reconcile`. A run that is dropped without [`Run::succeeded`] failed.
pub(crate) struct Run {
    sets: ReadSets,
    key: Key,
    number: u64,
    /// The generation that makes it.
    generation: u64,
    /// It has read what no lister of the plugin follows.
    is_unfollowed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The generation that serves.
    generation: u64,
    listers: HashMap<Arc<str>, Lister>,
    keys: HashMap<Key, ReadSet>,
    /// The keys whose last run found nothing, by the number of that run.
    found_nothing: BTreeMap<u64, Key>,
    /// The keys with reads, by the number of their last run.
    with_reads: BTreeMap<u64, Key>,
    n_runs: u64,
    /// The keys that are to be queued.
    due: HashSet<Key>,
    n_bytes: usize,
    charge: Option<Charge>,
}

/// What the last runs for a key read, each with the number of the last run that did.
#[derive(Default)]
struct ReadSet {
    last_run: u64,
    has_found: bool,
    /// How many reads the last run made.
    n_in_last_run: usize,
    reads: HashMap<(Arc<str>, Arc<Read>), u64>,
    any: HashMap<Arc<str>, u64>,
}

// === impl ReadSets ===

impl ReadSets {
    /// Charges the read sets to the plugin's account.
    pub(super) fn charged(self, charge: Option<Charge>) -> Self {
        self.state.lock().charge = charge;
        self
    }

    /// Returns how many keys any change of a lister wakes.
    pub(super) fn n_any(&self) -> u64 {
        self.state.lock().listers.values().map(|lister| lister.any.len() as u64).sum()
    }

    /// Begins a run for a key, which a generation makes.
    pub(crate) fn begin(&self, key: Key, generation: u64) -> Run {
        let mut state = self.state.lock();
        state.n_runs += 1;
        let number = state.n_runs;
        Run { sets: self.clone(), key, number, generation, is_unfollowed: AtomicBool::new(false) }
    }

    /// Serves another generation. The reads through a lister that `keeps` names, and that has the same
    /// indices, stay. The keys with other reads are queued once, since no listener followed these meanwhile.
    pub(super) fn serve(
        &self,
        generation: u64,
        listers: Vec<WakingLister>,
        keeps: impl Fn(&WakingLister) -> bool,
    ) {
        let mut state = self.state.lock();
        state.generation = generation;
        let mut before = mem::take(&mut state.listers);
        for declared in listers {
            let kept = before.remove(&declared.name).filter(|it| it.declared == declared && keeps(&declared));
            let dropped = kept.is_none();
            let lister = kept.unwrap_or_else(|| Lister::new(declared.clone(), generation));
            if dropped {
                state.forget_lister(&declared.name);
            }
            state.listers.insert(declared.name, lister);
        }
        for name in before.into_keys() {
            state.forget_lister(&name);
        }
    }

    /// Finds the keys that a change of an object wakes.
    pub(super) fn changed(&self, lister: &str, notification: &Notification) {
        let mut state = self.state.lock();
        let State { listers, due, .. } = &mut *state;
        if let Some(lister) = listers.get(lister) {
            lister.changed(notification, due);
        }
    }

    /// Wakes all keys that read through a lister: its changes may have been missed, or merged into nothing.
    pub(super) fn changed_somehow(&self, lister: &str) {
        let mut state = self.state.lock();
        let State { listers, due, .. } = &mut *state;
        if let Some(lister) = listers.get(lister) {
            due.extend(lister.readers.values().flatten().chain(&lister.any).cloned());
        }
    }

    /// Takes at most so many of the keys that are to be queued. Returns them, and whether there are more.
    pub(super) fn take_due(&self, most: usize) -> (Vec<Key>, bool) {
        let due = &mut self.state.lock().due;
        let keys: Vec<_> = due.iter().take(most).cloned().collect();
        if keys.len() == due.len() {
            // Frees the memory, too.
            *due = HashSet::new();
        } else {
            keys.iter().for_each(|key| _ = due.remove(key));
        }
        (keys, !due.is_empty())
    }

    /// Gives back keys that could not be queued.
    pub(super) fn put_back(&self, keys: impl IntoIterator<Item = Key>) {
        self.state.lock().due.extend(keys);
    }
}

// === impl Run ===

impl Run {
    /// Registers a read. To be called before the read is made.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] if the account has no room for the key. The read must not be made then: its
    /// change would not wake the key.
    pub(crate) fn reads(&self, lister: &str, read: Read) -> Result<(), Error> {
        let mut state = self.sets.state.lock();
        if !state.follows(lister, self.generation) {
            self.is_unfollowed.store(true, Ordering::Relaxed);
            return Ok(());
        }
        state.register(&self.key, self.number, lister, read)
    }

    /// Notes that a read found something.
    pub(crate) fn found(&self) {
        if let Some(set) = self.sets.state.lock().keys.get_mut(&self.key) {
            set.has_found = true;
        }
    }

    /// Ends the run with success: its reads replace those of the runs before. A key whose run fails is tried
    /// again in any case.
    pub(crate) fn succeeded(&self) {
        let mut state = self.sets.state.lock();
        state.forget_other_runs(&self.key, self.number);
        if self.is_unfollowed.load(Ordering::Relaxed) {
            state.due.insert(self.key.clone());
        }
    }
}

// === impl State ===

impl State {
    /// Returns whether changes of what a generation reads through its lister reach the lister of this name.
    /// The one of a later generation may follow other objects, and began to follow them later.
    fn follows(&self, lister: &str, generation: u64) -> bool {
        let was_there_before = |it: &Lister| it.since <= generation;
        generation == self.generation || self.listers.get(lister).is_some_and(was_there_before)
    }

    fn register(&mut self, key: &Key, run: u64, lister: &str, read: Read) -> Result<(), Error> {
        let Some(of_lister) = self.listers.get(lister) else { return Ok(()) };
        let lister = of_lister.declared.name.clone();
        if !self.keys.contains_key(key) {
            self.make_room(KEY_COST + key.n_bytes())?;
            self.keys.insert(key.clone(), ReadSet::default());
        }
        let Some(set) = self.keys.get_mut(key) else { return Ok(()) };
        if set.last_run != run {
            self.found_nothing.remove(&set.last_run);
            if self.with_reads.remove(&set.last_run).is_some() {
                self.with_reads.insert(run, key.clone());
            }
            set.last_run = run;
            set.has_found = false;
            set.n_in_last_run = 0;
        }
        if let Some(any) = set.any.get_mut(&lister)
            && *any == run
        {
            return Ok(());
        }
        let read = Arc::new(read);
        if let Some(last) = set.reads.get_mut(&(lister.clone(), read.clone())) {
            let is_again = mem::replace(last, run) == run;
            set.n_in_last_run += usize::from(!is_again);
            return Ok(());
        }
        let has_room_in_set = set.n_in_last_run < MOST_READS && set.reads.len() < 2 * MOST_READS;
        let has_room = has_room_in_set && self.listers[&lister].has_room_for(&read);
        if has_room && self.grow(READ_COST + read.n_bytes(), MOST_BYTES) {
            let (Some(set), Some(of_lister)) = (self.keys.get_mut(key), self.listers.get_mut(&lister)) else {
                return Ok(());
            };
            of_lister.add(&read, key);
            set.reads.insert((lister, read), run);
            set.n_in_last_run += 1;
            self.with_reads.insert(run, key.clone());
            return Ok(());
        }
        let is_new = self.keys.get(key).is_some_and(|set| !set.any.contains_key(&lister));
        if is_new && let Err(error) = self.make_room(KEY_COST) {
            // Forgets the key if it has nothing else.
            self.forget_if(key, |_| false);
            return Err(error);
        }
        let (Some(set), Some(of_lister)) = (self.keys.get_mut(key), self.listers.get_mut(&lister)) else {
            return Ok(());
        };
        of_lister.any.insert(key.clone());
        let was_added = set.any.insert(lister, run).is_some();
        if is_new && was_added {
            // The room came from the reads of this key itself.
            self.shrink(KEY_COST);
        }
        Ok(())
    }

    /// Charges bytes. To make room, it forgets what the keys with the oldest runs read: any change wakes them
    /// then.
    fn make_room(&mut self, n_bytes: usize) -> Result<(), Error> {
        while !self.grow(n_bytes, usize::MAX) {
            let Some((_, key)) = self.with_reads.pop_first() else {
                return Err(Error::LimitExceeded(
                    "the keys of the plugin read more through listers that wake than the host remembers; \
                     read through a lister that does not wake"
                        .to_owned(),
                ));
            };
            self.forget_reads(&key);
        }
        Ok(())
    }

    /// Forgets what a key read. Any change of these listers wakes it. A read takes more room than that.
    fn forget_reads(&mut self, key: &Key) {
        let Some(set) = self.keys.get_mut(key) else { return };
        let mut freed = 0;
        for ((name, read), run) in mem::take(&mut set.reads) {
            freed += READ_COST + read.n_bytes();
            let Some(lister) = self.listers.get_mut(&name) else { continue };
            lister.remove(&read, key);
            if lister.any.insert(key.clone()) {
                freed -= KEY_COST;
            }
            let last = set.any.entry(name).or_default();
            *last = run.max(*last);
        }
        self.shrink(freed);
    }

    /// Charges bytes, if no more than `most` are charged then. Forgets keys whose last run found nothing to
    /// make room.
    fn grow(&mut self, n_bytes: usize, most: usize) -> bool {
        loop {
            let charge = self.charge.as_mut();
            let fits = self.n_bytes + n_bytes <= most && charge.is_none_or(|it| it.grow(n_bytes).is_ok());
            if fits {
                self.n_bytes += n_bytes;
                return true;
            }
            let Some((_, key)) = self.found_nothing.pop_first() else { return false };
            self.forget_if(&key, |_| true);
        }
    }

    fn shrink(&mut self, n_bytes: usize) {
        self.n_bytes -= n_bytes;
        if let Some(charge) = &mut self.charge {
            charge.shrink(n_bytes);
        }
    }

    fn forget_other_runs(&mut self, key: &Key, run: u64) {
        self.forget_if(key, |last| last != run);
        match self.keys.get(key) {
            Some(set) if !set.has_found && set.last_run == run => {
                self.found_nothing.insert(run, key.clone());
            }
            _ => {}
        }
    }

    /// Forgets the reads of a key whose last run satisfies the predicate, and the key when none is left.
    fn forget_if(&mut self, key: &Key, is_it: impl Fn(u64) -> bool) {
        let Some(mut set) = self.keys.remove(key) else { return };
        let mut freed = 0;
        for ((lister, read), _) in set.reads.extract_if(|_, last| is_it(*last)) {
            freed += READ_COST + read.n_bytes();
            if let Some(lister) = self.listers.get_mut(&lister) {
                lister.remove(&read, key);
            }
        }
        for (lister, _) in set.any.extract_if(|_, last| is_it(*last)) {
            freed += KEY_COST;
            if let Some(lister) = self.listers.get_mut(&lister) {
                lister.any.remove(key);
            }
        }
        if set.reads.is_empty() {
            self.with_reads.remove(&set.last_run);
        }
        if set.is_empty() {
            freed += KEY_COST + key.n_bytes();
            self.found_nothing.remove(&set.last_run);
        } else {
            self.keys.insert(key.clone(), set);
        }
        self.shrink(freed);
    }

    /// Forgets the reads through a lister, which is gone already. Its readers are due.
    fn forget_lister(&mut self, name: &Arc<str>) {
        let mut freed = 0;
        let State { keys, due, found_nothing, with_reads, .. } = self;
        keys.retain(|key, set| {
            let before = freed;
            for ((_, read), _) in set.reads.extract_if(|(lister, _), _| lister == name) {
                freed += READ_COST + read.n_bytes();
            }
            if set.any.remove(name).is_some() {
                freed += KEY_COST;
            }
            if freed == before {
                return true;
            }
            due.insert(key.clone());
            if set.reads.is_empty() {
                with_reads.remove(&set.last_run);
            }
            if set.is_empty() {
                freed += KEY_COST + key.n_bytes();
                found_nothing.remove(&set.last_run);
            }
            !set.is_empty()
        });
        self.shrink(freed);
    }
}

// === impl ReadSet ===

impl ReadSet {
    fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.any.is_empty()
    }
}

// === impl Read ===

impl Read {
    /// Returns the length of its texts.
    fn n_bytes(&self) -> usize {
        let of = |namespace: &Option<Box<str>>| namespace.as_ref().map_or(0, |it| it.len());
        match self {
            Self::Object(key) => key.namespace().len() + key.name().len(),
            // A parsed selector takes about four times its text.
            Self::Selector { namespace, n_bytes, .. } => of(namespace) + 4 * n_bytes,
            Self::Value { namespace, value, .. } => of(namespace) + value.len(),
            Self::Values { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests;
