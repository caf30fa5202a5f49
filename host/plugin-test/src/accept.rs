//! Writes what happened into the file of a case.
//!
//! Only the lines of `expect` change, so that comments and the form of everything else stay.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::run::{Checkpoint, Place, Ran};

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The file cannot be read or written.
    #[error("cannot change {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The lines of `expect` cannot be found.
    #[error(
        "cannot change {}: {place} has no lines of its own. Write steps as lists with `-`, and each key on a line of its own",
        path.display()
    )]
    Form {
        /// The path.
        path: PathBuf,
        /// The place.
        place: Place,
    },
    /// An object exists, or does not, against what the case says.
    #[error("cannot change {}: {place}: {}", path.display(), by_hand(key))]
    Object {
        /// The path.
        path: PathBuf,
        /// The place.
        place: Place,
        /// The key of `expect`.
        key: String,
    },
}

fn by_hand(key: &str) -> &'static str {
    match key {
        "gone" => "an object that exists cannot be accepted as gone: change `gone` by hand",
        "objects" => "an object that does not exist cannot be accepted: change `objects` or `gone` by hand",
        _ => "what happened cannot be accepted: change `expect` by hand",
    }
}

/// Writes what happened into the file. Returns whether the file changed.
///
/// # Errors
///
/// When the file cannot be changed. Then it is as it was.
pub fn accept(case: &Case, ran: &Ran) -> Result<bool, AcceptError> {
    let path = &case.path;
    let io = |source| AcceptError::Io { path: path.clone(), source };
    let mut text = std::fs::read_to_string(path).map_err(io)?;
    let before = text.clone();
    let expected = |place| match place {
        Place::Start => case.expect.as_ref(),
        Place::Step(idx) => case.steps.get(idx).and_then(|step| step.expect.as_ref()),
    };
    for Checkpoint { place, unacceptable, .. } in &ran.checkpoints {
        if let Some(key) = unacceptable.clone() {
            return Err(AcceptError::Object { path: path.clone(), place: *place, key });
        }
    }
    let mut changed = Place::Start;
    for Checkpoint { place, accepted, .. } in &ran.checkpoints {
        if accepted.as_ref() != expected(*place) {
            let new = replaced(&text, *place, accepted.as_ref());
            let new = new.filter(|new| serde_norway::from_str::<Value>(new).is_ok());
            text = new.ok_or_else(|| AcceptError::Form { path: path.clone(), place: *place })?;
            changed = *place;
        }
    }
    if text == before {
        return Ok(false);
    }
    // Written beside the file and read as a case first, so that a defect here damages nothing.
    let partial = path.with_extension("partial");
    std::fs::write(&partial, &text).map_err(io)?;
    let is_right = Case::read(&partial).is_ok_and(|new| fits(&new, ran));
    let done = if is_right { std::fs::rename(&partial, path) } else { std::fs::remove_file(&partial) };
    done.map_err(io)?;
    if is_right { Ok(true) } else { Err(AcceptError::Form { path: path.clone(), place: changed }) }
}

/// Returns whether a case expects what happened.
fn fits(case: &Case, ran: &Ran) -> bool {
    ran.checkpoints.iter().all(|Checkpoint { place, accepted, .. }| match place {
        Place::Start => case.expect == *accepted,
        Place::Step(idx) => case.steps.get(*idx).is_some_and(|step| step.expect == *accepted),
    })
}

/// Returns the text with another `expect` at a place.
fn replaced(text: &str, place: Place, expect: Option<&Map<String, Value>>) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let (range, indent) = match place {
        Place::Start => ((0, lines.len()), 0),
        Place::Step(idx) => step(&lines, idx)?,
    };
    let at = (range.0..range.1).find(|idx| is_key(lines[*idx], indent, "expect"));
    let (from, to) = match at {
        Some(at) => (at, at + 1 + of_block(&lines[at + 1..range.1], indent)),
        // At the start before the steps, in a step at its end.
        None if place == Place::Start => {
            let steps = lines.iter().position(|line| is_key(line, 0, "steps")).unwrap_or(lines.len());
            (steps, steps)
        }
        None => {
            let end = range.0 + lines[range.0..range.1].iter().rposition(|line| is_content(line))? + 1;
            (end, end)
        }
    };
    let mut new: Vec<String> = lines[..from].iter().map(|line| (*line).to_owned()).collect();
    if let Some(expect) = expect {
        let yaml = serde_norway::to_string(&json!({ "expect": expect })).ok()?;
        new.extend(yaml.lines().map(|line| format!("{}{line}", " ".repeat(indent))));
    }
    new.extend(lines[to..].iter().map(|line| (*line).to_owned()));
    Some(new.join("\n") + "\n")
}

