//! The status of a reflector, and its publication.
//!
//! The reflector counts events with plain atomic stores: an event takes no lock, wakes no task and reads no
//! clock of its own. Only a change of the phase wakes waiters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::undecodable::UndecodableObjects;
use crate::names::ObjectKey;
use crate::resource_version::Version;

/// The status of a reflector at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectorStatus {
    /// The current phase.
    pub phase: Phase,
    /// When the API server last sent something: an answer, an object or a bookmark. While events arrive
    /// without a pause, the time may be up to 64 events old.
    pub last_sign_of_life: Option<Instant>,
    /// The last failure, if any. It stays after the reflector has recovered.
    pub last_error: Option<Failure>,
    /// The number of whole lists that the store accepted, streamed lists included. All but the first are
    /// relists.
    pub n_lists: u64,
    /// The number of these lists that were streamed as the initial events of a watch.
    pub n_streamed: u64,
    /// The number of watches that the server accepted.
    pub n_watches: u64,
    /// The number of `ADDED`, `MODIFIED` and `DELETED` events that the reflector passed to the store.
    pub n_events: u64,
    /// The number of bookmarks that the reflector received.
    pub n_bookmarks: u64,
    /// The number of watches that the reflector closed because they were silent for too long.
    pub n_silences: u64,
    /// The number of events with an object that cannot be decoded.
    pub n_undecodable_events: u64,
    /// The number of objects of the server that cannot be decoded. The store keeps the last decodable state
    /// of each.
    pub n_undecodable: usize,
    /// The first of these objects.
    pub undecodable: Arc<[UndecodableObject]>,
    /// The last version that the reflector saw; empty before the first list.
    pub resource_version: String,
}

/// An object that the server has and that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecodableObject {
    /// Its namespace and name, if these can be read.
    pub key: Option<ObjectKey>,
    /// Why it cannot be decoded.
    pub message: String,
}

/// The phase of a reflector. `Absent`, `Forbidden` and `Failing` stay during retries, until a watch succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The reflector does not run yet.
    Waiting,
    /// The reflector lists.
    Listing,
    /// The reflector has a list and watches for changes.
    Watching,
    /// The API server does not serve the resource: not yet, or not any more (RL-72).
    Absent,
    /// The API server does not permit the host to list or watch the resource.
    Forbidden,
    /// Another failure.
    Failing {
        /// The failure with its causes.
        message: String,
    },
}

/// A failure of a reflector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The failure with its causes.
    pub message: String,
    /// When it happened.
    pub at: Instant,
}

/// Stores the status of one reflector: the reflector writes, every task may read.
#[derive(Debug)]
pub(crate) struct StatusPublisher {
    phase: watch::Sender<Phase>,
    details: Mutex<Details>,
    pub(super) counters: Counters,
    resource_version: PublishedVersion,
    created_at: Instant,
    /// Nanoseconds between `created_at` and the last sign of life, plus 1; 0 before the first.
    last_sign_of_life: AtomicU64,
}

/// The parts of the status that change at lists and failures only.
#[derive(Debug, Default)]
struct Details {
    last_error: Option<Failure>,
    n_undecodable: usize,
    undecodable: Arc<[UndecodableObject]>,
}

/// See the fields of the same names in [`ReflectorStatus`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) n_lists: Counter,
    pub(super) n_streamed: Counter,
    pub(super) n_watches: Counter,
    pub(super) n_events: Counter,
    pub(super) n_bookmarks: Counter,
    pub(super) n_silences: Counter,
    pub(super) n_undecodable_events: Counter,
}

/// A counter with one writer, the reflector.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

/// A version with one writer, the reflector.
#[derive(Debug, Default)]
struct PublishedVersion {
    /// The version as a number; 0 if it is in `text`.
    number: AtomicU64,
    text: Mutex<Box<str>>,
}

// === impl StatusPublisher ===

impl StatusPublisher {
    /// Returns the status of a reflector that does not run yet.
    pub(crate) fn new() -> Self {
        Self {
            phase: watch::channel(Phase::Waiting).0,
            details: Mutex::default(),
            counters: Counters::default(),
            resource_version: PublishedVersion::default(),
            created_at: Instant::now(),
            last_sign_of_life: AtomicU64::new(0),
        }
    }

