//! Sizes on the command line: `512Mi`, `1Gi`.

use std::{fmt, str::FromStr};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Size(pub(crate) usize);

/// The units, largest first: a size is shown in the largest unit that divides it.
const UNITS: [(&str, usize); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

// === impl Size ===

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (number, factor) = unit.unwrap_or((text, 1));
        let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
        bytes.map(Self).ok_or_else(|| "use a number of bytes such as 512Mi (units: Ki, Mi, Gi)".to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        match UNITS.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(f, "{}{unit}", bytes / factor),
            None => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_size_can_be_parsed() {
        for text in ["1Gi", "512Mi", "3Ki", "1000", "0"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["", "Gi", "1G", "-1", "1.5Gi", "99999999999999999999", "99999999999Gi"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
