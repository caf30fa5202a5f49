//! The table of languages.

use super::super::table::{laid_out, shown};
use crate::bench::figures::Figures;

/// The title and the metric of each row.
const ROWS: [(&str, &str); 10] = [
    ("lines of code", "lines_of_code"),
    ("component, KiB", "component_kib"),
    ("build after a change, ms", "build_ms"),
    ("compile for this machine, ms", "compile_ms"),
    ("load compiled code, ms", "load_compiled_ms"),
    ("start of an instance, ms", "start_ms"),
    ("memory after the start, KiB", "kib_after_start"),
    ("memory after work, KiB", "kib_after_work"),
    ("time in the guest for each notification, µs", "guest_us_per_notification"),
    ("time in the host's imports for each, µs", "host_us_per_notification"),
];

/// Returns the table: a row for each figure, a column for each language.
pub(super) fn of(figures: &Figures, languages: &[&str]) -> String {
    let head = [""].iter().chain(languages).map(|it| (*it).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![head];
    for (title, metric) in ROWS {
        let values = languages.iter().map(|it| figures.get(it, metric).map_or_else(String::new, shown));
        rows.push([title.to_owned()].into_iter().chain(values).collect());
    }
    laid_out(&rows)
}

/// Returns the page of the docs with this table.
pub(super) fn page(table: &str) -> String {
    format!(
        "# What a language costs\n\nWritten by `cargo xtask bench languages`: the plugin `mirror` in each language, with equal behaviour. \
         Compare\nthe columns; the values are those of one machine with two cores. The notifications are of ConfigMaps that\nare \
         mirrored to no namespace: for each one the plugin reads the cache six times, through indices, and sends no\nrequests. \
         The host, the API server and the writer share the cores, and the time of a call includes that\nin which the system ran \
         another process, so the times for each notification are upper bounds.\n\n```text\n{table}```\n"
    )
}

/// Counts the lines of a source that are neither empty nor comments. In Rust, tests are at the end.
pub(super) fn count(source: &str) -> usize {
    let lines = source.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let is_code = |line: &str| {
        !line.is_empty() && !["//", "#", "/*", "*", "\"\"\""].iter().any(|it| line.starts_with(it))
    };
    // `#include` and attributes are code.
    let is_directive = |line: &str| ["#[", "#i", "#d"].iter().any(|it| line.starts_with(it));
    lines.map(str::trim).filter(|line| is_code(line) || is_directive(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_counted() {
        assert_eq!(count("//! a\n\nuse a;\n// b\nfn c() {}\n#[cfg(test)]\nmod tests {}\n"), 2);
        assert_eq!(count("#include <a.h>\n/* b\n * c\n */\nint d;\n"), 2);
        assert_eq!(count("\"\"\"a\"\"\"\nimport b\n# c\n"), 1);
    }

    #[test]
    fn the_table_has_a_column_for_each_language() {
        let mut figures = Figures::default();
        figures.note("rust", "lines_of_code", 200.0);
        figures.note("go", "lines_of_code", 300.0);
        let table = of(&figures, &["rust", "go"]);
        assert!(table.contains("lines of code") && table.contains("200  300"), "{table}");
        assert!(page(&table).contains(&table));
    }
}
