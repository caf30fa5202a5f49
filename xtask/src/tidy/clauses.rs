//! Codes of clauses: each one that the repository cites is defined in docs/informer-semantics.md.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use regex::Regex;

/// The page that defines the clauses.
pub(super) const PAGE: &str = "docs/informer-semantics.md";

/// The clauses that the page defines.
pub(super) struct Clauses {
    codes: BTreeSet<String>,
    prefixes: BTreeSet<String>,
    cited: Regex,
    first_in_name: Regex,
    last_in_name: Regex,
}

// === impl Clauses ===

impl Clauses {
    /// Reads the definitions: list items that begin with the code in bold.
    pub(super) fn parse(page: &str) -> Result<Self> {
        let definition = Regex::new(r"(?m)^- \*\*(([A-Z]{2,3})-[0-9]{2})\*\*")?;
        let mut codes = BTreeSet::new();
        let mut prefixes = BTreeSet::new();
        for found in definition.captures_iter(page) {
            ensure!(codes.insert(found[1].to_owned()), "{PAGE} defines {} twice", &found[1]);
            prefixes.insert(found[2].to_owned());
        }
        ensure!(!codes.is_empty(), "{PAGE} defines no clauses");
        Ok(Self {
            codes,
            prefixes,
            cited: Regex::new(r"\b(?:KEY|[A-Z]{2})-[0-9]{2}\b")?,
            first_in_name: Regex::new(r"\bfn ([a-z]{2,3})_[0-9]{2}_\w+")?,
            last_in_name: Regex::new(r"\bfn \w+?_((?:(?:key|[a-z]{2})_[0-9]{2}_?)+)\(")?,
        })
    }

    /// Returns the codes in one file that the page does not define, and the names of tests that begin with a
    /// code.
    pub(super) fn faults(&self, file: &Path, text: &str) -> Vec<String> {
        let extension = file.extension().and_then(|extension| extension.to_str());
        // The tests of this rule contain faults.
        let is_exempt = file == Path::new("xtask/src/tidy/clauses.rs");
        if is_exempt || !matches!(extension, Some("rs" | "md" | "toml")) {
            return Vec::new();
        }
        let shown = file.display();
        let undefined = |code: &str| format!("{shown}: {PAGE} does not define {code}");
        let cited = self.cited.find_iter(text).map(|found| found.as_str().to_owned());
        let named = self.last_in_name.captures_iter(text).flat_map(|found| self.codes_of_name(&found[1]));
        let unknown: BTreeSet<_> = cited.chain(named).filter(|code| !self.codes.contains(code)).collect();
        let mut faults: Vec<_> = unknown.iter().map(|code| undefined(code)).collect();
        for found in self.first_in_name.captures_iter(text) {
            if self.prefixes.contains(&found[1].to_uppercase()) {
                faults
                    .push(format!("{shown}: {} must say what it tests before it names a clause", &found[0]));
            }
        }
        faults
    }

    /// Returns the codes at the end of a test's name, such as `rl_56_wl_02`. Other words before two digits
    /// are not codes.
    fn codes_of_name(&self, end: &str) -> Vec<String> {
        let parts: Vec<_> = end.split('_').collect();
        let pairs = parts.chunks_exact(2).map(|pair| (pair[0].to_uppercase(), pair[1]));
        pairs.filter(|(prefix, _)| self.prefixes.contains(prefix)).map(|(p, n)| format!("{p}-{n}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_codes_and_names_that_begin_with_a_code_are_found() {
        let clauses = Clauses::parse("- **RL-01** One.\n- **WL-02** Two, see RL-09.\n").expect("clauses");
        let text = "/// See RL-01, WL-03 and UTF-16.\nfn a_b_rl_01_wl_04() {}\nfn rl_01_a() {}\nfn takes_at_most_to_10() {}";
        let faults = clauses.faults(Path::new("a.rs"), text);
        assert_eq!(
            faults,
            [
                "a.rs: docs/informer-semantics.md does not define WL-03",
                "a.rs: docs/informer-semantics.md does not define WL-04",
                "a.rs: fn rl_01_a must say what it tests before it names a clause",
            ]
        );
    }

    #[test]
    fn a_code_that_is_defined_twice_is_an_error() {
        assert!(Clauses::parse("- **RL-01** One.\n- **RL-01** Two.\n").is_err());
    }
}
