//! The errors of plugin files. Each names the place, and how to fix it where that is not obvious.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use kube::core::TypeMeta;
use serde::Deserialize;

use super::{names, ranges};
use crate::{plugin_resource::GROUP, regular_file};

/// Why a plugin file is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file or folder cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: regular_file::Error,
    },
    /// The file is not text.
    #[error("{}: is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A component without a plugin file.
    #[error(
        "{}: a component needs a plugin file that names its ServiceAccount. Fix: write one with the keys `name`, `component` \
         and `serviceAccount`; `oarlock dev`, and `oarlock rbac` with --service-account, need none",
        path.display()
    )]
    BareComponent {
        /// The component.
        path: PathBuf,
    },
    /// A folder without a plugin file.
    #[error(
        "{}: contains no plugin.yaml, plugin.yml or plugin.toml. Fix: name a plugin file or the folder of one; \
         `oarlock plugin new NAME` makes a plugin",
        path.display()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A plugin file in a subfolder of a folder of plugins, with a name that is not read there.
    #[error(
        "{}: is not read: in a subfolder of {} only plugin.yaml, plugin.yml and plugin.toml are. \
         Fix: rename it, or move it to {}; names that begin with a dot are left alone",
        path.display(),
        folder.display(),
        folder.display()
    )]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// The folder of plugins.
        folder: PathBuf,
    },
    /// The manifest of an object, which the API server reads and the host does not.
    #[error(
        "{}: this is a {kind} object, not a plugin file. Fix: check the object with `kubectl apply --dry-run=server \
         --filename FILE` (docs/plugin-objects.md), and its component with `oarlock plugin check COMPONENT`",
        path.display()
    )]
    Object {
        /// The file.
        path: PathBuf,
        /// The kind of the object.
        kind: &'static str,
    },
    /// The extension is neither that of YAML nor of TOML.
    #[error("{}: the name of a plugin file must end in .yaml, .yml or .toml", path.display())]
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// The text is malformed, or a key is unknown, missing or has the wrong type.
    #[error("{}{place}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line and column, where known.
        place: Place,
        /// The error, with a suggestion where there is one.
        message: String,
    },
    /// A name that is invalid in Kubernetes.
    #[error("{}{line}: {key} `{value}` is not a valid name: {why}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The line of the value.
        line: Place,
        /// The key of the value.
        key: &'static str,
        /// The value.
        value: String,
        /// Why it is invalid.
        why: names::Invalid,
    },
    /// A value that is out of its range.
    #[error("{}{line}: {message}", path.display())]
    Range {
        /// The file.
        path: PathBuf,
        /// The line of the key.
        line: Place,
        /// The key, the value and the range.
        message: String,
    },
    /// Another file has the same plugin name.
    #[error("{}: the plugin name `{name}` is already used in {}", path.display(), first.display())]
    Duplicate {
        /// This file.
        path: PathBuf,
        /// The plugin's name.
        name: String,
        /// The file that keeps the name.
        first: PathBuf,
    },
}

/// A place in a file. Displays as `:line:column`, as far as known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// From 1; 0 where unknown.
    pub line: usize,
    /// From 1; 0 where unknown.
    pub column: usize,
}

/// Returns the first line that contains a value.
pub(super) fn line_of(text: &str, value: &str) -> Place {
    let line = text
        .lines()
        .position(|line| !value.is_empty() && line.contains(value))
        .map_or(0, |line_idx| line_idx + 1);
    Place { line, column: 0 }
}

