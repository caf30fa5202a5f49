//! What a build needs to know of a `go.mod`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A `go.mod`.
pub(super) struct Module {
    /// The module's own path.
    pub(super) path: String,
    required: Vec<String>,
    /// Modules and what replaces them.
    replaced: Vec<(String, String)>,
}

// === impl Module ===

impl Module {
    /// Reads the `go.mod` in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("go.mod");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} has no module line", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut module = Self { path: String::new(), required: vec![], replaced: vec![] };
        let mut block = None;
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or_default();
            let mut words: Vec<_> = line.split_whitespace().map(|word| word.trim_matches('"')).collect();
            let directive = match (block, words.as_slice()) {
                (_, []) => continue,
                (_, [")"]) => {
                    block = None;
                    continue;
                }
                (None, [directive, "("]) => {
                    block = Some(*directive);
                    continue;
                }
                (Some(directive), _) => directive,
                (None, _) => words.remove(0),
            };
            match (directive, words.as_slice()) {
                ("module", [path]) => module.path = (*path).to_owned(),
                ("require", [path, ..]) => module.required.push((*path).to_owned()),
                ("replace", [path, "=>", by, ..] | [path, _, "=>", by, ..]) => {
                    module.replaced.push(((*path).to_owned(), (*by).to_owned()));
                }
                _ => {}
            }
        }
        (!module.path.is_empty()).then_some(module)
    }

    pub(super) fn requires(&self, path: &str) -> bool {
        self.required.iter().any(|required| required == path)
    }

    /// Returns whether a module is replaced by this folder of the project.
    pub(super) fn replaces(&self, path: &str, folder: &str) -> bool {
        self.replaced.iter().any(|(replaced, by)| replaced == path && by.strip_prefix("./") == Some(folder))
    }

    /// Returns the folders that replace modules and are there.
    pub(super) fn local_replacements(&self, project: &Path) -> Vec<PathBuf> {
        let is_path = |by: &str| by.starts_with("./") || by.starts_with("../") || Path::new(by).is_absolute();
        let local = self.replaced.iter().filter(|(_, by)| is_path(by)).map(|(_, by)| project.join(by));
        local.filter(|folder| folder.is_dir()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_and_replacements_are_read_from_lines_and_blocks() {
        let text = "module \"example.com/a\" // a comment\n\ngo 1.25\n\nrequire oarlock.dev/sdk v0.1.0\n\n\
            require (\n\tk8s.io/api v0.36.0\n\t// none.example v1.0.0\n)\n\n\
            replace oarlock.dev/sdk => ./.oarlock/go-sdk\n\
            replace (\n\tk8s.io/api v0.36.0 => ../api\n\tb.example => c.example v1.2.3\n)\n";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.path, "example.com/a");
        assert_eq!(module.required, ["oarlock.dev/sdk", "k8s.io/api"]);
        assert!(module.replaces("oarlock.dev/sdk", ".oarlock/go-sdk"));
        assert!(!module.replaces("k8s.io/api", ".oarlock/go-sdk"));

        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("api")).unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        let project = folder.path().join("project");
        assert_eq!(module.local_replacements(&project), [project.join("../api")], "those that are there");
    }

    #[test]
    fn a_text_without_a_module_is_refused() {
        assert!(Module::parse("go 1.25\n").is_none());
    }
}
