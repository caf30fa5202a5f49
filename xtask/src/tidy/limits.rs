//! The tests of docs/limits.md: each limit names one, and each of them exists.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use regex::Regex;

/// The page with the table of the limits.
pub(super) const PAGE: &str = "docs/limits.md";

/// The heading of the table, and its columns.
const HEADING: &str = "## All limits";
const COLUMNS: usize = 5;

/// The tests that the page names, and those that were found so far.
pub(super) struct Tests {
    named: BTreeSet<String>,
    found: BTreeSet<String>,
    faults: Vec<String>,
    test: Regex,
}

// === impl Tests ===

impl Tests {
    /// Reads the table.
    pub(super) fn parse(page: &str) -> Result<Self> {
        let quoted = Regex::new("`([a-z][a-z0-9_]+)`")?;
        let test = Regex::new(
            r"#\[(?:tokio::)?test[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:async )?fn ([a-z][a-z0-9_]*)\(",
        )?;
        let mut named = BTreeSet::new();
        let mut faults = Vec::new();
        let table = page.lines().skip_while(|line| *line != HEADING).skip(1);
        let rows = table.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        // The first two rows are the head.
        for row in rows.skip(2) {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let limit = cells[0];
            if limit.starts_with("**") {
                continue;
            }
            let tests: Vec<_> =
                cells.last().map(|cell| quoted.captures_iter(cell).collect()).unwrap_or_default();
            if cells.len() != COLUMNS || tests.is_empty() {
                faults.push(format!("{PAGE}: the row of {limit:?} names no test in its fifth column"));
            }
            named.extend(tests.iter().map(|test| test[1].to_owned()));
        }
        ensure!(!named.is_empty(), "{PAGE} has no table under {HEADING:?}");
        Ok(Self { named, found: BTreeSet::new(), faults, test })
    }

    /// Notes the tests of a file.
    pub(super) fn look_in(&mut self, file: &Path, text: &str) {
        if file.extension().is_some_and(|extension| extension == "rs") {
            self.found.extend(self.test.captures_iter(text).map(|test| test[1].to_owned()));
        }
    }

    /// Returns the rows without a test, and the names of tests that no file has.
    pub(super) fn faults(self) -> Vec<String> {
        let missing = self.named.difference(&self.found);
        let missing = missing.map(|name| format!("{PAGE}: there is no test with the name {name}"));
        self.faults.into_iter().chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_test_and_missing_tests_are_faults() {
        let page = "\
## All limits

| limit | default | range | beyond it | test |
|---|---|---|---|---|
| **Time** | | | | |
| `limits.a`: a | 1 | 1 to 2 | it ends | `a_test`, `an_async_test` |
| b | 1 | constant | it ends | |
| c | 1 | constant | it ends | `not_there` |
| d | 1 | constant | it ends | `no_test` |

| other | table |
|---|---|
| a | `x_y_z` |
";
        let mut tests = Tests::parse(page).unwrap();
        let text = "#[test]\nfn a_test() {}\n\n#[tokio::test(start_paused = true)]\nasync fn an_async_test() {}\n\nfn no_test() {}\n";
        tests.look_in(Path::new("a.rs"), text);
        tests.look_in(Path::new("a.md"), "#[test]\nfn not_there() {}\n");
        assert_eq!(
            tests.faults(),
            [
                "docs/limits.md: the row of \"b\" names no test in its fifth column",
                "docs/limits.md: there is no test with the name no_test",
                "docs/limits.md: there is no test with the name not_there",
            ]
        );
        assert!(Tests::parse("").is_err());
    }
}
