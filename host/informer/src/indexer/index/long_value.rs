//! What stands for a long value in an index.
//!
//! A value of some length is kept once for each namespace that has it, and values are chosen by those who
//! write objects. So a long one is kept as its beginning and a hash of the whole, which no other value has:
//! the hash is keyed, and the result is longer than any value that is kept as it is.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The longest value that is kept as it is, in bytes.
const LONGEST: usize = 256;

/// One pair for the process: together 128 bits, which nobody outside of it can compute.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// Returns what a value is filed under: itself, unless it is long.
pub(in crate::indexer) fn filed_as(value: &str) -> Cow<'_, str> {
    if value.len() <= LONGEST {
        return Cow::Borrowed(value);
    }
    let [one, two] = &*KEYS;
    let beginning = &value[..value.floor_char_boundary(LONGEST)];
    Cow::Owned(format!("{beginning}…{:016x}{:016x}", one.hash_one(value), two.hash_one(value)))
}

/// Whether this is what stands for a long value.
pub(in crate::indexer) fn is_cut(filed: &str) -> bool {
    filed.len() > LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_kept_short_and_differs_from_all_others() {
        let long = "ä".repeat(1 << 20);
        let other = format!("{long}.");
        assert!(filed_as(&long).len() < 300);
        assert_ne!(filed_as(&long), filed_as(&other));
        assert_eq!(filed_as(&long), filed_as(&long.clone()));
        for short in ["", "app", &"x".repeat(LONGEST)] {
            assert_eq!(filed_as(short), short);
            assert!(!is_cut(&filed_as(short)));
        }
        // What stands for a long value is itself a long value, and stands for nothing but itself.
        let filed = filed_as(&long).into_owned();
        assert!(is_cut(&filed));
        assert_ne!(filed_as(&filed), filed);
    }
}
