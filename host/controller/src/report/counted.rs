//! A number with the noun that it counts, in the singular or the plural.

use std::fmt::{self, Display, Formatter};

/// Displays a number and a noun: `1 call`, `2 calls`. The noun is given in the singular. Its plural is one of
/// the regular ones: `losses`, `entries`, `keys`.
#[derive(Clone, Copy, Debug)]
pub struct Counted<N>(pub N, pub &'static str);

// === impl Counted ===

impl<N: Display + PartialEq + From<u8>> Display for Counted<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(n, noun) = self;
        if *n == N::from(1) {
            return write!(f, "{n} {noun}");
        }
        match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
            Some(stem) => write!(f, "{n} {stem}ies"),
            None if noun.ends_with('s') => write!(f, "{n} {noun}es"),
            None => write!(f, "{n} {noun}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_every_other_number_is_plural() {
        let shown = [0_u64, 1, 2].map(|n| Counted(n, "call").to_string());
        assert_eq!(shown, ["0 calls", "1 call", "2 calls"]);
        let plurals = ["loss", "key", "entry"].map(|noun| Counted(2_usize, noun).to_string());
        assert_eq!(plurals, ["2 losses", "2 keys", "2 entries"]);
    }
}
