//! Follows what was queued until it is processed.

use std::collections::VecDeque;

use super::watermark::Watermark;
use crate::reflector::SourceGeneration;
use crate::resource_version::Version;

/// A deque of marks that is empty keeps room for no more than this many.
const MAX_IDLE_CAPACITY: usize = 256;

/// Answers "has this been processed?" for versions, lists and sources alike.
///
/// A mark that is set while *n* keys have ever been queued is reached once *n* keys have been popped. Keys
/// leave the queue in the order in which they entered it, so everything that was queued before the mark is
/// processed by then: a change that joins an older key is popped with that key.
#[derive(Debug, Default)]
pub(super) struct ProgressTracker {
    /// How many keys were ever queued.
    n_pushed: u64,
    /// How many keys were ever popped.
    n_popped: u64,
    /// The source that the reflector reads.
    source_generation: SourceGeneration,
    /// The watermark once everything that is queued is processed.
    queued: Watermark,
    /// The marks that are not reached: `n_pushed` when each was set, rising, and the watermark once it is
    /// reached.
    marks: VecDeque<(u64, Watermark)>,
}

// === impl ProgressTracker ===

impl ProgressTracker {
    /// Returns whether the queue was populated: by a list, or by a change before any list.
    pub(super) fn is_populated(&self) -> bool {
        self.queued.has_synced()
    }

    /// Records that the reflector reads another source from now on.
    pub(super) fn source_changed(&mut self, generation: SourceGeneration) {
        self.source_generation = generation;
    }

    /// Records that a list was queued. Returns the watermark if it is reached at once, as with all marks.
    #[must_use]
    pub(super) fn list_queued(&mut self, resource_version: Option<Version>) -> Option<Watermark> {
        self.queued.sync();
        if let Some(resource_version) = resource_version {
            self.queued.list(resource_version, self.source_generation);
        }
        self.mark()
    }

    /// Records that everything up to a version was queued.
    #[must_use]
    pub(super) fn version_queued(&mut self, resource_version: Version) -> Option<Watermark> {
        self.queued.advance(resource_version);
        self.mark()
    }

    /// Records that a change came before any list: then the queue waits for no first list, and counts as
    /// synced.
    pub(super) fn populated_without_list(&mut self) {
        self.queued.sync();
        self.marks.iter_mut().for_each(|(_, mark)| mark.sync());
    }

    pub(super) fn pushed(&mut self, n_keys: usize) {
        self.n_pushed += n_keys as u64;
    }

    /// Records that the oldest key was processed. Returns the watermark if that reached a mark.
    #[must_use]
    pub(super) fn popped(&mut self) -> Option<Watermark> {
        self.n_popped += 1;
        let mut reached = None;
        while self.marks.front().is_some_and(|(position, _)| *position <= self.n_popped) {
            reached = self.marks.pop_front().map(|(_, mark)| mark);
        }
        if self.marks.is_empty() && self.marks.capacity() > MAX_IDLE_CAPACITY {
            self.marks.shrink_to(0);
        }
        reached
    }

    fn mark(&mut self) -> Option<Watermark> {
        if self.n_pushed == self.n_popped {
            return Some(self.queued.clone());
        }
        match self.marks.back_mut() {
            Some((position, mark)) if *position == self.n_pushed => mark.clone_from(&self.queued),
            _ => self.marks.push_back((self.n_pushed, self.queued.clone())),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(mark: Option<&Watermark>) -> Option<String> {
        Some(mark?.resource_version()?.to_owned())
    }

    #[test]
    fn a_mark_is_reached_when_all_keys_before_it_are_popped() {
        let mut tracker = ProgressTracker::default();
        tracker.pushed(1);
        assert_eq!(tracker.version_queued(Version::new("1")), None);
        tracker.pushed(1);
        assert_eq!(tracker.version_queued(Version::new("2")), None);
        // This change joins a key that is queued already.
        assert_eq!(tracker.version_queued(Version::new("3")), None);
        assert_eq!(text(tracker.popped().as_ref()).as_deref(), Some("1"));
        assert_eq!(text(tracker.popped().as_ref()).as_deref(), Some("3"));
    }

    #[test]
    fn a_mark_on_an_empty_queue_is_reached_at_once() {
        let reached = ProgressTracker::default().list_queued(Some(Version::new("9")));
        assert_eq!(text(reached.as_ref()).as_deref(), Some("9"));
    }

    #[test]
    fn a_source_generation_is_reached_with_the_first_list_of_that_source() {
        let mut tracker = ProgressTracker::default();
        tracker.pushed(2);
        assert_eq!(tracker.list_queued(Some(Version::new("5"))), None);
        tracker.source_changed(3.into());
        assert_eq!(tracker.version_queued(Version::new("6")), None);
        assert_eq!(tracker.popped(), None);
        let first = tracker.popped().unwrap();
        assert!(first.has_synced());
        assert_eq!(first.source_generation(), 0.into(), "no list of the new source was queued");
        tracker.pushed(1);
        assert_eq!(tracker.list_queued(Some(Version::new("7"))), None);
        assert_eq!(tracker.popped().unwrap().source_generation(), 3.into());
    }

    #[test]
    fn a_change_before_any_list_makes_all_marks_synced() {
        let mut tracker = ProgressTracker::default();
        tracker.pushed(1);
        assert_eq!(tracker.version_queued(Version::new("1")), None);
        assert!(!tracker.is_populated());
        tracker.populated_without_list();
        assert!(tracker.is_populated() && tracker.popped().unwrap().has_synced());
    }
}
