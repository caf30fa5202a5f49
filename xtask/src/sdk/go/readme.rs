//! The blocks of code in the README of a module: each is in a file that the tests of a module compile, or
//! says why it is not.
//!
//! A comment above a block is `<!-- from: FILE -->`, with a path relative to the README, or
//! `<!-- not run: REASON -->`. In a block, `…` stands for any lines of the file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// Checks the blocks of a module's README.
pub(super) fn check(module: &Path) -> Result<()> {
    let readme = module.join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    for block in blocks(&text) {
        block.check(module).with_context(|| format!("{}:{}", readme.display(), block.line))?;
    }
    Ok(())
}

/// A fenced block.
struct Block<'a> {
    line: usize,
    /// The line above it.
    above: &'a str,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = vec![];
    let mut above = "";
    let mut lines = text.lines().enumerate();
    while let Some((idx, line)) = lines.next() {
        if line.starts_with("```") {
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            found.push(Block { line: idx + 1, above, lines: inside.map(str::trim).collect() });
        }
        above = line;
    }
    found
}

// === impl Block ===

impl Block<'_> {
    fn check(&self, folder: &Path) -> Result<()> {
        let comment = self.above.strip_prefix("<!-- ").and_then(|text| text.strip_suffix(" -->"));
        if comment.and_then(|text| text.strip_prefix("not run: ")).is_some_and(|reason| !reason.is_empty()) {
            return Ok(());
        }
        let Some(file) = comment.and_then(|text| text.strip_prefix("from: ")) else {
            bail!("say above the block `<!-- from: FILE -->` or `<!-- not run: REASON -->`");
        };
        let text = fs::read_to_string(folder.join(file)).with_context(|| format!("cannot read {file}"))?;
        let text: Vec<_> = text.lines().map(str::trim).collect();
        let mut rest = text.as_slice();
        for run in self.lines.split(|line| *line == "…").filter(|run| !run.is_empty()) {
            let place = rest.windows(run.len()).position(|lines| lines == run);
            ensure!(place.is_some(), "{file} does not have these lines:\n{}", run.join("\n"));
            rest = &rest[place.unwrap_or_default() + run.len()..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_in_the_file_that_it_names_or_says_why_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.go"), "one\n\ttwo\nthree\nfour\n").unwrap();
        let checked = |above: &str, block: &str| {
            fs::write(folder.path().join("README.md"), format!("# A\n\n{above}\n```go\n{block}\n```\n"))
                .unwrap();
            check(folder.path()).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(checked("<!-- from: a.go -->", "two\n…\nfour"), Ok(()));
        assert_eq!(checked("<!-- not run: it is long -->", "five"), Ok(()));
        for (above, block, wanted) in [
            ("<!-- from: a.go -->", "two\nfour", "README.md:4: a.go does not have these lines:\ntwo\nfour"),
            ("<!-- from: a.go -->", "four\n…\none", "a.go does not have these lines:\none"),
            ("<!-- from: b.go -->", "one", "cannot read b.go"),
            ("<!-- not run:  -->", "one", "say above the block"),
            ("Text:", "one", "say above the block"),
        ] {
            let error = checked(above, block).unwrap_err();
            assert!(error.contains(wanted), "{above} {block:?}: {error}");
        }
    }
}