/// Returns the line of a key such as `limits.memory`, which is not in the text if a default is at fault.
fn line_of_key(text: &str, path: &str) -> Place {
    let (first, second) = path.split_once('.').unwrap_or((path, ""));
    let begins =
        |line: &str| line.trim_start_matches(['[', '"', '\'']).starts_with(first) && has_key(line, first);
    let mut lines = text.lines().zip(1..).skip_while(|(line, _)| !begins(line));
    let Some((line, number)) = lines.next() else { return Place::default() };
    if second.is_empty() || has_key(line, second) {
        return Place { line: number, column: 0 };
    }
    // The lines of the mapping: in YAML they are indented, in TOML a table ends before the next one.
    let is_table = line.starts_with('[');
    let is_inside = |line: &str| match is_table {
        true => !line.starts_with('['),
        false => !line.starts_with(|it: char| !it.is_whitespace() && it != '#'),
    };
    let found = lines.take_while(|(line, _)| is_inside(line)).find(|(line, _)| has_key(line, second));
    found.map_or(Place::default(), |(_, line)| Place { line, column: 0 })
}

/// Returns whether a line of YAML or TOML has a key, or is the header of a table with this name.
fn has_key(line: &str, key: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '-' || it == '_';
    let is_key = |(start, _): (usize, &str)| {
        let (before, after) =
            (&line[..start], line[start + key.len()..].trim_start_matches(['"', '\'', ' ']));
        !before.contains('#') && !before.ends_with(is_part) && after.starts_with([':', '=', ']'])
    };
    line.match_indices(key).any(is_key)
}

// === impl Error ===

impl Error {
    /// Returns the error of a value that is out of its range.
    pub(super) fn range(path: &Path, text: &str, key: &str, error: &dyn fmt::Display) -> Self {
        Self::Range { path: path.to_owned(), line: line_of_key(text, key), message: error.to_string() }
    }

    /// Returns the path of the file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Read { path, .. }
            | Self::NotText { path }
            | Self::BareComponent { path }
            | Self::EmptyFolder { path }
            | Self::Misplaced { path, .. }
            | Self::Object { path, .. }
            | Self::Extension { path }
            | Self::Parse { path, .. }
            | Self::Name { path, .. }
            | Self::Range { path, .. }
            | Self::Duplicate { path, .. } => path,
        }
    }

    /// Returns the message without the path, for callers that show the path themselves.
    #[must_use]
    pub fn detail(&self) -> String {
        let text = self.to_string();
        let place = match self {
            Self::Parse { place, .. } | Self::Name { line: place, .. } | Self::Range { line: place, .. } => {
                *place
            }
            _ => Place::default(),
        };
        let prefix = format!("{}{place}: ", self.path().display());
        let message = text.strip_prefix(&prefix).unwrap_or(&text);
        match place.in_words() {
            None => message.to_owned(),
            Some(place) => format!("{place}: {message}"),
        }
    }

    pub(super) fn from_yaml(path: &Path, text: &str, error: &serde_norway::Error) -> Self {
        if let Some(kind) = kind_of_object(text) {
            return Self::Object { path: path.to_owned(), kind };
        }
        let mut place = Place::of_yaml(error);
        let error = error.to_string();
        // The text of the library ends in the place.
        let message = match error.rfind(" at line ") {
            Some(end) if place.line > 0 => &error[..end],
            _ => &error,
        };
        // The library names the place of the mapping. Its keys begin in that column, unless it is on one
        // line.
        if let Some(key) = duplicate(message) {
            let indent = |line: &str| line.len() - line.trim_start().len() + 1;
            let is_there = |line: &str| indent(line) == place.column && has_key(line, key);
            let lines = text.lines().zip(1..).skip(place.line.saturating_sub(1));
            let second = lines.filter(|(line, _)| is_there(line)).nth(1);
            place = second.map_or(place, |(_, line)| Place { line, column: 0 });
        }
        if message == MORE_DOCUMENTS {
            place = second_document(text);
        }
        let mut message = explain(message);
        // The library says either that it found a tab, or that it found a character, but not what to do.
        let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
        let indent = &line[..line.len() - line.trim_start().len()];
        let may_be_a_tab = message.contains("cannot start any token") || message.contains("tab character");
        if may_be_a_tab && indent.contains('\t') {
            message += ": YAML allows no tab in the indentation. Fix: indent with spaces";
        }
        Self::Parse { path: path.to_owned(), place, message }
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

/// Returns the kind of the first Plugin or ClusterPlugin in the documents of a text.
fn kind_of_object(text: &str) -> Option<&'static str> {
    let documents = serde_norway::Deserializer::from_str(text);
    let mut types = documents.map_while(|document| Option::<TypeMeta>::deserialize(document).ok()).flatten();
    types.find_map(|TypeMeta { api_version, kind }| {
        let is_ours = api_version.split_once('/').is_some_and(|(group, _)| group == GROUP);
        ["Plugin", "ClusterPlugin"].into_iter().find(|ours| is_ours && *ours == kind)
    })
}

