//! The lines of `oarlock plugin test`.

use std::{io::Write as _, path::Path, time::Duration};

use oarlock_controller::{
    config::PluginFile,
    report::{Counted, Lines},
};
use oarlock_plugin_test::{CaseError, Checkpoint, Ran, RunError};

use crate::failure::{Ended, Failure};

/// How a case ended.
pub(super) enum Verdict {
    Passed,
    /// What happened was written into the file.
    Accepted,
    Differs(Ran),
    NotRun(RunError),
    /// The file is no case, or cannot be read.
    Unreadable(CaseError),
}

/// Prints cases as they end, and counts them.
#[derive(Default)]
pub(super) struct Shown {
    passed: usize,
    failed: usize,
    accepted: usize,
    /// A case failed by differences, which can be accepted.
    differs: bool,
    /// The errors of files that are no cases.
    unreadable: Vec<String>,
}

// === impl Verdict ===

impl Verdict {
    /// Returns why the case failed: in one line, and in full.
    pub(super) fn failure(&self) -> Option<(String, String)> {
        match self {
            Self::Passed | Self::Accepted => None,
            Self::Differs(ran) => {
                let n = ran.checkpoints.iter().map(|it| it.differences.len()).sum::<usize>();
                Some((Counted(n, "difference").to_string(), details(&ran.checkpoints)))
            }
            Self::NotRun(error) => {
                let hint = error.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
                let before = match error {
                    RunError::Request { before, .. } => details(before),
                    _ => String::new(),
                };
                Some(("not run".to_owned(), format!("{before}{}\n{hint}", Lines(error))))
            }
            Self::Unreadable(error) => Some(("not read".to_owned(), format!("{}\n", Lines(error)))),
        }
    }
}

/// Returns each difference with its place, and the failed calls and logged errors that may have caused it.
fn details(checkpoints: &[Checkpoint]) -> String {
    let mut text = String::new();
    for checkpoint in checkpoints {
        let Checkpoint { place, differences, failures, .. } = checkpoint;
        for failure in failures {
            text += &format!("{place}: a call failed, {}\n", Lines(failure));
        }
        if differences.is_empty() && failures.is_empty() {
            continue;
        }
        if !differences.is_empty() {
            text += &format!("{place}: - is expected, + happened\n");
        }
        for difference in differences {
            text += &difference.to_string();
        }
        for error in &checkpoint.errors {
            text += &format!("  the plugin logged an error: {}\n", Lines(error));
        }
    }
    text
}

// === impl Shown ===

impl Shown {
    pub(super) fn plugin(&self, file: &PluginFile, n_cases: usize) -> Ended {
        print(&format!("{}: {}\n", file.name, Counted(n_cases, "case")))
    }

    pub(super) fn case(&mut self, name: &str, path: &Path, verdict: &Verdict, took: Duration) -> Ended {
        let (counter, shown) = match verdict {
            Verdict::Passed => (&mut self.passed, "ok"),
            Verdict::Accepted => (&mut self.accepted, "accepted"),
            Verdict::Differs(_) | Verdict::NotRun(_) | Verdict::Unreadable(_) => (&mut self.failed, "FAILED"),
        };
        *counter += 1;
        self.differs |= matches!(verdict, Verdict::Differs(_));
        if let Verdict::Unreadable(error) = verdict {
            self.unreadable.push(error.to_string());
        }
        let mut text = format!("  {shown:<8}  {name:<40} {:>6} ms\n", took.as_millis());
        if let Some((_, details)) = verdict.failure() {
            text += &format!("    {}\n", path.display());
            for line in details.lines() {
                text += &format!("    {line}\n");
            }
        }
        print(&text)
    }

    /// Prints the totals. Fails if a case failed.
    pub(super) fn end(&self) -> Ended {
        let Self { passed, failed, accepted, differs, unreadable } = self;
        let of_accepted = if *accepted == 0 { String::new() } else { format!(", {accepted} accepted") };
        print(&format!("{passed} passed, {failed} failed{of_accepted}\n"))?;
        if *failed == 0 {
            return Ok(());
        }
        // The caller has to change these files, whatever the others do.
        if let [first, others @ ..] = &unreadable[..] {
            return Err(Failure::caller(anyhow::anyhow!("{first}")).and(others.to_vec()));
        }
        let hint = differs.then_some(
            "correct the plugin or the case; `--accept` writes what happened into the cases, `--name PART` runs only some",
        );
        Err(Failure::running(anyhow::anyhow!("{} failed", Counted(*failed, "case"))).hint_if(hint))
    }
}

fn print(text: &str) -> Ended {
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)
}
