//! The short form in which an index stores a long value.
//!
//! An index stores a value once for each namespace that has it, and the authors of objects choose the values.
//! So it stores a long value in a short form: the value's start and a hash of the whole value. No other value
//! has the same short form, because the hash is keyed, and because a short form is longer than any value that
//! is stored whole.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The longest value that is stored whole, in bytes.
const LONGEST: usize = 256;

/// The keys of the hash, random for each process. Together they give 128 bits that no author of objects can
/// compute.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// Returns the form in which a value is stored: itself, or its short form.
pub(in crate::indexer) fn filed_as(value: &str) -> Cow<'_, str> {
    if value.len() <= LONGEST {
        return Cow::Borrowed(value);
    }
    let [one, two] = &*KEYS;
    let beginning = &value[..value.floor_char_boundary(LONGEST)];
    Cow::Owned(format!("{beginning}…{:016x}{:016x}", one.hash_one(value), two.hash_one(value)))
}

/// Whether a stored value is a short form.
pub(in crate::indexer) fn is_short_form(filed: &str) -> bool {
    filed.len() > LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_has_a_short_form_of_its_own() {
        let long = "ä".repeat(1 << 20);
        let other = format!("{long}.");
        assert!(filed_as(&long).len() < 300);
        assert_ne!(filed_as(&long), filed_as(&other));
        assert_eq!(filed_as(&long), filed_as(&long.clone()));
        for short in ["", "app", &"x".repeat(LONGEST)] {
            assert_eq!(filed_as(short), short);
            assert!(!is_short_form(&filed_as(short)));
        }
        // A value that equals the short form of another is long itself, and so has another short form.
        let filed = filed_as(&long).into_owned();
        assert!(is_short_form(&filed));
        assert_ne!(filed_as(&filed), filed);
    }
}
