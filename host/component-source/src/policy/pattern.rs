//! Patterns for registries, repositories, hosts and paths.

use std::str::FromStr;

use crate::reference::is_host;

/// A host, with or without a path. With `/*` at the end, everything below it; `*` alone matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// With a `/` at its end if everything below it matches.
    text: String,
}

// === impl Pattern ===

impl Pattern {
    /// Returns whether this is the name, or everything that the name is below of.
    pub(super) fn matches(&self, name: &str) -> bool {
        match self.text.as_str() {
            "" => true,
            text if text.ends_with('/') => name.starts_with(text),
            text => name == text,
        }
    }

    /// Returns the length, by which the more specific one of two patterns is found.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_prefix = text == "*" || text.ends_with("/*");
        let text = if is_prefix { &text[..text.len() - 1] } else { text };
        let host = text.split('/').next().unwrap_or_default();
        let is_well_formed = !text.contains(['*', '?', '#', ' ', '@']) && !text.contains("//");
        let is_everything = text.is_empty() && is_prefix;
        let is_place = is_well_formed && is_host(host);
        if !(is_everything || is_place) {
            return Err("expected HOST/PATH, HOST/PATH/* or *, without a scheme and a tag".to_owned());
        }
        if !is_prefix && !text.contains('/') {
            return Err(format!("expected {text}/* for everything of this host"));
        }
        Ok(Self { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().matches(name)
    }

    #[test]
    fn a_star_matches_whole_parts_only() {
        assert!(matches("ghcr.io/team-a/*", "ghcr.io/team-a/b"));
        assert!(matches("ghcr.io/team-a/*", "ghcr.io/team-a/b/c"));
        assert!(!matches("ghcr.io/team-a/*", "ghcr.io/team-ab/c"));
        assert!(!matches("ghcr.io/team-a/*", "ghcr.io/team-a"));
        assert!(!matches("ghcr.io/*", "ghcr.io.evil.example/b"));
        assert!(matches("ghcr.io/a/b", "ghcr.io/a/b"));
        assert!(!matches("ghcr.io/a/b", "ghcr.io/a/bc"));
        assert!(matches("localhost:5000/*", "localhost:5000/a"));
        assert!(!matches("localhost/*", "localhost:5000/a"));
        assert!(matches("*", "anything.example/a"));
    }

    #[test]
    fn other_uses_of_a_star_are_refused() {
        for text in
            ["", "*.io/a", "ghcr.io/a*", "ghcr.io/*/b", "https://ghcr.io/a", "ghcr.io", "ghcr.io/a@x", "**"]
        {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
