//! The syntax of names in Kubernetes.

use std::fmt;

use serde::de::{Deserializer, Visitor};

use crate::shadow;

/// Why a name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// The name is empty.
    Empty,
    /// The name is longer than this many characters.
    TooLong(usize),
    /// A character other than a lower-case letter, a digit and `-` (and `.` in a subdomain).
    Character(char),
    /// The first or last character is not a letter or digit.
    Edge,
}

/// Accepts a DNS label (RFC 1123): 63 characters of `a-z`, `0-9` and `-`.
pub(crate) fn dns_label(name: &str) -> Result<(), Invalid> {
    check(name, 63, &['-'])
}

/// Accepts a DNS subdomain (RFC 1123): 253 characters of `a-z`, `0-9`, `-` and `.`.
pub(crate) fn dns_subdomain(name: &str) -> Result<(), Invalid> {
    check(name, 253, &['-', '.'])
}

/// Accepts the name of a plugin in the host: a DNS label, or the labels of a namespace and of a Plugin with a
/// dot between them. A shadow has the name of its plugin with an end.
pub(crate) fn plugin(name: &str) -> Result<(), Invalid> {
    let name = shadow::serving_of(name).unwrap_or(name);
    match name.split_once('.') {
        Some((namespace, name)) => dns_label(namespace).and_then(|()| dns_label(name)),
        None => dns_label(name),
    }
}

/// Returns a DNS label made from a text; none if the text has no letter or digit.
pub(super) fn dns_label_from(text: &str) -> Option<String> {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_matches('-');
    let name = name[..name.len().min(63)].trim_end_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Reads a text. A number or another type is an error, as in a manifest for Kubernetes: YAML libraries take
/// it for a text otherwise.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text (a number needs quotes)")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }

    deserializer.deserialize_any(Text)
}

fn check(name: &str, longest: usize, inner: &[char]) -> Result<(), Invalid> {
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    if name.is_empty() {
        return Err(Invalid::Empty);
    }
    if let Some(bad) = name.chars().find(|&it| !plain(it) && !inner.contains(&it)) {
        return Err(Invalid::Character(bad));
    }
    if name.len() > longest {
        return Err(Invalid::TooLong(longest));
    }
    if name.starts_with(inner) || name.ends_with(inner) {
        return Err(Invalid::Edge);
    }
    Ok(())
}

// === impl Invalid ===

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "it is empty"),
            Self::TooLong(longest) => write!(f, "it is longer than {longest} characters"),
            Self::Character(bad) => {
                write!(f, "{bad:?} is not allowed (lower-case letters, digits and '-' are)")
            }
            Self::Edge => write!(f, "it must begin and end with a letter or digit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_plugin_may_have_a_namespace_and_may_be_that_of_its_shadow() {
        for name in ["census", "team-a.mirror", "census.shadow", "team-a.mirror.shadow"] {
            assert_eq!(plugin(name), Ok(()), "{name}");
        }
        for name in ["", ".shadow", "team-a.mirror.next", "team-a.mirror.shadow.shadow"] {
            assert!(plugin(name).is_err(), "{name}");
        }
    }
}
