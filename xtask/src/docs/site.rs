//! The site: mdBook over a copy of the pages.
//!
//! Pages link to files beside `docs/`, as GitHub shows them. mdBook knows one folder of sources, so the
//! pages of docs/SUMMARY.md and the files that they link to are copied into one, with the paths of the
//! checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::markdown::Links;
use crate::toolchain::{cache, command};
use crate::{checkout, progress};

/// The list of pages.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The settings of mdBook.
const SETTINGS: &str = "docs/book.toml";

/// The version of mdBook.
const MDBOOK: &str = "0.5.4";

/// The files of a site.
#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    /// The text of each page, and of the summary.
    pages: BTreeMap<PathBuf, String>,
    /// Files that are copied as they are.
    others: BTreeSet<PathBuf>,
}

/// Writes the site, and returns its folder.
pub(super) fn build() -> Result<PathBuf> {
    let mdbook = mdbook()?;
    let sources = checkout::root().join("target/docs-sources");
    let site = checkout::root().join("target/docs");
    for folder in [&sources, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    let Files { pages, others } = files(read)?;
    for (path, text) in &pages {
        write(&sources.join(path), text.as_bytes())?;
    }
    for path in &others {
        let bytes = fs::read(checkout::root().join(path));
        write(&sources.join(path), &bytes.with_context(|| format!("cannot read {}", path.display()))?)?;
    }
    fs::copy(checkout::root().join(SETTINGS), sources.join("book.toml"))
        .context("cannot copy the settings")?;
    let mut command = Command::new(mdbook);
    command::output(command.arg("build").arg(&sources).arg("--dest-dir").arg(&site))?;
    Ok(site)
}

/// Returns the pages of docs/ that are not in the summary; or the first link that works on GitHub only, or
/// another fault of the summary.
pub(super) fn faults<'p>(pages: impl Iterator<Item = &'p PathBuf>) -> Vec<String> {
    match files(read) {
        Ok(files) => missing(&files, pages),
        Err(error) => vec![format!("{error:#}")],
    }
}

fn missing<'p>(files: &Files, pages: impl Iterator<Item = &'p PathBuf>) -> Vec<String> {
    let is_missing = |page: &&PathBuf| {
        page.starts_with("docs") && *page != Path::new(SUMMARY) && !files.pages.contains_key(*page)
    };
    pages.filter(is_missing).map(|page| format!("{}: is not in {SUMMARY}", page.display())).collect()
}

