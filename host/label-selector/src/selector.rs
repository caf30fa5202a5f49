//! The label selector: parsed, matched and written.

mod example;
mod json;

use std::fmt;
use std::str::FromStr;

use crate::labels::Labels;
use crate::parser::{self, ParseError};
use crate::requirement::{Requirement, Test};

pub use json::JsonError;

/// Matches objects by their labels, as in `app=web,tier in (a,b),!legacy`.
///
/// All requirements must hold; the empty selector matches every object. As in the API server, `!=` and
/// `notin` also match objects without the label, and `>` and `<` compare integers. `Display` writes a
/// selector of the same meaning, with the requirements sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Returns the selector that matches every object.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns a selector that matches no object, here and in the API server: it requires a label to exist
    /// and not to exist.
    #[must_use]
    pub fn nothing() -> Self {
        let key = "oarlock.dev/nothing".to_owned();
        let exists = Requirement { key: key.clone(), test: Test::Exists };
        Self { requirements: vec![exists, Requirement { key, test: Test::DoesNotExist }] }
    }

    /// Returns true for [`LabelSelector::nothing`], so that a caller need not read any object.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        match &*self.requirements {
            [one, other] => {
                one.key == other.key && one.test == Test::Exists && other.test == Test::DoesNotExist
            }
            _ => false,
        }
    }

    /// Returns true if the selector matches every object, so that a caller need not read labels.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns true if the selector matches an object with these labels.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(|key| labels.get(key)))
    }

    /// Returns the number of requirements.
    #[must_use]
    pub fn n_requirements(&self) -> usize {
        self.requirements.len()
    }
}

impl FromStr for LabelSelector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
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

#[cfg(test)]
mod tests;
