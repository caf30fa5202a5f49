//! The fenced blocks of a page, and what a test does with each.
//!
//! The first word after the fence is the language. Marks follow it after commas, as in mdBook. A comment on
//! the line above may say where a block is from, or why it is not run.
//!
//! | block | test |
//! |---|---|
//! | `sh` | is run with the others of its page, in order; must succeed |
//! | `sh,fails` | must fail |
//! | `sh,background` | is started, and ended at the end of the page |
//! | `text,printed` | the blocks before must have printed these lines; `…` stands for any lines |
//! | `text` | below `docs/errors`: messages of the host (`errors.rs`); else none |
//! | `yaml,case` | is a case of `oarlock plugin test` |
//! | `yaml,plugin-file` | is a plugin's file |
//! | any, below `<!-- from: FILE -->` | is in that file, line for line; `…` stands for any lines |
//! | any, below `<!-- not run: REASON -->` | none |

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use oarlock_tests::host_process::checkout;

/// A fenced block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Page and line, for messages.
    pub(super) place: String,
    pub(super) text: String,
    pub(super) test: Test,
}

/// What a test does with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Run,
    RunAndFail,
    Start,
    Printed,
    Case,
    PluginFile,
    /// The file, relative to the checkout.
    From(PathBuf),
    None,
}

/// The folder of generated pages.
const GENERATED: &str = "docs/reference";

/// Returns the pages of the documentation, relative to the checkout, without generated ones.
pub(super) fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(checkout().join(&folder))? {
            let path = folder.join(entry?.file_name());
            if checkout().join(&path).is_dir() {
                if path != Path::new(GENERATED) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Returns the blocks of a page.
pub(super) fn blocks(page: &Path) -> anyhow::Result<Vec<Block>> {
    let text = fs::read_to_string(checkout().join(page))?;
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut above = "";
    while let Some((idx, line)) = lines.next() {
        if let Some(marks) = line.trim_start().strip_prefix("```") {
            let place = format!("{}:{}", page.display(), idx + 1);
            let inner: Vec<_> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let test = test(marks, above).with_context(|| place.clone())?;
            blocks.push(Block { place, text: inner.join("\n") + "\n", test });
        }
        above = line;
    }
    Ok(blocks)
}

fn test(marks: &str, above: &str) -> anyhow::Result<Test> {
    let comment = above.strip_prefix("<!-- ").and_then(|text| text.strip_suffix(" -->"));
    if let Some(reason) = comment.and_then(|text| text.strip_prefix("not run: ")) {
        return if reason.is_empty() { bail!("the comment gives no reason") } else { Ok(Test::None) };
    }
    if let Some(file) = comment.and_then(|text| text.strip_prefix("from: ")) {
        return Ok(Test::From(file.into()));
    }
    Ok(match marks {
        "sh" => Test::Run,
        "sh,fails" => Test::RunAndFail,
        "sh,background" => Test::Start,
        "text,printed" => Test::Printed,
        "text" => Test::None,
        "yaml,case" => Test::Case,
        "yaml,plugin-file" => Test::PluginFile,
        other => {
            bail!("no test knows `{other}`: say above it `<!-- from: FILE -->` or `<!-- not run: REASON -->`")
        }
    })
}

/// Returns where the last line of a block ends in a text that has the lines of the block in this order, or
/// the first line that it lacks. A line may be a part of a line of the text.
pub(super) fn end_of<'b>(block: &'b str, text: &str) -> Result<usize, &'b str> {
    let mut end = 0;
    let wanted = block.lines().map(str::trim).filter(|line| !line.is_empty() && !is_ellipsis(line));
    for wanted in wanted {
        let mut lines = text[end..].split_inclusive('\n');
        let mut length = 0;
        let is_found = lines.any(|line| {
            length += line.len();
            line.contains(wanted)
        });
        end += if is_found { length } else { return Err(wanted) };
    }
    Ok(end)
}

/// Returns the first run of lines of a block that is not in a text; none if all are, in order. Indentation
/// does not count.
pub(super) fn not_from(block: &str, text: &str) -> Option<String> {
    // An example in a comment of Rust counts as code.
    let code = |line: &str| line.trim().trim_start_matches("//!").trim_start_matches("///").trim().to_owned();
    let trimmed = |text: &str| text.lines().map(code).filter(|line| !line.is_empty()).collect();
    let (wanted, text): (Vec<String>, Vec<String>) = (trimmed(block), trimmed(text));
    let mut from = 0;
    for run in wanted.split(|line| is_ellipsis(line)).filter(|run| !run.is_empty()) {
        match text[from..].windows(run.len()).position(|lines| lines == run) {
            Some(idx) => from += idx + run.len(),
            None => return Some(run.join("\n")),
        }
    }
    None
}

fn is_ellipsis(line: &str) -> bool {
    line.trim_start_matches(['/', '#', ' ']) == "…"
}

#[test]
fn a_block_without_a_test_needs_a_reason() {
    assert_eq!(test("sh", "").unwrap(), Test::Run);
    assert_eq!(test("go", "<!-- from: a/b.go -->").unwrap(), Test::From("a/b.go".into()));
    assert_eq!(test("go", "<!-- not run: shown for comparison -->").unwrap(), Test::None);
    for (marks, above) in [("go", ""), ("yaml", "Text:"), ("", ""), ("sh", "<!-- not run:  -->")] {
        assert!(test(marks, above).is_err(), "{marks:?} {above:?}");
    }
}

#[test]
fn lines_are_found_in_order() {
    assert_eq!(end_of("b\n…\nd\n", "a\nxbx\nc\nd\ne\n"), Ok(10));
    assert_eq!(end_of("d\nb\n", "a\nb\nd\n"), Err("b"));
    assert_eq!(not_from("b\n  c\n", "//! a\n//! b\n//!   c\n"), None);
    assert_eq!(not_from("  b\n  // …\n  d\n", "a\n b\nc\nd\n"), None);
    assert_eq!(not_from("b\nd\n", "a\nb\nc\nd\n"), Some("b\nd".to_owned()));
}
