//! The order of waiting keys.

use std::collections::VecDeque;

/// Holds the waiting keys, each once (client-go: `workqueue.Queue`).
pub trait Order<K>: Send {
    /// Adds a key.
    fn push(&mut self, key: K);
    /// Removes the next key.
    fn pop(&mut self) -> Option<K>;
    /// Returns the number of keys.
    fn len(&self) -> usize;
    /// A waiting key was added again. The order may move it, and must keep it.
    fn touch(&mut self, key: &K) {
        let _ = key;
    }
    /// Returns true without keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Frees the memory for more than this many keys.
    fn shrink_to(&mut self, n_keys: usize) {
        let _ = n_keys;
    }
}

/// First in, first out.
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
