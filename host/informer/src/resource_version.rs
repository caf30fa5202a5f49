//! Comparing resourceVersions.

use std::fmt;
use std::str::FromStr;

use crate::object::{Object, ShortText, parse_number};

/// A resourceVersion that can be compared with others of the same resource.
///
/// Since Kubernetes 1.35 every API server guarantees that versions are decimal integers. Any other version is
/// an error, and no other type of this crate compares versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(u128);

/// A resourceVersion that is not a decimal integer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resourceVersion {0:?} is not a decimal integer and cannot be compared")]
pub struct NotComparable(pub String);

/// Any resourceVersion. A decimal number, the usual case, takes no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// A decimal number without leading zeros.
    Number(u64),
    /// Any other text.
    Text(Box<str>),
}

// === impl Version ===

impl Version {
    pub(crate) fn new(text: &str) -> Self {
        parse_number(text).map_or_else(|| Self::Text(text.into()), Self::Number)
    }

    /// Returns the version of an object.
    pub(crate) fn of(object: &Object) -> Self {
        object.version_number().map_or_else(|| Self::Text(object.resource_version().into()), Self::Number)
    }

    /// Returns the version as a comparable one, if it is a decimal integer.
    pub(crate) fn comparable(&self) -> Option<ResourceVersion> {
        match self {
            Self::Number(number) => Some(ResourceVersion(u128::from(*number))),
            Self::Text(text) => text.parse().ok(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    pub(crate) fn text(&self) -> ShortText<'_> {
        match self {
            Self::Number(number) => ShortText::number(*number),
            Self::Text(text) => ShortText::borrowed(text),
        }
    }
}

/// The default is the empty version.
impl Default for Version {
    fn default() -> Self {
        Self::Text(Box::default())
    }
}

// === impl ResourceVersion ===

impl FromStr for ResourceVersion {
    type Err = NotComparable;

    fn from_str(text: &str) -> Result<Self, NotComparable> {
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_decimal { text.parse().ok() } else { None };
        number.map(Self).ok_or_else(|| NotComparable(text.to_owned()))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_integers() {
        let parse = |text: &str| text.parse::<ResourceVersion>();
        assert!(parse("9").unwrap() < parse("10").unwrap());
        assert!(parse("18446744073709551616").unwrap() > parse("18446744073709551615").unwrap());
        assert_eq!(parse("007"), parse("7"));
        for text in ["", "a", "-1", "+1", "1.0", " 1", "1e3"] {
            assert_eq!(parse(text), Err(NotComparable(text.to_owned())), "{text:?}");
        }
    }
}
