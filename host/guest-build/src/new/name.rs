//! The name of a plugin.

use std::fmt;
use std::str::FromStr;

/// The most characters of a DNS label.
const MAX_LENGTH: usize = 63;

/// Names that Rust or cargo do not accept for a crate.
const RESERVED: [&str; 46] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "oarlock-sdk",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "type",
    "where",
];

/// The name of a plugin that is also the name of a package in each language: a DNS label that begins with a
/// letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// A text is not a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

// === impl Name ===

impl Name {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refuse = |why: &str| Err(NameError(why.to_owned()));
        if text.contains(['/', '\\']) {
            return refuse(
                "a name, not a path: change to the folder in which the plugin's folder is to be made",
            );
        }
        if text.len() > MAX_LENGTH {
            return refuse("a name has at most 63 characters");
        }
        let is_label = text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
        if !is_label || !text.starts_with(|first: char| first.is_ascii_lowercase()) || text.ends_with('-') {
            let likely = likely(text);
            let such = if likely.is_empty() { "web-watcher" } else { &likely };
            return refuse(&format!(
                "a name has lower-case letters, digits and `-`, and begins with a letter, such as `{such}`"
            ));
        }
        if RESERVED.contains(&text) {
            return refuse("this name has a meaning in Rust; choose another one");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl NameError ===

impl std::error::Error for NameError {}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the name that was probably meant: `web-watcher` for `Web_Watcher`.
fn likely(text: &str) -> String {
    let as_label = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let label: String = text.chars().map(as_label).collect();
    label.trim_start_matches(|it: char| !it.is_ascii_lowercase()).trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Name::from_str(text).unwrap_err().to_string()
    }

    #[test]
    fn a_dns_label_that_begins_with_a_letter_is_a_name() {
        for name in ["a", "web-watcher", "a1", &"a".repeat(63)] {
            assert_eq!(Name::from_str(name).unwrap().as_str(), name);
        }
        for wrong in ["", "1a", "-a", "a-", "a_b", "A", "ä", "a b", ".", &"a".repeat(64), "fn", "std"] {
            refusal(wrong);
        }
    }

    #[test]
    fn a_refusal_says_what_would_do() {
        insta::assert_snapshot!(refusal("Web_Watcher"), @"a name has lower-case letters, digits and `-`, and begins with a letter, such as `web-watcher`");
        insta::assert_snapshot!(refusal("../a"), @"a name, not a path: change to the folder in which the plugin's folder is to be made");
        insta::assert_snapshot!(refusal("match"), @"this name has a meaning in Rust; choose another one");
    }
}
