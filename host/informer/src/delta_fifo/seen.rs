//! Up to which resourceVersion everything that was queued has been processed.

use std::collections::VecDeque;

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
    waiting: VecDeque<(u64, Box<str>)>,
    seen: Option<Box<str>>,
}

// === impl SeenMarks ===

impl SeenMarks {
    pub(super) fn mark(&mut self, resource_version: &str) {
        if self.pushed == self.popped {
            self.seen = Some(resource_version.into());
            return;
        }
        match self.waiting.back_mut() {
            Some((position, mark)) if *position == self.pushed => *mark = resource_version.into(),
            _ => self.waiting.push_back((self.pushed, resource_version.into())),
        }
    }

    pub(super) fn pushed(&mut self) {
        self.pushed += 1;
    }

    pub(super) fn popped(&mut self) {
        self.popped += 1;
        while self.waiting.front().is_some_and(|(position, _)| *position <= self.popped) {
            self.seen = self.waiting.pop_front().map(|(_, mark)| mark);
        }
        if self.waiting.is_empty() && self.waiting.capacity() > 256 {
            self.waiting.shrink_to(0);
        }
    }

    pub(super) fn seen(&self) -> Option<&str> {
        self.seen.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::SeenMarks;

    #[test]
    fn a_mark_is_seen_when_all_before_it_is_popped() {
        let mut marks = SeenMarks::default();
        marks.pushed();
        marks.mark("1");
        marks.pushed();
        marks.mark("2");
        // Joins the list of a key that is queued already.
        marks.mark("3");
        assert_eq!(marks.seen(), None);
        marks.popped();
        assert_eq!(marks.seen(), Some("1"));
        marks.popped();
        assert_eq!(marks.seen(), Some("3"));
    }

    #[test]
    fn a_mark_on_an_empty_queue_is_seen_at_once() {
        let mut marks = SeenMarks::default();
        marks.mark("9");
        assert_eq!(marks.seen(), Some("9"));
    }
}
