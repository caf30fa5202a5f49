//! The files into which the output of this process goes. Each line that the process prints changes them.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;

/// The files of some outputs. They are recognised under any name.
pub(super) struct Outputs(Vec<Metadata>);

// === impl Outputs ===

impl Outputs {
    /// Returns those of standard output and standard error, which a process has until its end.
    pub(super) fn of_process() -> &'static Self {
        static OF_PROCESS: LazyLock<Outputs> =
            LazyLock::new(|| Outputs::of(&[io::stdout().as_fd(), io::stderr().as_fd()]));
        &OF_PROCESS
    }

    /// Terminals, pipes and closed outputs are left out.
    fn of(outputs: &[BorrowedFd<'_>]) -> Self {
        let metadata =
            |output: &BorrowedFd<'_>| File::from(output.try_clone_to_owned().ok()?).metadata().ok();
        Self(outputs.iter().filter_map(metadata).filter(Metadata::is_file).collect())
    }

    /// Returns whether a path is one of these files.
    pub(super) fn contain(&self, path: &Path) -> bool {
        let Self(outputs) = self;
        let is = |found: &Metadata| {
            outputs.iter().any(|output| (output.dev(), output.ino()) == (found.dev(), found.ino()))
        };
        !outputs.is_empty() && path.metadata().is_ok_and(|found| is(&found))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_of_an_output_is_found_under_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (output, other) = (File::create(at("out.txt")).unwrap(), File::create(at("other.txt")).unwrap());
        let (_reader, pipe) = io::pipe().unwrap();
        let outputs = Outputs::of(&[output.as_fd(), pipe.as_fd()]);
        fs::hard_link(at("out.txt"), at("link.txt")).unwrap();
        for (name, is_output) in
            [("out.txt", true), ("link.txt", true), ("other.txt", false), ("none", false)]
        {
            assert_eq!(outputs.contain(&at(name)), is_output, "{name}");
        }
        fs::rename(at("out.txt"), at("renamed.txt")).unwrap();
        assert!(outputs.contain(&at("renamed.txt")));
        assert!(Outputs::of(&[output.as_fd(), other.as_fd()]).contain(&at("other.txt")));
        assert!(!Outputs::of(&[pipe.as_fd()]).contain(&at("renamed.txt")));
    }
}
