//! Checks the links of all pages: each relative link names a file or folder of this checkout, and each anchor
//! a heading.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::markdown::{self, Links};

/// Folders whose pages are not read here: templates become files of other folders.
const LEFT_OUT: &[&str] = &["templates", "bench/results"];

/// Returns whether the links of a page are checked.
pub(super) fn is_checked(page: &Path) -> bool {
    page.extension().is_some_and(|extension| extension == "md")
        && !LEFT_OUT.iter().any(|folder| page.starts_with(folder))
}

/// Returns the links that lead nowhere. `pages` has the text of each page, `exists` says whether there is
/// a file or folder.
pub(super) fn faults(
    pages: &BTreeMap<PathBuf, String>,
    exists: impl Fn(&Path) -> bool,
) -> Result<Vec<String>> {
    let links = Links::new()?;
    let anchors: BTreeMap<_, _> = pages.iter().map(|(page, text)| (page, markdown::anchors(text))).collect();
    let mut faults = Vec::new();
    for (page, text) in pages {
        for link in links.of(text) {
            let fault = match link.place(page) {
                None => continue,
                Some(Err(outside)) => Some(outside),
                Some(Ok((path, _))) if !exists(&path) => Some(format!("there is no {}", path.display())),
                Some(Ok((_, None))) => None,
                Some(Ok((path, Some(anchor)))) => {
                    // A folder is shown with its README.
                    let known = anchors.get(&path).or_else(|| anchors.get(&path.join("README.md")));
                    let is_known = known.is_some_and(|known| known.contains(anchor));
                    (!is_known).then(|| format!("{} has no heading #{anchor}", path.display()))
                }
            };
            faults.extend(fault.map(|fault| format!("{}:{}: {fault}", page.display(), link.line)));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_nothing_are_found() {
        let page = "[a](b.md) [b](b.md#one) [c](b.md#two) [d](gone.md)\n[e](../wit) [e](../wit#a) [e](../wit#b) [f](../src) [g](#here)\n# Here\n";
        let pages = [("docs/a.md", page), ("docs/b.md", "# One\n"), ("wit/README.md", "# A\n")];
        let pages = pages.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into();
        let exists =
            |path: &Path| ["docs/a.md", "docs/b.md", "wit"].iter().any(|there| path == Path::new(there));
        assert_eq!(
            faults(&pages, exists).unwrap(),
            [
                "docs/a.md:1: docs/b.md has no heading #two",
                "docs/a.md:1: there is no docs/gone.md",
                "docs/a.md:2: wit has no heading #b",
                "docs/a.md:2: there is no src",
            ]
        );
    }
}
