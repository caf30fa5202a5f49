//! Folders of the host that no other user may write to.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Creates the folder, and checks that it can be written, and only by this user.
pub(crate) fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, b"")?;
    let own = fs::metadata(&probe).map(|probe| probe.uid());
    fs::remove_file(&probe)?;
    let found = fs::metadata(folder)?;
    if found.uid() != own? {
        return Err(io::Error::other("the folder belongs to another user"));
    }
    if found.permissions().mode() & 0o022 != 0 {
        return Err(io::Error::other("other users can write to the folder (run chmod go-w on it)"));
    }
    Ok(())
}
