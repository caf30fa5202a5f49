//! What can be wrong with a plugin's file, said so that a person can mend it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::names;
use crate::regular_file;

/// Why a plugin's file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file or folder cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: regular_file::Error,
    },
    /// Bytes that are no text.
    #[error("{}: is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A component, where a plugin's file says what a component does not.
    #[error(
        "{}: a component needs a plugin file, which says whom it acts as: write one with the keys `name`, `component` \
         and `serviceAccount` (only `oarlock dev` runs a component without one)",
        path.display()
    )]
    BareComponent {
        /// The component.
        path: PathBuf,
    },
    /// A folder was named that holds no plugin file.
    #[error("{}: holds no plugin.yaml or plugin.toml", path.display())]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Neither YAML nor TOML by its name.
    #[error("{}: a plugin's file ends in .yaml, .yml or .toml", path.display())]
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// The text is malformed, or a key is unknown, missing or of the wrong type.
    #[error("{}{place}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line and column, where known.
        place: Place,
        /// What is wrong, and what was perhaps meant.
        message: String,
    },
    /// A name that Kubernetes would not take.
    #[error("{}{line}: {key} `{value}` is no valid name: {why}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// Where the value stands.
        line: Place,
        /// The key whose value it is.
        key: &'static str,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: names::Invalid,
    },
    /// A limit that makes no sense.
    #[error("{}: {source}", path.display())]
    Limits {
        /// The file.
        path: PathBuf,
        /// Which limit, and what would do.
        source: oarlock_plugin::limits::OutOfRange,
    },
    /// Another file has a plugin of that name.
    #[error("{}: a plugin named `{name}` stands in {} already", path.display(), first.display())]
    Duplicate {
        /// This file.
        path: PathBuf,
        /// The plugin's name.
        name: String,
        /// The file that was taken.
        first: PathBuf,
    },
}

/// Where in a file, as `:line:column`, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// From 1; 0 where unknown.
    pub line: usize,
    /// From 1; 0 where unknown.
    pub column: usize,
}

/// Finds the first line that holds a value, to point at it.
pub(super) fn line_of(text: &str, value: &str) -> Place {
    let line = text
        .lines()
        .position(|line| !value.is_empty() && line.contains(value))
        .map_or(0, |line_idx| line_idx + 1);
    Place { line, column: 0 }
}

// === impl Error ===

impl Error {
    /// The file or folder that the error is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Read { path, .. }
            | Self::NotText { path }
            | Self::BareComponent { path }
            | Self::EmptyFolder { path }
            | Self::Extension { path }
            | Self::Parse { path, .. }
            | Self::Name { path, .. }
            | Self::Limits { path, .. }
            | Self::Duplicate { path, .. } => path,
        }
    }

    /// What is wrong, for those who name the file themselves.
    #[must_use]
    pub fn detail(&self) -> String {
        let text = self.to_string();
        let place = match self {
            Self::Parse { place, .. } | Self::Name { line: place, .. } => *place,
            _ => Place::default(),
        };
        let prefix = format!("{}{place}: ", self.path().display());
        let message = text.strip_prefix(&prefix).unwrap_or(&text);
        match place {
            Place { line: 0, .. } => message.to_owned(),
            Place { line, column: 0 } => format!("line {line}: {message}"),
            Place { line, column } => format!("line {line}, column {column}: {message}"),
        }
    }

    pub(super) fn from_yaml(path: &Path, error: &serde_norway::Error) -> Self {
        let place = error
            .location()
            .map_or(Place::default(), |location| Place { line: location.line(), column: location.column() });
        let text = error.to_string();
        // The library repeats the place at the end of its text.
        let message = match text.rfind(" at line ") {
            Some(end) if place.line > 0 => &text[..end],
            _ => &text,
        };
        Self::Parse { path: path.to_owned(), place, message: explain(message) }
    }

    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let place = error.span().map_or(Place::default(), |span| {
            let before = text.get(..span.start).unwrap_or(text);
            let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
            Place { line: before.matches('\n').count() + 1, column }
        });
        Self::Parse { path: path.to_owned(), place, message: explain(error.message()) }
    }
}

/// Rewrites serde's words into ours and adds a hint.
///
/// Serde tells of unknown and missing keys in its text only. Should that wording change, the hint goes, the error stays.
fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let path = message.split("unknown field").next().unwrap_or("").trim_end_matches(": ");
    match quoted.as_slice() {
        [key, known @ ..] if message.contains("unknown field") => {
            let within = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
            let meant =
                closest(key, known).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            format!("unknown key `{key}`{within}{meant} (known keys: {})", known.join(", "))
        }
        ["serviceAccount"] if message.contains("missing field") => {
            "the key `serviceAccount` is missing: every plugin acts as a ServiceAccount of its own, \
             such as `serviceAccount: {namespace: oarlock-plugins, name: my-plugin}`"
                .to_owned()
        }
        [key] if message.contains("missing field") => {
            let within = message.split("missing field").next().unwrap_or("").trim_end_matches(": ");
            let within = if within.is_empty() { String::new() } else { format!(" in `{within}`") };
            format!("the key `{key}` is missing{within}")
        }
        _ if message == "recursion limit" => "it is nested too deeply".to_owned(),
        _ => in_words(message.trim_end().replace('\n', "; ")),
    }
}

/// Replaces what serde calls by the names of Rust's types.
fn in_words(mut message: String) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("repetition limit exceeded", "its aliases repeat too much"),
        ("recursion limit exceeded", "it is nested too deeply"),
        ("invalid type: unit value", "nothing is there"),
        ("expected path string", "expected a path"),
        ("expected usize", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected u64", "expected a whole number"),
    ];
    for (theirs, ours) in WORDS {
        message = message.replace(theirs, ours);
    }
    message
}

fn closest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| {
            (strsim::damerau_levenshtein(&key.to_lowercase(), &candidate.to_lowercase()), *candidate)
        })
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(3))
        .min()
        .map(|(_, candidate)| candidate)
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { line: 0, .. } => Ok(()),
            Self { line, column: 0 } => write!(f, ":{line}"),
            Self { line, column } => write!(f, ":{line}:{column}"),
        }
    }
}
