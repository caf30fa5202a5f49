//! Example labels that a selector matches, for commands shown to people.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::LabelSelector;
use crate::requirement::{Requirement, Test};

// === impl LabelSelector ===

impl LabelSelector {
    /// Returns a small set of labels that the selector matches; none if it finds no such set among a few
    /// usual values.
    #[must_use]
    pub fn example(&self) -> Option<BTreeMap<String, String>> {
        let mut labels = BTreeMap::new();
        // They are sorted by key.
        for of_key in self.requirements.chunk_by(|left, right| left.key == right.key) {
            let values = of_key.iter().flat_map(Requirement::candidates);
            let candidates = std::iter::once(None).chain(values.map(Some));
            let is_good = |value: &Option<String>| {
                let get = |_: &str| value.as_deref().map(Cow::Borrowed);
                of_key.iter().all(|requirement| requirement.matches(get))
            };
            if let Some(value) = candidates.into_iter().find(is_good)? {
                labels.insert(of_key[0].key.clone(), value);
            }
        }
        Some(labels)
    }
}

// === impl Requirement ===

impl Requirement {
    /// Returns values that meet this requirement. Other requirements of the same key may exclude them.
    fn candidates(&self) -> Vec<String> {
        match &self.test {
            Test::DoesNotExist | Test::NotEquals(_) | Test::NotIn(_) => Vec::new(),
            Test::Exists => vec!["true".to_owned(), "false".to_owned(), "yes".to_owned()],
            Test::Equals(value) => vec![value.clone()],
            Test::In(values) => values.iter().cloned().collect(),
            Test::GreaterThan(bound) => vec![bound.saturating_add(1).to_string()],
            Test::LessThan(bound) => vec![bound.saturating_sub(1).to_string()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_matched_by_its_selector() {
        let example = |text: &str| {
            let labels = text.parse::<LabelSelector>().unwrap().example()?;
            Some(
                labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
            )
        };
        assert_eq!(example("").as_deref(), Some(""));
        assert_eq!(example("app=hello").as_deref(), Some("app=hello"));
        assert_eq!(example("app in (a,b),app!=a,!old,tier").as_deref(), Some("app=b,tier=true"));
        assert_eq!(example("app notin (a),b!=c").as_deref(), Some(""));
        assert_eq!(example("n>3,n<5").as_deref(), Some("n=4"));
        assert_eq!(example("app,app!=true").as_deref(), Some("app=false"));
        assert_eq!(example("app,!app"), None);
    }
}
