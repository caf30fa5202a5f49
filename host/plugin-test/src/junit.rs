//! A report of cases for CI, in the format of JUnit.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// One case in a report.
#[derive(Debug, Clone)]
pub struct Line {
    /// The plugin.
    pub plugin: String,
    /// The case.
    pub case: String,
    /// How long it took.
    pub took: Duration,
    /// Why it failed: a line, and the details.
    pub failure: Option<(String, String)>,
}

/// Returns a report as XML.
///
/// # Errors
///
/// When a text cannot be written as XML.
pub fn report(lines: &[Line]) -> Result<String, quick_junit::SerializeError> {
    let mut report = Report::new("oarlock plugin test");
    let mut plugins: Vec<&str> = lines.iter().map(|line| line.plugin.as_str()).collect();
    plugins.dedup();
    for plugin in plugins {
        let mut suite = TestSuite::new(plugin);
        for Line { case, took, failure, .. } in lines.iter().filter(|line| line.plugin == plugin) {
            let mut status = TestCaseStatus::success();
            if let Some((message, details)) = failure {
                status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(message.as_str()).set_description(details.as_str());
            }
            let mut test = TestCase::new(case.as_str(), status);
            test.set_time(*took);
            suite.add_test_case(test);
        }
        report.add_test_suite(suite);
    }
    report.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_its_differences() {
        let line = |case: &str, failure| Line {
            plugin: "expiry".to_owned(),
            case: case.to_owned(),
            took: Duration::from_millis(12),
            failure,
        };
        let failure = Some(("1 difference".to_owned(), "- a\n+ <b>".to_owned()));
        let text = report(&[line("expires", None), line("stays", failure)]).unwrap();
        for part in [
            "<testsuites name=\"oarlock plugin test\" tests=\"2\" failures=\"1\"",
            "<testcase name=\"expires\" time=\"0.012\"",
            "<failure message=\"1 difference\">- a\n+ &lt;b&gt;</failure>",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
