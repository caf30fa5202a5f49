//! The languages of plugins.

use std::fmt;
use std::fs;
use std::path::Path;

/// A language in which plugins are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// A crate of the type `cdylib`.
    Rust,
    /// An npm project with a `tsconfig.json`.
    TypeScript,
    /// An npm project.
    JavaScript,
    /// A folder with a `requirements.txt`.
    Python,
    /// A Go module.
    Go,
    /// A folder of `*.c` files.
    C,
}

// === impl Language ===

impl Language {
    /// All languages, in the order in which they are listed.
    pub const ALL: [Self; 6] =
        [Self::Rust, Self::TypeScript, Self::JavaScript, Self::Python, Self::Go, Self::C];

    /// Returns the language of the project in this folder, if it contains one.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        let has = |name: &str| folder.join(name).is_file();
        if has("Cargo.toml") {
            return Some(Self::Rust);
        }
        if has("go.mod") {
            return Some(Self::Go);
        }
        if has("package.json") {
            return Some(if has("tsconfig.json") { Self::TypeScript } else { Self::JavaScript });
        }
        if has("requirements.txt") {
            return Some(Self::Python);
        }
        let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.any(|file| file.path().extension().is_some_and(|extension| extension == "c")).then_some(Self::C)
    }

    /// Returns the short name, as `--lang` takes it.
    #[must_use]
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::TypeScript => "ts",
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// Returns the folder with the sources of its SDK among the SDKs, without what the SDK's own build
    /// writes.
    pub(crate) const fn sdk(self) -> &'static str {
        match self {
            Self::TypeScript | Self::JavaScript => "ts/src",
            other => other.short_name(),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::TypeScript => "TypeScript",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::Go => "Go",
            Self::C => "C",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_file_says_the_language() {
        let language_of = |files: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                fs::write(folder.path().join(file), "").unwrap();
            }
            Language::of(folder.path())
        };
        assert_eq!(language_of(&["Cargo.toml", "a.c"]), Some(Language::Rust));
        assert_eq!(language_of(&["go.mod"]), Some(Language::Go));
        assert_eq!(language_of(&["package.json"]), Some(Language::JavaScript));
        assert_eq!(language_of(&["package.json", "tsconfig.json"]), Some(Language::TypeScript));
        assert_eq!(language_of(&["requirements.txt", "a.py"]), Some(Language::Python));
        assert_eq!(language_of(&["a.c", "a.h"]), Some(Language::C));
        assert_eq!(language_of(&["a.py", "plugin.yaml"]), None);
    }
}
