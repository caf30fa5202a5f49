//! The results of all suites. A test that panics with `SKIPPED: REASON` is skipped: it lacks something that
//! this machine does not have.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use oarlock_built_guests::SKIPPED;

/// All suites, in the order of their runs.
#[derive(Default)]
pub(crate) struct Summary(Vec<Suite>);

/// One test binary.
pub(crate) struct Suite {
    name: String,
    begun: Instant,
    took: Duration,
    passed: u32,
    failed: u32,
    ignored: u32,
    /// Names of failed tests.
    failures: Vec<String>,
    /// The tests that lack something, and what. The test harness takes them for failed.
    skipped: BTreeMap<String, String>,
    /// The test whose output is read.
    shown: Option<String>,
    success: bool,
}

// === impl Summary ===

impl Summary {
    pub(crate) fn begin(&mut self, name: &str) -> &mut Suite {
        let suite = Suite {
            name: name.to_owned(),
            begun: Instant::now(),
            took: Duration::ZERO,
            passed: 0,
            failed: 0,
            ignored: 0,
            failures: Vec::new(),
            skipped: BTreeMap::new(),
            shown: None,
            success: false,
        };
        self.0.push_mut(suite)
    }

    /// Returns whether every suite passed and at least one test ran.
    pub(crate) fn is_success(&self) -> bool {
        self.0.iter().all(|suite| suite.success) && self.0.iter().any(|suite| suite.passed > 0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<44} {:>7} {:>7} {:>8} {:>9}", "suite", "passed", "failed", "skipped", "seconds")?;
        for suite in self.0.iter().filter(|suite| !suite.success || suite.passed > 0) {
            let Suite { name, took, passed, failed, ignored, .. } = suite;
            writeln!(f, "{name:<44} {passed:>7} {failed:>7} {ignored:>8} {:>9.1}", took.as_secs_f32())?;
        }
        for suite in &self.0 {
            for (test, reason) in &suite.skipped {
                writeln!(f, "skipped: {} {test}: {reason}", suite.name)?;
            }
        }
        for suite in &self.0 {
            for failure in &suite.failures {
                writeln!(f, "failed: {} {failure}", suite.name)?;
            }
            if !suite.success && suite.failures.is_empty() {
                writeln!(f, "failed: {} exited with an error", suite.name)?;
            }
        }
        let sum = |count: fn(&Suite) -> u32| self.0.iter().map(count).sum::<u32>();
        let failed =
            sum(|suite| suite.failed).max(self.0.iter().filter(|suite| !suite.success).count() as u32);
        let (passed, ignored) = (sum(|suite| suite.passed), sum(|suite| suite.ignored));
        write!(f, "\n{passed} passed, {failed} failed, {ignored} skipped")
    }
}

// === impl Suite ===

impl Suite {
    /// Reads one line of the suite's output.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            let count = |word: &str| {
                let before = counts.split(word).next().unwrap_or_default();
                before.rsplit([' ', ';', '.']).find_map(|number| number.parse::<u32>().ok()).unwrap_or(0)
            };
            self.passed += count(" passed");
            self.failed += count(" failed");
            self.ignored += count(" ignored");
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.shown = Some(name.to_owned());
        } else if let Some(reason) = line.strip_prefix(SKIPPED)
            && let Some(test) = self.shown.take()
        {
            self.skipped.insert(test, reason.to_owned());
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
    }

    pub(crate) fn end(&mut self, success: bool) {
        self.took = self.begun.elapsed();
        let n_skipped = self.skipped.len() as u32;
        // A suite that ended before its result is no success.
        self.success = success || n_skipped > 0 && self.failed == n_skipped;
        self.failed -= n_skipped.min(self.failed);
        self.ignored += n_skipped;
        self.failures.retain(|test| !self.skipped.contains_key(test));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_the_results_of_the_suites() {
        let mut summary = Summary::default();
        let suite = summary.begin("informer");
        suite.read("test queue::pops ... ok");
        suite.read(
            "test result: ok. 41 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
        );
        suite.end(true);
        assert!(summary.is_success());
        let suite = summary.begin("plugin");
        suite.read("test limits::bite ... FAILED");
        suite.read(
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2s",
        );
        suite.end(false);
        assert!(!summary.is_success());
        let text = summary.to_string();
        assert!(text.contains("failed: plugin limits::bite"), "{text}");
        assert!(text.ends_with("\n44 passed, 1 failed, 1 skipped"), "{text}");
    }

    #[test]
    fn a_test_that_lacks_something_is_skipped_with_the_reason() {
        let read = |lines: &[&str]| {
            let mut summary = Summary::default();
            let suite = summary.begin("plugin");
            lines.iter().for_each(|line| suite.read(line));
            suite.end(false);
            summary
        };
        let skips = [
            "test languages::go ... FAILED",
            "---- languages::go stdout ----",
            "thread 'languages::go' (7) panicked at tests/built-guests/src/lib.rs:53:5:",
            "SKIPPED: Go: go 1.25 or newer: it is missing; get it: brew install go",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ];
        let end = "test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out";
        let summary = read(&[&skips[..], &[end]].concat());
        assert!(summary.is_success());
        let text = summary.to_string();
        assert!(
            text.contains("skipped: plugin languages::go: Go: go 1.25 or newer: it is missing"),
            "{text}"
        );
        assert!(!text.contains("failed: "), "{text}");
        assert!(text.ends_with("\n3 passed, 0 failed, 2 skipped"), "{text}");

        // Another test failed, or the suite ended early.
        let failed = "test limits::bite ... FAILED";
        let end = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let summary = read(&[&skips[..], &[failed, end]].concat());
        assert!(!summary.is_success());
        let text = summary.to_string();
        assert!(text.contains("failed: plugin limits::bite"), "{text}");
        assert!(text.ends_with("\n3 passed, 1 failed, 1 skipped"), "{text}");
        assert!(!read(&skips).is_success());
    }

    #[test]
    fn a_suite_that_fails_without_a_result_line_is_a_failure() {
        let mut summary = Summary::default();
        summary.begin("crash").end(false);
        assert!(summary.to_string().contains("failed: crash exited with an error"));
        assert!(summary.to_string().ends_with("0 passed, 1 failed, 0 skipped"));
    }
}
