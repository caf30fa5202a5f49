//! Standard output of the commands that ask a host.

use std::io::{self, Write};
use std::time::Duration;

use oarlock_controller::report::{OneLine, write_json, write_json_pretty};
use oarlock_guest_build::progress;
use serde_json::Value;

use crate::args::{AnswerFormat, AnswerOutput, ListFormat, ListOutput};
use crate::failure::{Ended, Failure};
use crate::table::{Table, Widths, text_of};

/// The interval at which `--watch` asks the host.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The line between two documents of YAML.
pub(super) const DOCUMENT_END: &str = "---";

/// What a list shows of one answer of the host.
pub(crate) struct Shown {
    pub(crate) json: Value,
    pub(crate) table: Table,
    pub(crate) names: Vec<String>,
}

/// Prints a list, and with `--watch` what changes in it.
pub(crate) struct ListPrinter {
    output: ListOutput,
    widths: Widths,
    /// What each line of the answer before showed, without its ages.
    before: Vec<Vec<String>>,
    is_first: bool,
    /// Whether the table of the answer before was empty.
    was_empty: bool,
}

/// Prints a text. Fails quietly if standard output is closed.
pub(crate) fn print(text: &str) -> Ended {
    print_bytes(text.as_bytes())
}

/// Prints bytes as they come, which may end within a character.
pub(crate) fn print_bytes(bytes: &[u8]) -> Ended {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::output)
}

/// Returns a line for each name. A name may have any text: characters that control a terminal are escaped.
pub(super) fn names(names: &[String]) -> Vec<String> {
    names.iter().map(|name| OneLine(name).to_string()).collect()
}

/// Returns JSON as kubectl prints it, with a newline at the end.
pub(crate) fn pretty(json: &Value) -> Result<String, Failure> {
    let mut text = Vec::new();
    write_json_pretty(&mut text, json).map_err(Failure::running)?;
    text.push(b'\n');
    String::from_utf8(text).map_err(Failure::running)
}

/// Returns JSON in one line, with a newline at the end.
pub(super) fn line(json: &Value) -> Result<String, Failure> {
    let mut text = Vec::new();
    write_json(&mut text, json).map_err(Failure::running)?;
    text.push(b'\n');
    String::from_utf8(text).map_err(Failure::running)
}

/// Prints the answer to a command: in a format, or as the line for people.
pub(crate) fn print_answer(output: AnswerOutput, answer: &Value, line: impl FnOnce() -> String) -> Ended {
    match output.output {
        Some(AnswerFormat::Json) => print(&pretty(answer)?),
        Some(AnswerFormat::Yaml) => print(&yaml(answer)?),
        None => print(&line()),
    }
}

/// Returns JSON as YAML, with a newline at the end. YAML escapes characters that control a terminal.
pub(crate) fn yaml(json: &Value) -> Result<String, Failure> {
    oarlock_controller::yaml::to_string(json).map_err(Failure::running)
}

// === impl ListPrinter ===

impl ListPrinter {
    pub(crate) fn new(output: ListOutput) -> Self {
        Self { output, widths: Widths::default(), before: Vec::new(), is_first: true, was_empty: false }
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.output.output == Some(ListFormat::Wide)
    }

    /// Prints an answer: all of it the first time, then the rows in which more than an age changed.
    pub(crate) fn print(&mut self, shown: &Shown, nothing: &str) -> Ended {
        let changed = self.changed(shown, nothing)?;
        print(&text_of(changed))
    }