    /// Returns the status at this moment. Its fields are read one after another, not in one critical section.
    pub(crate) fn snapshot(&self) -> ReflectorStatus {
        let phase = self.phase.borrow().clone();
        let (last_error, n_undecodable, undecodable) = {
            let details = self.details.lock();
            (details.last_error.clone(), details.n_undecodable, details.undecodable.clone())
        };
        let counters = &self.counters;
        ReflectorStatus {
            phase,
            last_sign_of_life: self.last_sign_of_life(),
            last_error,
            n_lists: counters.n_lists.get(),
            n_streamed: counters.n_streamed.get(),
            n_watches: counters.n_watches.get(),
            n_events: counters.n_events.get(),
            n_bookmarks: counters.n_bookmarks.get(),
            n_silences: counters.n_silences.get(),
            n_undecodable_events: counters.n_undecodable_events.get(),
            n_undecodable,
            undecodable,
            resource_version: self.resource_version(),
        }
    }

    /// Returns the phase. A receiver is woken when the phase becomes another one.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Returns the last version that the reflector saw.
    pub(crate) fn resource_version(&self) -> String {
        self.resource_version.get()
    }

    pub(super) fn last_sign_of_life(&self) -> Option<Instant> {
        let nanos = self.last_sign_of_life.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.created_at + std::time::Duration::from_nanos(nanos))
    }

    /// Notes that the server sent something just now.
    pub(super) fn note_sign_of_life(&self) {
        let nanos = self.created_at.elapsed().as_nanos() as u64;
        self.last_sign_of_life.store(nanos.saturating_add(1), Ordering::Relaxed);
    }

    pub(super) fn set_resource_version(&self, version: &Version) {
        self.resource_version.set(version);
    }

    /// Notes that a list begins. During retries the phase stays the one of the failure.
    pub(super) fn list_begins(&self) {
        self.phase.send_if_modified(|phase| {
            let is_first_try = matches!(phase, Phase::Waiting | Phase::Watching);
            if is_first_try {
                *phase = Phase::Listing;
            }
            is_first_try
        });
    }

    /// Notes that the server has accepted a watch.
    pub(super) fn watch_begins(&self) {
        self.counters.n_watches.increment();
        self.note_sign_of_life();
    }

    /// Notes that the reflector has a whole list and a watch.
    pub(super) fn watching(&self) {
        self.set_phase(Phase::Watching);
    }

    /// Notes which objects of the server cannot be decoded.
    pub(super) fn set_undecodable(&self, objects: &UndecodableObjects) {
        let mut details = self.details.lock();
        if details.n_undecodable != 0 || !objects.is_empty() {
            details.n_undecodable = objects.len();
            details.undecodable = objects.shown();
        }
    }

    /// Notes a failure, and the phase that it leads to.
    pub(super) fn failed(&self, phase: Phase, message: String) {
        // First, so that a task that the phase wakes sees the failure.
        self.details.lock().last_error = Some(Failure { message, at: Instant::now() });
        self.set_phase(phase);
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.send_if_modified(|current| {
            let is_another = *current != phase;
            *current = phase;
            is_another
        });
    }
}

// === impl Counter ===

impl Counter {
    pub(super) fn increment(&self) {
        // Not `fetch_add`: only the reflector writes, so no increment can be lost.
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl PublishedVersion ===

impl PublishedVersion {
    fn get(&self) -> String {
        match self.number.load(Ordering::Acquire) {
            0 => self.text.lock().to_string(),
            number => number.to_string(),
        }
    }

    fn set(&self, version: &Version) {
        match version {
            Version::Number(number @ 1..) => self.number.store(*number, Ordering::Release),
            other => {
                *self.text.lock() = (*other.text()).into();
                self.number.store(0, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_version_is_the_last_one_as_number_or_text() {
        let published = PublishedVersion::default();
        assert_eq!(published.get(), "");
        for text in ["7", "abc", "18446744073709551615", "0", "007", "8", "", "36893488147419103232"] {
            published.set(&Version::new(text));
            assert_eq!(published.get(), text);
        }
    }
}
