//! The TypeScript in the README of the SDK. The comment `<!-- file: PATH -->` above a block names the file of
//! a plugin that it is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Writes the blocks of a page into the folder of a plugin.
pub(super) fn write(page: &Path, folder: &Path) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    for (path, text) in blocks(&text).with_context(|| page.display().to_string())? {
        let path = folder.join(path);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the paths and the texts of the blocks in a page.
fn blocks(page: &str) -> Result<Vec<(&str, String)>> {
    let mut blocks = vec![];
    let mut lines = page.lines();
    let mut above = "";
    while let Some(line) = lines.next() {
        if line == "```ts" {
            let path = above.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"));
            let path = path.context("a block of TypeScript has no comment `<!-- file: PATH -->` above it")?;
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((path, block.join("\n") + "\n"));
        }
        above = line;
    }
    ensure!(!blocks.is_empty(), "there is no block of TypeScript");
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_the_file_that_the_comment_above_names() {
        let page = "Text\n\n<!-- file: a.ts -->\n```ts\nconst a = 1;\n\n```\n```sh\nls\n```\n";
        assert_eq!(blocks(page).unwrap(), [("a.ts", "const a = 1;\n\n".to_owned())]);
        let error = blocks("Text\n```ts\nconst a = 1;\n```\n").unwrap_err().to_string();
        assert!(error.contains("no comment"), "{error}");
        assert!(blocks("Text\n").is_err());
    }
}
