//! Up to which resourceVersion everything that was queued has been processed.

use std::collections::VecDeque;

use super::watermark::Watermark;
use crate::resource_version::Version;

/// Follows marks through the queue.
///
/// A mark made when the queue's last key has position *n* is passed once position *n* has been popped: a change that
/// joined the list of an older key is popped no later than that.
#[derive(Debug, Default)]
pub(super) struct SeenMarks {
    /// How many keys were ever queued.
    pushed: u64,
    /// How many keys were ever popped.
    popped: u64,
    /// Where the watermark is once all marks so far are passed.
    newest: Watermark,
    /// Positions, rising, and where the watermark is once each is passed.
    waiting: VecDeque<(u64, Watermark)>,
}

// === impl SeenMarks ===

impl SeenMarks {
    /// Marks that a watch has come to a version; returns the watermark if nothing is queued, since it is passed at once.
    pub(super) fn advanced(&mut self, resource_version: Version) -> Option<Watermark> {
        self.newest.advanced(resource_version);
        self.mark()
    }

    /// Does the same for the version of a whole list.
    pub(super) fn listed(&mut self, resource_version: Version) -> Option<Watermark> {
        self.newest.listed(resource_version);
        self.mark()
    }

    fn mark(&mut self) -> Option<Watermark> {
        if self.pushed == self.popped {
            return Some(self.newest.clone());
        }
        match self.waiting.back_mut() {
            Some((position, mark)) if *position == self.pushed => mark.clone_from(&self.newest),
            _ => self.waiting.push_back((self.pushed, self.newest.clone())),
        }
        None
    }

    pub(super) fn pushed(&mut self, n_keys: usize) {
        self.pushed += n_keys as u64;
    }

    /// Notes that the oldest key was popped; returns the newest mark that is passed by that.
    pub(super) fn popped(&mut self) -> Option<Watermark> {
        self.popped += 1;
        let mut passed = None;
        while self.waiting.front().is_some_and(|(position, _)| *position <= self.popped) {
            passed = self.waiting.pop_front().map(|(_, mark)| mark);
        }
        if self.waiting.is_empty() && self.waiting.capacity() > 256 {
            self.waiting.shrink_to(0);
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::{SeenMarks, Version, Watermark};

    fn text(mark: Option<Watermark>) -> Option<String> {
        mark.and_then(|mark| Some(mark.last()?.text().to_owned()))
    }

    #[test]
    fn a_mark_is_passed_when_all_before_it_is_popped() {
        let mut marks = SeenMarks::default();
        marks.pushed(1);
        assert_eq!(marks.advanced(Version::new("1")), None);
        marks.pushed(1);
        assert_eq!(marks.advanced(Version::new("2")), None);
        // Joins the list of a key that is queued already.
        assert_eq!(marks.advanced(Version::new("3")), None);
        assert_eq!(text(marks.popped()).as_deref(), Some("1"));
        assert_eq!(text(marks.popped()).as_deref(), Some("3"));
    }

    #[test]
    fn a_mark_on_an_empty_queue_is_passed_at_once() {
        assert_eq!(text(SeenMarks::default().listed(Version::new("9"))).as_deref(), Some("9"));
    }
}
