//! The code in the README of an SDK. The comment `<!-- file: PATH -->` above a block names the file that it
//! is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Writes the blocks of one language into a folder, and returns their paths in it.
pub(super) fn write(page: &Path, language: &str, folder: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let mut paths = vec![];
    for (path, text) in blocks(&text, language).with_context(|| page.display().to_string())? {
        let file = folder.join(path);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        paths.push(path.to_owned());
    }
    Ok(paths)
}

/// Returns the paths and the texts of the blocks of one language in a page.
fn blocks<'a>(page: &'a str, language: &str) -> Result<Vec<(&'a str, String)>> {
    let begin = format!("```{language}");
    let mut blocks = vec![];
    let mut lines = page.lines();
    let mut above = "";
    while let Some(line) = lines.next() {
        if line == begin {
            let path = above.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"));
            let path = path
                .with_context(|| format!("a block {begin} has no comment `<!-- file: PATH -->` above it"))?;
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((path, block.join("\n") + "\n"));
        }
        above = line;
    }
    ensure!(!blocks.is_empty(), "there is no block {begin}");
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_the_file_that_the_comment_above_names() {
        let page = "Text\n\n<!-- file: a.py -->\n```python\nimport b\n\n```\n```sh\nls\n```\n\
                    <!-- file: b.py -->\n```python\nx = 1\n```\n";
        let found = blocks(page, "python").unwrap();
        assert_eq!(found, [("a.py", "import b\n\n".to_owned()), ("b.py", "x = 1\n".to_owned())]);
        let error = blocks("Text\n```ts\nconst a = 1;\n```\n", "ts").unwrap_err().to_string();
        assert!(error.contains("no comment"), "{error}");
        assert!(blocks(page, "ts").is_err());
    }
}
