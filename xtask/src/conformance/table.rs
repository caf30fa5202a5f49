//! The table, with one row per case.

use std::collections::BTreeMap;
use std::fmt;

use super::cases::{Case, Cases};
use super::tags::Tagged;

/// The cases with their tests.
pub(super) struct Table {
    cases: Cases,
    /// The tests of each case, as crate paths.
    tests: BTreeMap<String, Vec<String>>,
}

// === impl Table ===

impl Table {
    /// Combines cases and tags, and returns the errors of the tags.
    pub(super) fn new(cases: Cases, tagged: &[Tagged]) -> (Self, Vec<String>) {
        let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut faults = Vec::new();
        for Tagged { id, test, place } in tagged {
            match cases.iter().find(|case| case.id == *id) {
                None => faults.push(format!("{place}: there is no case {id}")),
                Some(Case { not_applicable: Some(_), .. }) => {
                    faults.push(format!("{place}: case {id} has a test, but is marked as not applicable"));
                }
                Some(_) => tests.entry(id.clone()).or_default().push(test.clone()),
            }
        }
        for tests in tests.values_mut() {
            tests.sort();
            tests.dedup();
        }
        (Self { cases, tests }, faults)
    }

    /// Returns the applicable cases without a test.
    pub(super) fn holes(&self) -> impl Iterator<Item = &str> {
        let applicable = self.cases.iter().filter(|case| case.not_applicable.is_none());
        applicable.map(|case| &*case.id).filter(|id| !self.tests.contains_key(*id))
    }

    /// Returns every test in the table; a test with several cases is repeated.
    pub(super) fn tests(&self) -> impl Iterator<Item = &str> {
        self.tests.values().flatten().map(|test| &**test)
    }

    pub(super) fn counts(&self) -> String {
        let n_cases = self.cases.iter().count();
        let n_not_applicable = self.cases.iter().filter(|case| case.not_applicable.is_some()).count();
        let n_tested = self.tests.len();
        let n_open = n_cases - n_not_applicable - n_tested;
        format!("{n_cases} cases: {n_tested} tested, {n_open} open, {n_not_applicable} not applicable")
    }

    fn answer(&self, case: &Case) -> String {
        if let Some(reason) = &case.not_applicable {
            return format!("not applicable: {}", cell(reason));
        }
        match self.tests.get(&case.id) {
            Some(tests) => tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", "),
            None => "**open**".to_owned(),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "<!-- Written by `cargo xtask conformance` from cases.toml and the tags of the tests. -->\n"
        )?;
        writeln!(f, "# Conformance\n")?;
        writeln!(
            f,
            "The test cases of client-go, with the tests here that cover them. Where this project deviates on purpose, the test \
             covers the deviation.\nThe cases of group `G` have no upstream test. A test names its cases in a line above it: \
             `// Conformance: 2.4, G.10`.\n"
        )?;
        writeln!(f, "{}.", self.counts())?;
        for group in &self.cases.groups {
            writeln!(f, "\n## {}. {}\n", group.id, group.title)?;
            if let Some(source) = &group.source {
                writeln!(f, "`{source}`\n")?;
            }
            writeln!(f, "| case | upstream | our test | clauses |\n|---|---|---|---|")?;
            for case in &group.cases {
                let Case { id, name, clauses, .. } = case;
                writeln!(f, "| {id} | {} | {} | {} |", cell(name), self.answer(case), cell(clauses))?;
            }
        }
        Ok(())
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Cases {
        Cases::parse(
            r#"
            [[group]]
            id = "2"
            title = "Queue"
            source = "fifo_test.go"
            cases = [
                { id = "2.1", name = "TestOrder", clauses = "DF-01" },
                { id = "2.2", name = "TestOpen", clauses = "DF-02" },
                { id = "2.3", name = "BenchmarkKeys", clauses = "", not_applicable = "a benchmark" },
            ]
            "#,
        )
        .unwrap()
    }

    fn tagged(id: &str) -> Tagged {
        Tagged { id: id.into(), test: "crate queue::tests::order".into(), place: "queue.rs:7".into() }
    }

    #[test]
    fn each_case_has_a_row() {
        let (table, faults) = Table::new(cases(), &[tagged("2.1")]);
        assert_eq!(faults, [""; 0]);
        assert_eq!(table.holes().collect::<Vec<_>>(), ["2.2"]);
        let text = table.to_string();
        for row in [
            "\n| 2.1 | TestOrder | `crate queue::tests::order` | DF-01 |\n",
            "\n| 2.2 | TestOpen | **open** | DF-02 |\n",
            "\n| 2.3 | BenchmarkKeys | not applicable: a benchmark |  |\n",
            "\n3 cases: 1 tested, 1 open, 1 not applicable.\n",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }

    #[test]
    fn tags_without_an_applicable_case_are_errors() {
        let (_, faults) = Table::new(cases(), &[tagged("2.9"), tagged("2.3")]);
        assert_eq!(
            faults,
            [
                "queue.rs:7: there is no case 2.9",
                "queue.rs:7: case 2.3 has a test, but is marked as not applicable"
            ]
        );
    }
}
