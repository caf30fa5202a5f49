//! What is remembered of a message: enough to know it again.
//!
//! Messages are as long as those who emit Events like, and thousands of them are remembered.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// 128 bits of a text, by keys that nobody outside of the process knows: no two texts have the same.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct TextHash(u64, u64);

static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

// === impl TextHash ===

impl TextHash {
    pub(super) fn of(text: &str) -> Self {
        let [one, two] = &*KEYS;
        Self(one.hash_one(text), two.hash_one(text))
    }
}
