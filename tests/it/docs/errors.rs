//! docs/errors: each hint of the host, and each event about a problem, is explained on one of its pages, and
//! what the pages quote is the host's.

use std::collections::BTreeSet;
use std::fs;

use anyhow::ensure;
use oarlock_tests::host_process::checkout;

use super::hints::hints;

/// The shortest part of a message that is searched for.
const SHORTEST: usize = 4;

/// A source of the host, without its tests. A string that goes on in the next line is one text.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

/// Returns all sources of the host.
fn sources() -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut folders = vec![checkout().join("host")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["tests", "target", "examples", "fuzz"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = joined(&fs::read_to_string(&path)?);
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                sources.push(Source { path: path.display().to_string(), text: code.to_owned() });
            }
        }
    }
    Ok(sources)
}

/// Joins the lines of strings that go on in the next line.
fn joined(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let mut joined = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| joined += part.trim_start());
    joined
}

/// Returns the texts of docs/errors, by path.
fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(checkout().join("docs/errors"))? {
        let path = entry?.path();
        pages.push((path.display().to_string(), fs::read_to_string(&path)?));
    }
    Ok(pages)
}

/// Returns the parts of a message between its placeholders.
fn parts(message: &str, is_placeholder: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    let parts = message.split(is_placeholder).map(|part| part.trim_matches([' ', ',', ':', ';', '.']));
    parts.filter(|part| part.len() >= SHORTEST)
}

#[test]
fn every_hint_of_the_host_has_an_entry() -> anyhow::Result<()> {
    let pages: String = pages()?.into_iter().map(|(_, text)| text).collect();
    let (mut n_hints, mut missing) = (0, Vec::new());
    for source in sources()? {
        for hint in hints(&source.text) {
            n_hints += 1;
            // A placeholder of `format!`, with or without a name.
            let without = hint.split(['{', '}']).step_by(2).collect::<Vec<_>>().join("…");
            for part in parts(&without, |char| char == '…').filter(|part| !pages.contains(part)) {
                missing.push(format!("{}: {hint:?}: {part:?}", source.path));
            }
        }
    }
    ensure!(
        missing.is_empty(),
        "docs/errors does not have these hints, or parts of them:\n{}",
        missing.join("\n")
    );
    ensure!(n_hints > 60, "{n_hints} hints were found: does the search know how they are written?");
    Ok(())
}

#[test]
fn every_event_about_a_problem_has_an_entry() -> anyhow::Result<()> {
    let path = checkout().join("host/controller/src/report/host_event.rs");
    let source = fs::read_to_string(path)?;
    let (_, levels) = source.split_once("fn level(").expect("events have levels");
    let levels = levels.split("\n    }").next().unwrap_or_default();
    let pages: String = pages()?.into_iter().map(|(_, text)| text).collect();
    let mut events = BTreeSet::new();
    let mut arms = levels.split("=> Level::").peekable();
    while let Some(arm) = arms.next() {
        let Some(level) = arms.peek() else { break };
        if level.starts_with("Warn") || level.starts_with("Error") {
            events.extend(arm.split("Self::").skip(1).map(kebab_case));
        }
    }
    ensure!(events.len() > 15, "the events about problems are {events:?}");
    for event in events {
        ensure!(pages.contains(&format!("`{event}`")), "docs/errors does not explain the event `{event}`");
    }
    Ok(())
}

/// Returns the name of a variant as it is written in JSON.
fn kebab_case(text: &str) -> String {
    let name = text.chars().take_while(|char| char.is_alphanumeric());
    let kebab = name.flat_map(|char| {
        let dash = char.is_uppercase().then_some('-');
        dash.into_iter().chain(char.to_lowercase())
    });
    kebab.collect::<String>().trim_start_matches('-').to_owned()
}

#[test]
fn the_messages_of_the_pages_are_those_of_the_host() -> anyhow::Result<()> {
    let sources: String = sources()?.into_iter().map(|source| source.text.replace("\\\"", "\"")).collect();
    let known = |message: &str, place: &str| {
        for part in parts(message, |char| char == '…') {
            ensure!(sources.contains(part), "{place}: no source of the host has {part:?}");
        }
        anyhow::Ok(())
    };
    let mut n_messages = 0;
    let index = fs::read_to_string(checkout().join("docs/errors.md"))?;
    for row in index.lines().filter(|line| line.starts_with("| `") && line.contains("](errors/")) {
        let messages = row.split(" | ").next().unwrap_or_default();
        for message in messages.split('`').skip(1).step_by(2) {
            n_messages += 1;
            known(message, row)?;
        }
    }
    // Blocks that are not from a snapshot, which other tests compare.
    for (page, text) in pages()? {
        let mut above = "";
        let mut block = None;
        for line in text.lines() {
            match block {
                None if line == "```text" => block = Some(!above.starts_with("<!-- from: ")),
                Some(_) if line == "```" => block = None,
                Some(true) => {
                    n_messages += 1;
                    let message =
                        ["error:", "hint:", "Fix:"].iter().find_map(|label| line.strip_prefix(label));
                    known(message.unwrap_or(line), &page)?;
                }
                _ => {}
            }
            above = line;
        }
    }
    ensure!(n_messages > 100, "docs/errors quotes {n_messages} messages");
    Ok(())
}