fn read(path: &Path) -> Option<String> {
    fs::read(checkout::root().join(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the files of the site. `read` returns the text of a file of the checkout, and nothing for a
/// folder.
fn files(read: impl Fn(&Path) -> Option<String>) -> Result<Files> {
    let links = Links::new()?;
    let summary = read(Path::new(SUMMARY)).with_context(|| format!("cannot read {SUMMARY}"))?;
    let mut chapters = BTreeSet::new();
    for link in links.of(&summary) {
        if let Some(Ok((path, None))) = link.place(Path::new(SUMMARY)) {
            ensure!(
                chapters.insert(path.clone()),
                "{SUMMARY}:{}: {} is a chapter twice",
                link.line,
                path.display()
            );
        }
    }

    let mut files = Files::default();
    // In the copy the summary is in the root.
    let at_root = |path: &Path| Some(path.display().to_string());
    files.pages.insert("SUMMARY.md".into(), rewritten(&summary, &links, Path::new(SUMMARY), at_root));
    for page in &chapters {
        let text = read(page).with_context(|| format!("{SUMMARY}: there is no {}", page.display()))?;
        for link in links.of(&text) {
            let Some(Ok((path, _))) = link.place(page) else { continue };
            let path = read_me(&path, &read);
            if chapters.contains(&path) {
                continue;
            }
            if path.extension().is_some_and(|extension| extension == "md") {
                bail!("{}:{}: {} is not in {SUMMARY}", page.display(), link.line, path.display());
            }
            if read(&path).is_some() {
                files.others.insert(path);
            }
        }
        let from_page = |path: &Path| {
            let path = read_me(path, &read);
            read(&path).is_some().then(|| up_and_down(page, &path))
        };
        files.pages.insert(page.clone(), rewritten(&text, &links, page, from_page));
    }
    Ok(files)
}

/// Returns the README of a folder, or the file itself.
fn read_me(path: &Path, read: impl Fn(&Path) -> Option<String>) -> PathBuf {
    let inner = path.join("README.md");
    if read(&inner).is_some() { inner } else { path.to_owned() }
}

/// Returns a page with other targets for its links within the checkout. A link without a target, to a folder
/// that no page describes, becomes its text.
fn rewritten(text: &str, links: &Links, page: &Path, target: impl Fn(&Path) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for link in links.of(text) {
        let Some(Ok((path, anchor))) = link.place(page) else { continue };
        if link.target.starts_with('#') {
            continue;
        }
        out += &text[done..link.bytes.start];
        done = link.bytes.end;
        match target(&path) {
            Some(target) => {
                out += &target;
                out.extend(anchor.map(|anchor| format!("#{anchor}")));
            }
            None => {
                out.truncate(out.len() - "](".len());
                if let Some(bracket) = out.rfind('[') {
                    out.remove(bracket);
                }
                done += ")".len();
            }
        }
    }
    out + &text[done..]
}

/// Returns the path from a page to a file.
fn up_and_down(page: &Path, path: &Path) -> String {
    let n_up = page.components().count().saturating_sub(1);
    format!("{}{}", "../".repeat(n_up), path.display())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, bytes)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Returns mdBook, which is built on the first call.
fn mdbook() -> Result<PathBuf> {
    let folder = cache::entry(&format!("mdbook-{MDBOOK}"), |folder| {
        progress::step("mdBook", || {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--debug", "--quiet"]);
            cargo.args(["--no-default-features", "--features", "search", "--root"]).arg(folder);
            command::run(&mut cargo)
        })
    })?;
    Ok(folder.join("bin/mdbook"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(path: &Path) -> Option<String> {
        let text = match path.to_str()? {
            SUMMARY => "- [Home](../README.md)\n- [A](a.md)\n- [Plugin](../plugins/x/README.md)\n",
            "README.md" => "[a](docs/a.md#b)\n",
            "docs/a.md" => {
                "[x](../plugins/x) [wit](../wit/a.wit) [`cases`](../cases), [self](#b) [far](https://a.b)\n"
            }
            "wit/a.wit" => "package a:b;\n",
            "plugins/x/README.md" => "[a](../../docs/a.md)\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    #[test]
    fn pages_keep_their_paths_and_folders_become_their_read_me() {
        let files = files(stored).unwrap();
        let pages: Vec<_> =
            files.pages.iter().map(|(path, text)| (path.to_str().unwrap(), text.as_str())).collect();
        assert_eq!(
            pages,
            [
                ("README.md", "[a](docs/a.md#b)\n"),
                ("SUMMARY.md", "- [Home](README.md)\n- [A](docs/a.md)\n- [Plugin](plugins/x/README.md)\n"),
                (
                    "docs/a.md",
                    "[x](../plugins/x/README.md) [wit](../wit/a.wit) `cases`, [self](#b) [far](https://a.b)\n"
                ),
                ("plugins/x/README.md", "[a](../../docs/a.md)\n"),
            ]
        );
        assert_eq!(files.others, BTreeSet::from([PathBuf::from("wit/a.wit")]));
        let pages = ["docs/SUMMARY.md", "docs/a.md", "docs/b.md", "bench/README.md"].map(PathBuf::from);
        assert_eq!(missing(&files, pages.iter()), ["docs/b.md: is not in docs/SUMMARY.md"]);
    }

    #[test]
    fn a_link_to_a_page_that_is_not_in_the_summary_is_a_fault() {
        let more = |path: &Path| match path.to_str() {
            Some("README.md") => Some("\n[b](docs/b.md)".to_owned()),
            _ => stored(path),
        };
        let error = files(more).unwrap_err().to_string();
        assert_eq!(error, "README.md:2: docs/b.md is not in docs/SUMMARY.md");
    }
}
