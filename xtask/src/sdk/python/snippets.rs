//! The Python in the READMEs of the SDK's packages. The comment `<!-- file: NAME.py -->` above a block names
//! the module that it is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Writes the blocks of a page as modules, and returns their names.
pub(super) fn write(page: &Path, folder: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let modules = modules(&text).with_context(|| page.display().to_string())?;
    let mut names = vec![];
    for (name, text) in modules {
        fs::write(folder.join(format!("{name}.py")), text)?;
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Returns the names and the texts of the modules in a page.
fn modules(page: &str) -> Result<Vec<(&str, String)>> {
    let mut modules = vec![];
    let mut lines = page.lines();
    let mut above = "";
    while let Some(line) = lines.next() {
        if line == "```python" {
            let name = above.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(".py -->"));
            let name = name.context("a block of Python has no comment `<!-- file: NAME.py -->` above it")?;
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            modules.push((name, block.join("\n") + "\n"));
        }
        above = line;
    }
    ensure!(!modules.is_empty(), "there is no block of Python");
    Ok(modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_the_module_that_the_comment_above_names() {
        let page = "Text\n\n<!-- file: a.py -->\n```python\nimport b\n\n```\n```sh\nls\n```\n\
                    <!-- file: b.py -->\n```python\nx = 1\n```\n";
        assert_eq!(modules(page).unwrap(), [("a", "import b\n\n".to_owned()), ("b", "x = 1\n".to_owned())]);
        let error = modules("Text\n```python\nx = 1\n```\n").unwrap_err().to_string();
        assert!(error.contains("no comment"), "{error}");
        assert!(modules("Text\n").is_err());
    }
}
