//! Words that are not used. ARCHITECTURE.md lists them below its glossary, each with the word that is used in
//! its place.

use std::path::Path;

use anyhow::{Result, ensure};

/// The heading of the list in ARCHITECTURE.md.
const HEADING: &str = "### Words that are not used";

/// Files that may contain the words: the list itself, records of earlier runs, and the tests of this rule.
const EXEMPT: [&str; 3] = ["ARCHITECTURE.md", "bench/results/", "xtask/src/tidy/words.rs"];

/// Extensions of files that people read.
const READ_BY_PEOPLE: [&str; 12] =
    ["rs", "md", "wit", "toml", "go", "py", "ts", "mjs", "c", "h", "yaml", "sh"];

/// The banned words, in lower case, with what is used instead.
pub(super) struct BannedWords(Vec<(String, String)>);

// === impl BannedWords ===

impl BannedWords {
    /// Reads the table under the heading: `| word, word | use instead |`.
    pub(super) fn parse(architecture: &str) -> Result<Self> {
        let (_, list) = architecture.split_once(HEADING).unwrap_or_default();
        let rows = list.lines().skip_while(|line| !line.starts_with("|--")).skip(1);
        let mut words = Vec::new();
        for row in rows.take_while(|row| row.starts_with('|')) {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let (banned, instead) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            words.extend(banned.split(", ").map(|word| (word.to_lowercase(), instead.to_owned())));
        }
        ensure!(!words.is_empty(), "ARCHITECTURE.md has no table under {HEADING:?}");
        Ok(Self(words))
    }

    /// Returns the lines of one file with a banned word, in prose or in a name.
    pub(super) fn faults(&self, file: &Path, text: &str) -> Vec<String> {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_exempt = EXEMPT.iter().any(|path| file.starts_with(path));
        if is_exempt || !READ_BY_PEOPLE.contains(&extension) {
            return Vec::new();
        }
        let Self(words) = self;
        let mut faults = Vec::new();
        for (idx, line) in text.lines().enumerate() {
            for (word, instead) in words {
                if contains(line, word) {
                    let (shown, n) = (file.display(), idx + 1);
                    faults.push(format!("{shown}:{n}: {word:?} is not used here; use {instead}"));
                }
            }
        }
        faults
    }
}

/// Returns whether a line contains a word, alone or as a part of a name such as `is_told` or `ToldEvents`.
fn contains(line: &str, word: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.match_indices(word).any(|(start, _)| {
        let end = start + word.len();
        let before = line[..start].chars().next_back();
        let first = line[start..].chars().next();
        let after = line[end..].chars().next();
        let begins = !before.is_some_and(char::is_alphabetic)
            || before.is_some_and(char::is_lowercase) && first.is_some_and(char::is_uppercase);
        let ends = !after.is_some_and(char::is_alphabetic) || after.is_some_and(char::is_uppercase);
        begins && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_alone_and_in_names_but_not_within_another() {
        for line in
            ["it is told.", "let has_told_all = 1;", "struct ToldEvent;", "struct IsTold;", "TOLD: u8"]
        {
            assert!(contains(line, "told"), "{line}");
        }
        for line in ["untold", "mtolds", "indoors"] {
            assert!(!contains(line, "told") && !contains(line, "door"), "{line}");
        }
    }

    #[test]
    fn the_list_is_read_from_the_page() {
        let page = format!("{HEADING}\n\n| not | but |\n|---|---|\n| told, tells | notified |\n\nMore.\n");
        let words = BannedWords::parse(&page).expect("the list");
        let faults = words.faults(Path::new("a.rs"), "one\nhe tells\n");
        assert_eq!(faults, ["a.rs:2: \"tells\" is not used here; use notified"]);
        assert!(BannedWords::parse("nothing").is_err());
    }
}
