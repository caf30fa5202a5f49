//! In which order keys are handed out.

use std::collections::VecDeque;

/// Holds the keys that wait, each once: the queue sees to that.
pub trait Order<K>: Send {
    /// Takes a key in.
    fn push(&mut self, key: K);
    /// Hands out the next key.
    fn pop(&mut self) -> Option<K>;
    /// Returns how many keys there are.
    fn len(&self) -> usize;
    /// A key that is there was added again. It may be moved, and must stay.
    fn touch(&mut self, key: &K) {
        let _ = key;
    }
    /// Whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Gives back the memory for more than so many keys.
    fn shrink_to(&mut self, n_keys: usize) {
        let _ = n_keys;
    }
}

/// First come, first served.
impl<K: Send> Order<K> for VecDeque<K> {
    fn push(&mut self, key: K) {
        self.push_back(key);
    }

    fn pop(&mut self) -> Option<K> {
        self.pop_front()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn shrink_to(&mut self, n_keys: usize) {
        self.shrink_to(n_keys);
    }
}
