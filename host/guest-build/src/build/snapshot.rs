//! The content of a project's sources at one time, so that a change of one of them is found.
//!
//! A snapshot leaves out what `.gitignore` names, unlike the stamp of a build: a program that writes a file
//! there, such as `oarlock dev` itself, must not make it build for ever. A build that begins for another
//! reason finds these files as well, since a source may be generated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{outputs::Outputs, stamp};

/// The content of a project's sources at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The hashes of the files, by the path in the project's folder.
    files: BTreeMap<PathBuf, u64>,
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn of(folder: &Path, is_written: &dyn Fn(&Path) -> bool) -> Result<Self> {
        let (gitignore, outputs) = (gitignore(folder), Outputs::of_process());
        let is_excluded = |path: &Path, is_folder: bool| {
            gitignore.matched(path, is_folder).is_ignore() || is_written(path) || outputs.contain(path)
        };
        let mut files = BTreeMap::new();
        for path in stamp::inputs(folder, true, &is_excluded)? {
            if !path.is_dir() {
                let hash =
                    stamp::hash_file(&path).with_context(|| format!("cannot read {}", path.display()))?;
                files.insert(path.strip_prefix(folder)?.to_owned(), hash);
            }
        }
        Ok(Self { files })
    }

    /// Returns the first file that is new, changed or gone since an earlier snapshot, by its path in the
    /// project's folder.
    #[must_use]
    pub fn changed_since<'a>(&'a self, earlier: &'a Self) -> Option<&'a Path> {
        let mut paths = self.files.keys().chain(earlier.files.keys());
        paths.find(|path| self.files.get(*path) != earlier.files.get(*path)).map(PathBuf::as_path)
    }
}

/// Returns the rules of `.gitignore` in a folder. Those that cannot be read are left out, as Git does.
fn gitignore(folder: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let _ = builder.add(folder.join(".gitignore"));
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_git_ignores_and_what_the_host_writes_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let now = || Snapshot::of(folder.path(), &|path| path.ends_with("run.bin")).unwrap();
        write(".gitignore", "# Ours.\n/out.txt\nmade/\n*.tmp\n!kept.tmp\n");
        write("src/hello.c", "a");
        write("src/b.c", "b");
        let before = now();
        let no_sources = "dev.log run.record run.bin out.txt made/x.c src/made/y.c src/a.tmp .a .b/c";
        for path in no_sources.split(' ') {
            write(path, "1");
            assert_eq!(now().changed_since(&before), None, "{path}");
        }
        assert_eq!(now(), before);
        for path in ["kept.tmp", "src/out.txt", "src/hello.c"] {
            let before = now();
            write(path, "2");
            assert_eq!(now().changed_since(&before), Some(Path::new(path)));
        }
        let before = now();
        fs::remove_file(folder.path().join("src/b.c")).unwrap();
        assert_eq!(now().changed_since(&before), Some(Path::new("src/b.c")));
    }

    #[test]
    fn a_folder_without_a_gitignore_has_a_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("hello.c"), "").unwrap();
        assert_eq!(Snapshot::of(folder.path(), &|_| false).unwrap().files.len(), 1);
    }
}