/// Returns the lines of a step, and the indent of its keys.
fn step(lines: &[&str], idx: usize) -> Option<((usize, usize), usize)> {
    let steps = lines.iter().position(|line| is_key(line, 0, "steps"))?;
    let first = steps + 1 + lines[steps + 1..].iter().position(|line| is_content(line))?;
    let dash = indent(lines[first]);
    let is_item = |line: &str| is_content(line) && indent(line) == dash && line[dash..].starts_with("- ");
    // The list ends at a line that is indented less, or as much without being an item.
    let is_after =
        |line: &str| is_content(line) && (indent(line) < dash || indent(line) == dash && !is_item(line));
    let end = lines[first..].iter().position(|line| is_after(line)).map_or(lines.len(), |at| first + at);
    let mut items = (first..end).filter(|at| is_item(lines[*at]));
    let begin = items.nth(idx)?;
    let next = items.next().unwrap_or(end);
    let keys = dash + 1 + indent(&lines[begin][dash + 1..]);
    Some(((begin, next), keys))
}

/// Returns the number of lines that belong to the value of a key at `indent`.
fn of_block(lines: &[&str], indent_of_key: usize) -> usize {
    let is_in = |line: &str| {
        let list_item = indent(line) == indent_of_key && line[indent_of_key..].starts_with("- ");
        indent(line) > indent_of_key || list_item
    };
    let end = lines.iter().position(|line| is_content(line) && !is_in(line)).unwrap_or(lines.len());
    // Empty lines and comments before the next key belong to that.
    lines[..end].iter().rposition(|line| is_content(line) && is_in(line)).map_or(0, |last| last + 1)
}

fn is_key(line: &str, at: usize, key: &str) -> bool {
    let rest = line.get(at..).and_then(|rest| rest.strip_prefix(key));
    indent(line) == at && rest.is_some_and(|rest| rest.starts_with(':'))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = "\
# Shows something.
cluster: []
steps:
# The first.
- advance: 1m   # a minute
  expect:
    writes:
    - delete: v1/pods a

# The second.
- advance: 2m
";

    fn expect(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn only_the_lines_of_the_expectation_change() {
        let writes = expect(json!({"writes": []}));
        let first = replaced(CASE, Place::Step(0), Some(&writes)).unwrap();
        assert_eq!(first, CASE.replace("    writes:\n    - delete: v1/pods a\n", "    writes: []\n"));
        let none = replaced(CASE, Place::Step(0), None).unwrap();
        assert_eq!(none, CASE.replace("  expect:\n    writes:\n    - delete: v1/pods a\n", ""));
        let second = replaced(CASE, Place::Step(1), Some(&writes)).unwrap();
        assert_eq!(second, format!("{CASE}  expect:\n    writes: []\n"));
        let start = replaced(CASE, Place::Start, Some(&writes)).unwrap();
        assert_eq!(start, CASE.replace("steps:\n", "expect:\n  writes: []\nsteps:\n"));
    }

    #[test]
    fn a_place_without_lines_of_its_own_is_not_found() {
        let writes = expect(json!({"writes": []}));
        assert_eq!(replaced("steps: [{advance: 1m}]\n", Place::Step(0), Some(&writes)), None);
        assert_eq!(replaced(CASE, Place::Step(2), Some(&writes)), None);
    }

    #[test]
    fn a_case_is_written_as_it_happened_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let accepted = Some(expect(json!({"writes": [{"delete": "v1/pods b"}]})));
        let checkpoints = |places: &[Place]| Ran {
            checkpoints: places
                .iter()
                .map(|place| Checkpoint {
                    place: *place,
                    differences: vec![],
                    errors: vec![],
                    failures: vec![],
                    accepted: accepted.clone(),
                    unacceptable: None,
                })
                .collect(),
        };
        std::fs::write(&path, CASE).unwrap();
        let case = Case::read(&path).unwrap();
        let both = checkpoints(&[Place::Step(0), Place::Step(1)]);
        assert!(accept(&case, &both).unwrap());
        let again = Case::read(&path).unwrap();
        assert_eq!([&again.steps[0].expect, &again.steps[1].expect], [&accepted, &accepted]);
        assert!(!accept(&again, &both).unwrap(), "nothing is left to change");

        for flow in ["steps: [{advance: 1m}]\n", "steps:\n- {advance: 1m}\n"] {
            std::fs::write(&path, flow).unwrap();
            let error = accept(&Case::read(&path).unwrap(), &checkpoints(&[Place::Step(0)])).unwrap_err();
            assert!(error.to_string().contains("steps[0] has no lines of its own"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), flow);
        }

        std::fs::write(&path, CASE).unwrap();
        for (key, part) in [
            ("objects", "steps[0]: an object that does not exist cannot be accepted: change `objects` or"),
            ("gone", "steps[0]: an object that exists cannot be accepted as gone: change `gone` by hand"),
        ] {
            let mut ran = both.clone();
            ran.checkpoints[0].unacceptable = Some(key.to_owned());
            let error = accept(&case, &ran).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), CASE);
        }
    }
}
