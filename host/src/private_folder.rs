//! Folders of the host that no other user may write to.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Creates the folder, and checks that it can be written, and only by this user. Writes nothing to a folder
/// that another user can write to: a link of theirs could point to any file.
pub(crate) fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| match folder.is_file() {
        true => io::Error::other("it is a file, not a folder"),
        false => error,
    })?;
    let found = fs::metadata(folder)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the folder belongs to another user"));
    }
    if found.permissions().mode() & 0o022 != 0 {
        return Err(io::Error::other("other users can write to the folder (run chmod go-w on it)"));
    }
    // A new file with a name that no one can know before.
    tempfile::Builder::new().prefix(".probe-").tempfile_in(folder)?.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_this_user_is_probed_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        prepare(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn no_planted_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "content").unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let link = folder.join(format!(".probe-{}", std::process::id()));
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        for (mode, is_private) in [(0o777, false), (0o700, true)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(prepare(&folder).is_ok(), is_private);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "content");
            assert!(link.is_symlink());
        }
    }
}
