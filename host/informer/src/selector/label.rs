//! Label selectors in the API's string syntax, with the API server's meaning.

mod example;
mod json;
mod parser;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::object::{LabelView, Object, StringMap};

pub use json::JsonSelectorError;
pub use parser::SelectorError;

/// Selects objects by their labels, as in `app=web,tier in (a,b),!legacy`.
///
/// All requirements must hold; the empty selector selects everything. As in the API server, `!=` and `notin` also select
/// objects without the label, and `>` and `<` compare integers. `Display` gives a selector of the same meaning, with the
/// requirements sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Test {
    Exists,
    DoesNotExist,
    Equals(String),
    NotEquals(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    GreaterThan(i64),
    LessThan(i64),
}

/// From this many requirements on, labels are not looked through for each.
const MANY: usize = 8;

// === impl LabelSelector ===

impl LabelSelector {
    /// Returns the selector that selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns a selector that selects nothing, whoever evaluates it: it wants a label to be there and not to be there.
    pub fn nothing() -> Self {
        let key = "oarlock.dev/nothing".to_owned();
        let exists = Requirement { key: key.clone(), test: Test::Exists };
        Self { requirements: vec![exists, Requirement { key, test: Test::DoesNotExist }] }
    }

    /// Whether this is [`LabelSelector::nothing`], so that nobody needs to look at anything.
    pub fn is_nothing(&self) -> bool {
        match &*self.requirements {
            [one, other] => {
                one.key == other.key && one.test == Test::Exists && other.test == Test::DoesNotExist
            }
            _ => false,
        }
    }

    /// Whether the selector selects everything, so that nobody needs to look at labels.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &StringMap) -> bool {
        let get = |name: &str| labels.get(name).map(|value| Cow::Borrowed(&**value));
        self.requirements.iter().all(|requirement| requirement.matches(get))
    }

    /// Whether this object is selected. Its text is not looked into.
    pub fn selects(&self, object: &Object) -> bool {
        let labels = object.label_set();
        if self.requirements.len() < MANY {
            return self.requirements.iter().all(|requirement| requirement.matches(|name| labels.get(name)));
        }
        self.selects_labels(&labels.view())
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn selects_labels(&self, labels: &LabelView<'_>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(|name| labels.get(name)))
    }

    /// Returns how many requirements there are.
    pub(crate) fn n_requirements(&self) -> usize {
        self.requirements.len()
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = parser::parse(text)?;
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, requirement) in self.requirements.iter().enumerate() {
            if idx > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

// === impl Requirement ===

impl Requirement {
    fn matches<'l>(&self, get: impl Fn(&str) -> Option<Cow<'l, str>>) -> bool {
        let value = get(&self.key);
        let value = value.as_deref();
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Equals(expected) => value == Some(expected.as_str()),
            Test::NotEquals(expected) => value != Some(expected.as_str()),
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, test } = self;
        let list =
            |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match test {
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", list(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

#[cfg(test)]
mod tests;
