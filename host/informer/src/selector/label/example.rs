//! Labels that a selector selects, for people who want to see something selected.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{LabelSelector, Requirement, Test};

// === impl LabelSelector ===

impl LabelSelector {
    /// Returns few labels that this selects; none when no labels of usual values are.
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
    /// Values that may fit, whatever else is required of the label.
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
    fn what_is_shown_is_selected() {
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
