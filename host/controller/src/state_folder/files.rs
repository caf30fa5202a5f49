//! Files with a checksum, that are written completely or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_plugin::component::Digest;
use rustix::fs::OFlags;

use super::Error;

/// Creates a folder for this user only.
pub(super) fn create_folder(folder: &Path) -> Result<(), Error> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|source| Error::io(folder, "created", source))
}

/// Writes a file: the new content is there completely, or the old one is, also after a crash.
pub(super) fn write(path: &Path, parts: &[&[u8]]) -> Result<(), Error> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}.part", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync_folder_of(path)
    })();
    written.map_err(|source| {
        // The disk may be full.
        let _ = fs::remove_file(&beside);
        Error::io(path, "written", source)
    })
}

/// Writes a text behind a line with its checksum.
pub(super) fn write_checked(path: &Path, text: &str) -> Result<(), Error> {
    write(path, &[Digest::of(text.as_bytes()).to_string().as_bytes(), b"\n", text.as_bytes()])
}

/// Reads a text that [`write_checked`] wrote; none if the file does not exist.
pub(super) fn read_checked(path: &Path, limit: u64) -> Result<Option<String>, Error> {
    let Some(bytes) = read(path, limit)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| Error::damaged(path, "it is damaged"))?;
    match text.split_once('\n') {
        Some((sum, text)) if sum == Digest::of(text.as_bytes()).to_string() => Ok(Some(text.to_owned())),
        _ => Err(Error::damaged(path, "it is damaged")),
    }
}

/// Reads a regular file of this user that no other user can read or write; none if it does not exist.
pub(super) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    let unread = |source| Error::io(path, "read", source);
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(unread)?,
    };
    let metadata = file.metadata().map_err(unread)?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_file() || !is_own || metadata.mode() & 0o077 != 0 {
        return Err(Error::damaged(path, "another user may have written it, or can read it"));
    }
    if metadata.len() > limit {
        return Err(Error::damaged(path, format!("it has more than {limit} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(unread)?;
    Ok(Some(bytes))
}

/// Makes a rename last.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