/// The message of the parser for a text with more than one document.
const MORE_DOCUMENTS: &str = "deserializing from YAML containing more than one document is not supported";

/// Returns the line at which the second document of a text begins.
fn second_document(text: &str) -> Place {
    let begins = |line: &str| {
        let rest = line.strip_prefix("---");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with(['#', '%']) && !begins(line);
    let mut lines = text.lines().zip(1..).skip_while(|(line, _)| !is_content(line));
    lines.find(|(line, _)| begins(line)).map_or(Place::default(), |(_, line)| Place { line, column: 0 })
}

/// Returns the key that a message of serde calls a duplicate.
fn duplicate(message: &str) -> Option<&str> {
    let (_, key) = message.split_once("duplicate field `")?;
    key.strip_suffix('`')
}

/// Rewrites a message of serde for operators and adds a suggestion.
///
/// The key is only in serde's text. If a later version words it differently, the suggestion is missing, but
/// not the error.
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
            "the key `serviceAccount` is missing: every plugin acts as a ServiceAccount, \
             such as `serviceAccount: {namespace: oarlock-plugins, name: my-plugin}`"
                .to_owned()
        }
        [key] if message.contains("missing field") => {
            let within = message.split("missing field").next().unwrap_or("").trim_end_matches(": ");
            let within = if within.is_empty() { String::new() } else { format!(" in `{within}`") };
            format!("the key `{key}` is missing{within}")
        }
        [key] if duplicate(message).is_some() => format!("the key `{key}` is there twice"),
        _ if message == MORE_DOCUMENTS => "one plugin for each file, but there is more than one document. \
             Fix: move the second document to a file of its own"
            .to_owned(),
        _ if message == "recursion limit" => "it is nested too deeply".to_owned(),
        _ => {
            let message = message.trim_end().replace('\n', "; ");
            ranges::out_of_range(&message).unwrap_or_else(|| in_plain_words(message))
        }
    }
}

/// Replaces serde's terms and the names of Rust types.
fn in_plain_words(mut message: String) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("repetition limit exceeded", "its aliases expand to too much"),
        ("recursion limit exceeded", "it is nested too deeply"),
        ("invalid type: unit value", "no value"),
        ("expected path string", "expected a path"),
        ("` as u128", "`"),
        ("` as i128", "`"),
        ("expected a boolean", "expected true or false"),
        ("expected usize", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected u64", "expected a whole number"),
    ];
    for (from, to) in WORDS {
        message = message.replace(from, to);
    }
    message
}

/// Returns the known name that a name most probably stands for.
pub(crate) fn closest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
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

impl Place {
    pub(super) fn of_yaml(error: &serde_norway::Error) -> Self {
        let location = error.location();
        location.map_or(Self::default(), |it| Self { line: it.line(), column: it.column() })
    }

    /// Returns it as `line 1, column 2`, as far as known.
    pub(crate) fn in_words(self) -> Option<String> {
        match self {
            Self { line: 0, .. } => None,
            Self { line, column: 0 } => Some(format!("line {line}")),
            Self { line, column } => Some(format!("line {line}, column {column}")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { line: 0, .. } => Ok(()),
            Self { line, column: 0 } => write!(f, ":{line}"),
            Self { line, column } => write!(f, ":{line}:{column}"),
        }
    }
}
