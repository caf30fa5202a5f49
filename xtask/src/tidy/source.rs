//! The shape of one file: its length, its first line, the width of its comments.

use std::path::Path;

/// Lines above which a Rust file has more than one idea in it.
const MAX_LINES: usize = 700;

/// Columns of the widest comment line.
const MAX_COMMENT_COLUMNS: usize = 110;

/// Returns the faults of one file.
pub(super) fn faults(file: &Path, text: &str) -> Vec<String> {
    let mut faults = wide_comments(file, text);
    if file.extension().is_some_and(|extension| extension == "rs") {
        faults.extend(rust_faults(file, text));
    }
    faults
}

fn rust_faults(file: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let shown = file.display();
    let n_lines = text.lines().count();
    if n_lines > MAX_LINES {
        faults
            .push(format!("{shown}: {n_lines} lines; split what is above {MAX_LINES} lines along its ideas"));
    }
    if file.file_name().is_some_and(|name| name == "mod.rs") {
        faults.push(format!("{shown}: a module is foo.rs beside foo/, not foo/mod.rs"));
    }
    let is_tests = file
        .components()
        .any(|part| ["tests.rs", "tests", "it"].iter().any(|name| part.as_os_str() == *name));
    if !is_tests && !text.starts_with("//!") {
        faults.push(format!("{shown}: the first line must say what the file is (//!)"));
    }
    faults
}

/// Returns the marks that begin a comment line in a file of this name; none where there are no comments.
fn comment_marks(file: &Path) -> &'static [&'static str] {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("rs" | "wit" | "go" | "ts" | "js" | "mjs" | "c" | "h") => &["//", "* "],
        Some("py" | "toml" | "yaml" | "yml" | "sh") => &["#"],
        _ => &[],
    }
}

fn wide_comments(file: &Path, text: &str) -> Vec<String> {
    let marks = comment_marks(file);
    let is_wide = |line: &str| {
        let is_comment = marks.iter().any(|mark| line.trim_start().starts_with(mark));
        // An address, or a row of a table, cannot be broken.
        let is_breakable = !line.contains("://") && !line.trim_end().ends_with('|');
        is_comment && is_breakable && line.chars().count() > MAX_COMMENT_COLUMNS
    };
    let wide = text.lines().enumerate().filter(|(_, line)| is_wide(line));
    wide.map(|(idx, line)| {
        let (shown, n, columns) = (file.display(), idx + 1, line.chars().count());
        format!("{shown}:{n}: a comment of {columns} columns; the limit is {MAX_COMMENT_COLUMNS}")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_without_a_first_line_is_found() {
        let faults = faults(Path::new("host/src/mod.rs"), &"\n".repeat(701));
        assert_eq!(faults.len(), 3, "{faults:?}");
    }

    #[test]
    fn a_wide_comment_is_found_and_wide_code_is_not() {
        let wide = "x".repeat(120);
        let text = format!("//! One.\nlet a = \"{wide}\";\n    /// {wide}\n// https://{wide}\n");
        let faults = faults(Path::new("host/src/a.rs"), &text);
        assert_eq!(faults, ["host/src/a.rs:3: a comment of 128 columns; the limit is 110"]);
    }
}