    fn changed(&mut self, shown: &Shown, nothing: &str) -> Result<Vec<String>, Failure> {
        let is_first = std::mem::take(&mut self.is_first);
        let mut headers = 0;
        let lines = match self.output.output {
            Some(ListFormat::Json) => vec![pretty(&shown.json)?.trim_end().to_owned()],
            Some(ListFormat::Yaml) => vec![yaml(&shown.json)?.trim_end().to_owned()],
            Some(ListFormat::Name) => names(&shown.names),
            Some(ListFormat::Wide) | None => {
                if self.becomes_empty(&shown.table) {
                    progress::say(nothing);
                }
                let with_headers = is_first && !self.output.no_headers && !shown.table.is_empty();
                // A table that begins empty gets its headers with the first row.
                self.is_first = is_first && shown.table.is_empty();
                headers = usize::from(with_headers);
                shown.table.lines_in(&mut self.widths, with_headers)
            }
        };
        let now = match self.output.output {
            Some(ListFormat::Json | ListFormat::Yaml | ListFormat::Name) => {
                lines.iter().map(|line| vec![line.clone()]).collect()
            }
            Some(ListFormat::Wide) | None => shown.table.rows_without_ages(),
        };
        let before = std::mem::replace(&mut self.before, now);
        let is_new = |at: usize| at < headers || !before.contains(&self.before[at - headers]);
        let mut new: Vec<_> =
            lines.into_iter().enumerate().filter(|(at, _)| is_new(*at)).map(|(_, line)| line).collect();
        if self.output.output == Some(ListFormat::Yaml) && !is_first && !new.is_empty() {
            new.insert(0, DOCUMENT_END.to_owned());
        }
        Ok(new)
    }

    /// Returns whether a table is empty and that of the answer before, if there was one, was not.
    fn becomes_empty(&mut self, table: &Table) -> bool {
        let was_empty = std::mem::replace(&mut self.was_empty, table.is_empty());
        table.is_empty() && !was_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_controls_the_terminal() {
        let shown = names(&["mirror sources a\u{1b}[2J\nb".to_owned(), "plugin/a".to_owned()]);
        assert_eq!(shown, [r"mirror sources a\u{1b}[2J\nb", "plugin/a"]);
    }

    #[test]
    fn documents_of_a_watched_list_in_yaml_are_separate() {
        let output = ListOutput { output: Some(ListFormat::Yaml), no_headers: false, watch: true };
        let mut printer = ListPrinter::new(output);
        let mut changed = |phase: &str| {
            let json = serde_json::json!({"name": "a", "phase": phase});
            let shown = Shown { json, table: Table::default(), names: Vec::new() };
            text_of(printer.changed(&shown, "nothing").unwrap())
        };
        assert_eq!(changed("loading"), "name: a\nphase: loading\n");
        assert_eq!(changed("loading"), "");
        assert_eq!(changed("serving"), "---\nname: a\nphase: serving\n");
    }

    #[test]
    fn a_watched_list_says_once_that_it_is_empty_until_it_had_a_row() {
        let output = ListOutput { output: None, no_headers: false, watch: true };
        let mut printer = ListPrinter::new(output);
        let mut becomes_empty = |rows: &[&str]| {
            let mut table = Table::new(&["NAME"]);
            rows.iter().for_each(|row| table.row([(*row).to_owned()]));
            printer.becomes_empty(&table)
        };
        assert!(becomes_empty(&[]));
        assert!(!becomes_empty(&[]));
        assert!(!becomes_empty(&["a"]));
        assert!(becomes_empty(&[]));
        assert!(!becomes_empty(&[]));
    }

    #[test]
    fn a_watched_list_prints_a_row_again_only_if_more_than_its_age_changed() {
        let output = ListOutput { output: None, no_headers: false, watch: true };
        let mut printer = ListPrinter::new(output);
        let mut changed = |rows: &[[&str; 3]]| {
            let mut table = Table::new(&["NAME", "PHASE", "AGE"]);
            rows.iter().for_each(|row| table.row(row.map(str::to_owned)));
            printer.changed(&Shown { json: Value::Null, table, names: Vec::new() }, "nothing").unwrap()
        };
        assert_eq!(changed(&[]), [""; 0]);
        assert_eq!(changed(&[["a", "serving", "1s"]]), ["NAME   PHASE     AGE", "a      serving   1s"]);
        assert_eq!(changed(&[["a", "serving", "2s"]]), [""; 0]);
        assert_eq!(changed(&[["a", "serving", "3s"], ["b", "loading", "0s"]]), ["b      loading   0s"]);
        assert_eq!(changed(&[["a", "failed", "4s"], ["b", "loading", "1s"]]), ["a      failed    4s"]);
    }
}
