//! Subjects of commits.

use std::process::Command;

use anyhow::Result;

use crate::checkout;
use crate::toolchain::command;

/// The last commit that was written before this rule.
const BEFORE_THE_RULE: &str = "604d52b5d";

/// Characters of the longest subject.
const MAX_SUBJECT: usize = 60;

/// Returns the subjects that are too long, since the rule was made. A checkout without that history has
/// nothing to check.
pub(super) fn faults() -> Result<Vec<String>> {
    let is_known =
        command::output(git().args(["merge-base", "--is-ancestor", BEFORE_THE_RULE, "HEAD"])).is_ok();
    if !is_known {
        return Ok(Vec::new());
    }
    let range = format!("{BEFORE_THE_RULE}..HEAD");
    let log = command::output(git().args(["log", "--no-merges", "--format=%h %s", &range]))?;
    Ok(log.lines().filter_map(fault).collect())
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(checkout::root());
    git
}

fn fault(line: &str) -> Option<String> {
    let (commit, subject) = line.split_once(' ')?;
    let n_chars = subject.chars().count();
    (n_chars > MAX_SUBJECT).then(|| {
        format!("commit {commit}: a subject of {n_chars} characters; the limit is {MAX_SUBJECT}: {subject}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_above_the_limit_is_a_fault() {
        assert_eq!(fault(&format!("abc {}", "x".repeat(60))), None);
        assert!(fault(&format!("abc {}", "x".repeat(61))).is_some());
    }
}
