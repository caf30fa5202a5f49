//! Knowing when everything of an initial list has been handled, for those who hand it on to others.
//!
//! A listener does this by itself for what it delivered. Whoever passes the work on, to a work queue or to several workers, tells a
//! tracker of each piece instead, and asks the tracker.

use std::collections::HashSet;
use std::hash::Hash;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Tracks which keys are being worked on, by any number of workers.
///
/// It has synced once the source said that it has ([`AsyncTracker::upstream_has_synced`]) and every key that was started until then is
/// finished; from then on for ever.
pub struct AsyncTracker<K> {
    tracked: Tracked<HashSet<K>>,
}

/// Tracks how many pieces are being worked on, by one worker. Cheaper than an [`AsyncTracker`], and less forgiving.
#[derive(Default)]
pub struct SingleFileTracker {
    tracked: Tracked<u64>,
}

/// What both trackers are: some work, and a word when it is done.
struct Tracked<W> {
    state: Mutex<State<W>>,
    synced: watch::Sender<bool>,
}

#[derive(Default)]
struct State<W> {
    /// What was started and is not finished: the default when there is nothing.
    waiting: W,
    upstream_has_synced: bool,
}

// === impl AsyncTracker ===

impl<K: Eq + Hash> Default for AsyncTracker<K> {
    fn default() -> Self {
        Self { tracked: Tracked::default() }
    }
}

impl<K: Eq + Hash> AsyncTracker<K> {
    /// Makes a tracker that has not synced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a key of the initial list is to be worked on. To be called before the source says that it has synced.
    pub fn start(&self, key: K) {
        self.tracked.change(|state| {
            state.waiting.insert(key);
        });
    }

    /// Notes that the work on a key is done. Harmless for one that was not started.
    pub fn finished(&self, key: &K) {
        self.tracked.change(|state| {
            state.waiting.remove(key);
        });
    }

    /// Notes that the source has synced: every key of the initial list has been started.
    pub fn upstream_has_synced(&self) {
        self.tracked.change(|state| state.upstream_has_synced = true);
    }

    /// Whether everything of the initial list is done.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.tracked.synced.borrow()
    }

    /// Returns [`AsyncTracker::has_synced`] as it is and as it changes.
    #[must_use]
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.tracked.synced.subscribe()
    }
}

// === impl SingleFileTracker ===

impl SingleFileTracker {
    /// Makes a tracker that has not synced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a piece of the initial list is to be worked on. To be called before the source says that it has synced.
    pub fn start(&self) {
        self.tracked.change(|state| state.waiting += 1);
    }

    /// Notes that a piece is done.
    ///
    /// # Panics
    ///
    /// When more is finished than was started: whoever counts wrong would be told that all is done when it is not.
    pub fn finished(&self) {
        self.tracked.change(|state| {
            assert!(state.waiting > 0, "more was finished than was started, so has_synced would lie");
            state.waiting -= 1;
        });
    }

    /// Notes that the source has synced: every piece of the initial list has been started.
    pub fn upstream_has_synced(&self) {
        self.tracked.change(|state| state.upstream_has_synced = true);
    }

    /// Whether everything of the initial list is done.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.tracked.synced.borrow()
    }

    /// Returns [`SingleFileTracker::has_synced`] as it is and as it changes.
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
    fn change(&self, change: impl FnOnce(&mut State<W>)) {
        let mut state = self.state.lock();
        change(&mut state);
        if state.upstream_has_synced && state.waiting == W::default() {
            self.synced.send_replace(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may happen, in the six orders in which it can (a piece is started before it is finished, or not at all).
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

    /// The counter's part of 28.1, which is all of 28.4.
    // Conformance: 28.1, 28.4
    #[test]
    fn single_file_tracker_basic_logic() {
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

    /// The key set's part.
    // Conformance: 28.1
    #[test]
    fn async_tracker_basic_logic() {
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
    async fn async_tracker_takes_many_workers() {
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
    fn counting_below_zero_is_a_panic_sy_02() {
        SingleFileTracker::new().finished();
    }
}
