//! Trackers of the initial list, for consumers that pass the work to others (client-go: `synctrack`).
//!
//! A listener itself tracks the notifications that it delivered. A consumer that passes the work to a work
//! queue or to several workers records the start and the end of each piece in a tracker instead.

use std::collections::HashSet;
use std::hash::Hash;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Tracks the keys in progress, for any number of workers.
///
/// It has synced once the source has synced ([`AsyncTracker::upstream_has_synced`]) and every key that was
/// started until then is finished. It stays synced.
pub struct AsyncTracker<K> {
    tracked: Tracked<HashSet<K>>,
}

/// Counts the pieces in progress, for one worker. It costs less than an [`AsyncTracker`], and panics on a
/// wrong count.
#[derive(Default)]
pub struct SingleFileTracker {
    tracked: Tracked<u64>,
}

/// The common part of both trackers: the unfinished work, and a signal when it is done.
struct Tracked<W> {
    state: Mutex<TrackedState<W>>,
    synced: watch::Sender<bool>,
}

#[derive(Default)]
struct TrackedState<W> {
    /// The unfinished work; the default value when there is none.
    unfinished: W,
    upstream_has_synced: bool,
}

// === impl AsyncTracker ===

impl<K: Eq + Hash> Default for AsyncTracker<K> {
    fn default() -> Self {
        Self { tracked: Tracked::default() }
    }
}

impl<K: Eq + Hash> AsyncTracker<K> {
    /// Returns a tracker that has not synced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the start of a key of the initial list. Must be called before
    /// [`upstream_has_synced`](Self::upstream_has_synced).
    pub fn start(&self, key: K) {
        self.tracked.change(|state| {
            state.unfinished.insert(key);
        });
    }

    /// Records the end of a key. Ignores a key that was not started.
    pub fn finished(&self, key: &K) {
        self.tracked.change(|state| {
            state.unfinished.remove(key);
        });
    }

    /// Records that the source has synced: every key of the initial list has been started.
    pub fn upstream_has_synced(&self) {
        self.tracked.change(|state| state.upstream_has_synced = true);
    }

    /// Returns true if the whole initial list is finished.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.tracked.synced.borrow()
    }

    /// Returns a receiver of [`AsyncTracker::has_synced`] and its changes.
    #[must_use]
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.tracked.synced.subscribe()
    }
}

// === impl SingleFileTracker ===

impl SingleFileTracker {
    /// Returns a tracker that has not synced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the start of a piece of the initial list. Must be called before
    /// [`upstream_has_synced`](Self::upstream_has_synced).
    pub fn start(&self) {
        self.tracked.change(|state| state.unfinished += 1);
    }

    /// Records the end of a piece.
    ///
    /// # Panics
    ///
    /// When more pieces are finished than were started: the tracker would report too early that it has
    /// synced.
    pub fn finished(&self) {
        self.tracked.change(|state| {
            assert!(state.unfinished > 0, "more was finished than was started, so has_synced would lie");
            state.unfinished -= 1;
        });
    }

    /// Records that the source has synced: every piece of the initial list has been started.
    pub fn upstream_has_synced(&self) {
        self.tracked.change(|state| state.upstream_has_synced = true);
    }

    /// Returns true if the whole initial list is finished.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.tracked.synced.borrow()
    }

    /// Returns a receiver of [`SingleFileTracker::has_synced`] and its changes.
    #[must_use]
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.tracked.synced.subscribe()
    }
}

// === impl Tracked ===

impl<W: Default> Default for Tracked<W> {
    fn default() -> Self {
        Self { state: Mutex::default(), synced: watch::channel(false).0 }
    }
}

impl<W: Default + PartialEq> Tracked<W> {
    fn change(&self, change: impl FnOnce(&mut TrackedState<W>)) {
        let mut state = self.state.lock();
        change(&mut state);
        if state.upstream_has_synced && state.unfinished == W::default() {
            self.synced.send_replace(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The six possible orders of the steps, and whether the tracker has synced after them.
    const ORDERS: [(&[Step], bool); 6] = [
        (&[], false),
        (&[Step::Upstream], true),
        (&[Step::Start, Step::Finish], false),
        (&[Step::Start, Step::Upstream], false),
        (&[Step::Start, Step::Finish, Step::Upstream], true),
        (&[Step::Start, Step::Upstream, Step::Finish], true),
    ];

    #[derive(Clone, Copy)]
    enum Step {
        Start,
        Finish,
        Upstream,
    }

    /// The part of 28.1 about counters, and 28.4.
    // Conformance: 28.1, 28.4
    #[test]
    fn a_single_file_tracker_has_synced_when_source_and_work_are_done_sy_02() {
        for (order, (steps, expected)) in ORDERS.iter().enumerate() {
            let tracker = SingleFileTracker::new();
            for step in *steps {
                assert!(!tracker.has_synced(), "order {order}");
                match step {
                    Step::Start => tracker.start(),
                    Step::Finish => tracker.finished(),
                    Step::Upstream => tracker.upstream_has_synced(),
                }
            }
            assert_eq!((tracker.has_synced(), *tracker.synced().borrow()), (*expected, *expected), "{order}");
        }
    }

    /// The part of 28.1 about key sets.
    // Conformance: 28.1
    #[test]
    fn an_async_tracker_has_synced_when_source_and_keys_are_done_sy_01() {
        for (order, (steps, expected)) in ORDERS.iter().enumerate() {
            let tracker = AsyncTracker::new();
            for step in *steps {
                assert!(!tracker.has_synced(), "order {order}");
                match step {
                    Step::Start => tracker.start("key"),
                    Step::Finish => tracker.finished(&"key"),
                    Step::Upstream => tracker.upstream_has_synced(),
                }
            }
            assert_eq!((tracker.has_synced(), *tracker.synced().borrow()), (*expected, *expected), "{order}");
        }
    }

    // Conformance: 28.2
    #[tokio::test]
    async fn an_async_tracker_takes_many_workers_sy_01() {
        let tracker = AsyncTracker::new();
        tracker.finished(&0);
        std::thread::scope(|scope| {
            for key in 0..11 {
                let tracker = &tracker;
                tracker.start(key);
                scope.spawn(move || tracker.finished(&key));
            }
        });
        assert!(!tracker.has_synced());
        tracker.upstream_has_synced();
        assert!(tracker.has_synced());
        assert!(tracker.synced().wait_for(|has_synced| *has_synced).await.is_ok());
    }

    #[test]
    #[should_panic(expected = "more was finished than was started")]
    fn a_single_file_tracker_panics_below_zero_sy_02() {
        SingleFileTracker::new().finished();
    }
}
