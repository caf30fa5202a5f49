//! The test cases of client-go.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Deserialize;

/// All cases, in the order of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cases {
    #[serde(rename = "group")]
    pub(super) groups: Vec<Group>,
}

/// The cases of one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) title: String,
    /// The upstream file.
    pub(super) source: Option<String>,
    pub(super) cases: Vec<Case>,
}

/// One case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) id: String,
    /// The upstream function, or the subject of the case.
    pub(super) name: String,
    pub(super) clauses: String,
    /// The reason why the case does not apply here.
    pub(super) not_applicable: Option<String>,
}

// === impl Cases ===

impl Cases {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let cases: Self = toml::from_str(text)?;
        let mut ids = BTreeSet::new();
        for case in cases.iter() {
            if !ids.insert(&case.id) {
                bail!("case {} is listed twice", case.id);
            }
            if case.not_applicable.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
                bail!("case {} is not applicable, but has no reason", case.id);
            }
        }
        Ok(cases)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Case> {
        self.groups.iter().flat_map(|group| &group.cases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_need_an_id_of_their_own_and_a_reason() {
        let parse = |cases: &str| {
            Cases::parse(&format!("[[group]]\nid = \"2\"\ntitle = \"queue\"\ncases = [{cases}]\n"))
        };
        let case = r#"{ id = "2.1", name = "TestA", clauses = "DF-01" }"#;
        assert_eq!(parse(case).unwrap().iter().count(), 1);
        assert!(parse(&format!("{case}, {case}")).is_err());
        assert!(parse(r#"{ id = "2.1", name = "TestA", clauses = "", not_applicable = " " }"#).is_err());
    }
}
