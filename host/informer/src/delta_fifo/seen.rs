//! Up to which resourceVersion everything that was queued has been processed.

use std::collections::VecDeque;

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
    /// Positions, rising, and the newest mark made at each.
    waiting: VecDeque<(u64, Version)>,
}

// === impl SeenMarks ===

impl SeenMarks {
    /// Makes a mark; returns it if nothing is queued, since it is passed at once.
    pub(super) fn mark(&mut self, resource_version: Version) -> Option<Version> {
        if self.pushed == self.popped {
            return Some(resource_version);
        }
        match self.waiting.back_mut() {
            Some((position, mark)) if *position == self.pushed => *mark = resource_version,
            _ => self.waiting.push_back((self.pushed, resource_version)),
        }
        None
    }

    pub(super) fn pushed(&mut self, n_keys: usize) {
        self.pushed += n_keys as u64;
    }

    /// Notes that the oldest key was popped; returns the newest mark that is passed by that.
    pub(super) fn popped(&mut self) -> Option<Version> {
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
    use super::{SeenMarks, Version};

    #[test]
    fn a_mark_is_passed_when_all_before_it_is_popped() {
        let mut marks = SeenMarks::default();
        marks.pushed(1);
        assert_eq!(marks.mark(Version::new("1")), None);
        marks.pushed(1);
        assert_eq!(marks.mark(Version::new("2")), None);
        // Joins the list of a key that is queued already.
        assert_eq!(marks.mark(Version::new("3")), None);
        assert_eq!(marks.popped(), Some(Version::new("1")));
        assert_eq!(marks.popped(), Some(Version::new("3")));
    }

    #[test]
    fn a_mark_on_an_empty_queue_is_passed_at_once() {
        assert_eq!(SeenMarks::default().mark(Version::new("9")), Some(Version::new("9")));
    }
}
