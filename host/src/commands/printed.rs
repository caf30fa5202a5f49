//! Standard output of the commands that ask a host.

use std::io::{self, Write};
use std::time::Duration;

use oarlock_controller::report::{OneLine, write_json_pretty};
use serde_json::Value;

use crate::args::{ListFormat, ListOutput};
use crate::failure::{Ended, Failure};
use crate::table::{Table, Widths, text_of};

/// The interval at which `--watch` asks the host.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

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
    before: Vec<String>,
    is_first: bool,
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

/// Returns JSON as YAML, with a newline at the end. YAML escapes characters that control a terminal.
pub(crate) fn yaml(json: &Value) -> Result<String, Failure> {
    serde_norway::to_string(json).map_err(Failure::running)
}

// === impl ListPrinter ===

impl ListPrinter {
    pub(crate) fn new(output: ListOutput) -> Self {
        Self { output, widths: Widths::default(), before: Vec::new(), is_first: true }
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.output.output == Some(ListFormat::Wide)
    }

    /// Prints an answer: all of it the first time, then the rows that changed.
    pub(crate) fn print(&mut self, shown: &Shown, nothing: &str) -> Ended {
        let is_first = std::mem::take(&mut self.is_first);
        let lines = match self.output.output {
            Some(ListFormat::Json) => vec![pretty(&shown.json)?.trim_end().to_owned()],
            Some(ListFormat::Yaml) => vec![yaml(&shown.json)?.trim_end().to_owned()],
            Some(ListFormat::Name) => names(&shown.names),
            Some(ListFormat::Wide) | None => {
                if is_first && shown.table.is_empty() {
                    eprintln!("{nothing}");
                }
                let with_headers = is_first && !self.output.no_headers && !shown.table.is_empty();
                // A table that begins empty gets its headers with the first row.
                self.is_first = is_first && shown.table.is_empty();
                shown.table.lines_in(&mut self.widths, with_headers)
            }
        };
        let changed = lines.iter().filter(|line| !self.before.contains(line)).cloned().collect();
        let printed = print(&text_of(changed));
        self.before = lines;
        printed
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
}
