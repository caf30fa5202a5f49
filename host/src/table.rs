//! Tables in the form of kubectl: columns of text with three spaces between them, without borders.

use oarlock_controller::report::OneLine;
use unicode_width::UnicodeWidthStr;

/// The space between columns.
const GAP: usize = 3;

/// The headers of columns that say how long ago something was.
const AGES: [&str; 3] = ["AGE", "LAST SEEN", "SINCE"];

/// A table. Cells may have any text: characters that control a terminal are escaped.
#[derive(Debug, Default)]
pub(crate) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// What each row stands for beside its cells, such as a moment that a cell shows as an age.
    marks: Vec<String>,
}

/// The widths of columns, which only grow: for a table that is printed row by row.
#[derive(Debug, Default)]
pub(crate) struct Widths(Vec<usize>);

// === impl Table ===

impl Table {
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new(), marks: Vec::new() }
    }

    /// Adds a row with a cell for each header. An empty cell is shown as `<none>`, as in kubectl.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.marked_row(cells, String::new());
    }

    /// Adds a row that is another one when its mark is another one.
    pub(crate) fn marked_row(&mut self, cells: impl IntoIterator<Item = String>, mark: String) {
        let shown =
            |cell: String| if cell.is_empty() { "<none>".to_owned() } else { OneLine(cell).to_string() };
        self.rows.push(cells.into_iter().map(shown).collect());
        self.marks.push(mark);
    }

    /// Puts a column for the namespace in front: the first cells are NAMESPACE/NAME.
    pub(crate) fn with_namespaces(mut self) -> Self {
        self.headers.insert(0, "NAMESPACE");
        for row in &mut self.rows {
            let first = row.first().cloned().unwrap_or_default();
            let (namespace, name) = first.split_once('/').unwrap_or(("<none>", &first));
            row.splice(..1, [namespace.to_owned(), name.to_owned()]);
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the cells of each row and its mark, without the cells that say how long ago something was.
    pub(crate) fn rows_without_ages(&self) -> Vec<Vec<String>> {
        let is_lasting: Vec<bool> = self.headers.iter().map(|header| !AGES.contains(header)).collect();
        let rows = self.rows.iter().zip(&self.marks).map(|(row, mark)| {
            let cells = row.iter().zip(&is_lasting).filter(|(_, is_lasting)| **is_lasting);
            cells.map(|(cell, _)| cell).chain([mark]).cloned().collect()
        });
        rows.collect()
    }

    /// Returns the lines, without a newline at their ends.
    pub(crate) fn lines(&self, with_headers: bool) -> Vec<String> {
        self.lines_in(&mut Widths::default(), with_headers)
    }

    /// Returns the lines with columns of at least these widths.
    pub(crate) fn lines_in(&self, widths: &mut Widths, with_headers: bool) -> Vec<String> {
        let headers: Vec<String> = self.headers.iter().map(|header| (*header).to_owned()).collect();
        let headers = with_headers.then_some(&headers).into_iter();
        let rows: Vec<_> = headers.chain(&self.rows).collect();
        widths.0.resize(self.headers.len().max(widths.0.len()), 0);
        for row in &rows {
            for (width, cell) in widths.0.iter_mut().zip(row.iter()) {
                *width = cell.width().max(*width);
            }
        }
        rows.into_iter().map(|row| line(row, &widths.0)).collect()
    }

    /// Returns the table as text.
    #[cfg(test)]
    pub(crate) fn text(&self, with_headers: bool) -> String {
        text_of(self.lines(with_headers))
    }
}

pub(crate) fn text_of(lines: Vec<String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Cuts a line to a width, so that a terminal does not wrap it.
pub(crate) fn cut(line: &str, width: usize) -> &str {
    let mut end = 0;
    for (start, character) in line.char_indices() {
        let next = start + character.len_utf8();
        if line[..next].width() > width {
            break;
        }
        end = next;
    }
    &line[..end]
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', width + GAP - cell.width().min(width + GAP)));
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "PHASE", "AGE"]);
        table.row(["mirror".into(), "serving".into(), "3m".into()]);
        table.row(["größe漢".into(), String::new(), "3m\u{1b}[2J\n".into()]);
        table
    }

    #[test]
    fn columns_line_up_and_no_cell_controls_the_terminal() {
        insta::assert_snapshot!(table().text(true), @r"
        NAME      PHASE     AGE
        mirror    serving   3m
        größe漢   <none>    3m\u{1b}[2J\n
        ");
        insta::assert_snapshot!(table().text(false), @r"
        mirror    serving   3m
        größe漢   <none>    3m\u{1b}[2J\n
        ");
    }

    #[test]
    fn rows_that_are_printed_later_line_up_with_those_before() {
        let mut widths = Widths::default();
        let before = table().lines_in(&mut widths, true);
        let mut later = Table::new(&["NAME", "PHASE", "AGE"]);
        later.row(["a".into(), "b".into(), "c".into()]);
        let later = later.lines_in(&mut widths, false);
        assert_eq!(before[0].find("AGE"), later[0].find('c'));
    }

    #[test]
    fn namespaces_get_a_column_of_their_own() {
        let mut table = Table::new(&["NAME", "AGE"]);
        table.row(["team-a/mirror".into(), "3m".into()]);
        table.row(["census".into(), "3m".into()]);
        insta::assert_snapshot!(table.with_namespaces().text(true), @r"
        NAMESPACE   NAME     AGE
        team-a      mirror   3m
        <none>      census   3m
        ");
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!((cut("abc", 2), cut("abc", 9), cut("漢漢", 3), cut("", 0)), ("ab", "abc", "漢", ""));
    }
}
