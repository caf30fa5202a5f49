//! Sizes in bytes, as people read them.

use std::fmt::{self, Display, Formatter};

/// Shows a number of bytes as `4.0 KiB`.
pub(crate) struct Size(pub(crate) u64);

// === impl Size ===

impl Display for Size {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.into_iter().find(|(_, shift)| self.0 >> shift > 0) {
            Some((unit, shift)) => {
                let tenths = (u128::from(self.0) * 10) >> shift;
                write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_fits() {
        let shown = [0, 1023, 4 << 10, 19_084_083, 3 << 30, u64::MAX].map(|bytes| Size(bytes).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "4.0 KiB", "18.1 MiB", "3.0 GiB", "17179869183.9 GiB"]);
    }
}
