//! The sampled events that queued the keys of a work queue.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Key;
use crate::traces::Cause;

/// How many keys have causes, and how many causes a key has. Others are forgotten: their traces end with the
/// event.
const MOST_KEYS: usize = 1024;
const MOST_CAUSES: usize = 8;

/// The causes of keys that wait. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Causes(Arc<Mutex<HashMap<Key, Vec<Cause>>>>);

// === impl Causes ===

impl Causes {
    /// Notes what queued a key. The first causes are kept.
    pub(in super::super) fn add(&self, key: &Key, cause: Cause) {
        let mut causes = self.0.lock();
        if causes.len() >= MOST_KEYS && !causes.contains_key(key) {
            return;
        }
        let causes = causes.entry(key.clone()).or_default();
        if causes.len() < MOST_CAUSES {
            causes.push(cause);
        }
    }

    /// Takes the causes of a key, for its call.
    pub(in super::super) fn take(&self, key: &Key) -> Vec<Cause> {
        self.0.lock().remove(key).unwrap_or_default()
    }
}
