//! The hash of a message, in place of the message.
//!
//! Messages may be long, and the correlator remembers thousands.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// A 128-bit hash with secret random keys: an attacker cannot make two texts with the same hash.
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
