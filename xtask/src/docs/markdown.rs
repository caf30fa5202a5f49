//! What the documentation needs of Markdown: links, anchors, and the words outside of code. This is no parser
//! of all of Markdown: the pages use fenced code, inline links and `#` headings only.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use regex::Regex;

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The line, from 1.
    pub(super) line: usize,
    /// The target as it is written.
    pub(super) target: String,
    /// The bytes of the target in the page's text.
    pub(super) bytes: std::ops::Range<usize>,
}

/// Finds links.
pub(super) struct Links(Regex);

// === impl Link ===

impl Link {
    /// Returns the file or folder that the link names, and the anchor; none for an address elsewhere. Paths
    /// are relative to the checkout. A path that leaves the checkout is an error.
    pub(super) fn place(&self, page: &Path) -> Option<Result<(PathBuf, Option<&str>), String>> {
        if self.target.contains("://") || self.target.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = match self.target.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (self.target.as_str(), None),
        };
        let path = match path {
            "" => Some(page.to_owned()),
            path => resolved(page.parent().unwrap_or(Path::new("")), path),
        };
        Some(path.map(|path| (path, anchor)).ok_or_else(|| format!("{} leaves the checkout", self.target)))
    }
}

// === impl Links ===

impl Links {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(Regex::new(r"\]\(([^()\s]+)\)")?))
    }

    /// Returns the links of a page, without those in code.
    pub(super) fn of(&self, text: &str) -> Vec<Link> {
        let prose = prose(text);
        let targets = self.0.captures_iter(&prose).filter_map(|found| found.get(1));
        let link = |target: regex::Match<'_>| Link {
            line: prose[..target.start()].matches('\n').count() + 1,
            target: target.as_str().to_owned(),
            bytes: target.range(),
        };
        targets.map(link).collect()
    }
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in without_fences(text).lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let first = anchor(&label(heading));
        let mut anchor = first.clone();
        for n in 1.. {
            if anchors.insert(anchor) {
                break;
            }
            anchor = format!("{first}-{n}");
        }
    }
    anchors
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|char| match char {
        ' ' => Some('-'),
        char if char.is_alphanumeric() || "-_".contains(char) => Some(char),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Returns a heading with the texts of its links in the place of the links.
fn label(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((label, after)) = link.split_once("](") else { break };
        let Some((_, after)) = after.split_once(')') else { break };
        text += before;
        text += label;
        rest = after;
    }
    text + rest
}

/// Returns a text of the same length with spaces in the place of code, in blocks and within lines.
fn prose(text: &str) -> String {
    let text = without_fences(text);
    let mut prose = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut is_code = false;
        // A lone backquote begins no code.
        let n_pairs = line.matches('`').count() / 2;
        let mut n_seen = 0;
        for char in line.chars() {
            if char == '`' {
                n_seen += 1;
                is_code = n_seen % 2 == 1 && n_seen / 2 < n_pairs;
            }
            if is_code && char != '`' {
                prose.extend(std::iter::repeat_n(' ', char.len_utf8()))
            } else {
                prose.push(char)
            }
        }
    }
    prose
}

/// Returns a text of the same length with spaces in the place of fenced code.
fn without_fences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_fenced = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fenced || is_fence {
            let ending = if line.ends_with('\n') { 1 } else { 0 };
            out.extend(std::iter::repeat_n(' ', line.len() - ending));
            out += &line[line.len() - ending..];
        } else {
            out += line;
        }
        is_fenced ^= is_fence;
    }
    out
}

/// Returns a path within the checkout without `.` and `..`; none if it leaves the checkout.
fn resolved(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            Component::ParentDir if place.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text =
            "A [b](c.md#d),\nan `[x](y.md)`, a [`z`](../w).\n```sh\n[no](no.md)\n```\n[e](https://a.b)\n";
        let links = Links::new().unwrap().of(text);
        let found: Vec<_> = links.iter().map(|link| (link.line, link.target.as_str())).collect();
        assert_eq!(found, [(1, "c.md#d"), (2, "../w"), (6, "https://a.b")]);
        assert_eq!(&text[links[1].bytes.clone()], "../w");
        let page = Path::new("docs/a.md");
        assert_eq!(links[0].place(page), Some(Ok((PathBuf::from("docs/c.md"), Some("d")))));
        assert_eq!(links[1].place(page), Some(Ok((PathBuf::from("w"), None))));
        assert_eq!(links[1].place(Path::new("a.md")), Some(Err("../w leaves the checkout".to_owned())));
        assert_eq!(links[2].place(page), None);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# A plugin's `name`: what?\n## [B](b.md) c_d\n```\n# not\n```\n## B c_d\n#no heading\n";
        let anchors: Vec<_> = anchors(text).into_iter().collect();
        assert_eq!(anchors, ["a-plugins-name-what", "b-c_d", "b-c_d-1"]);
    }
}
