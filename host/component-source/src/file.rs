//! Components in the folder that the operator of the host named.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Component, Path},
};

use rustix::io::Errno;

use crate::error::{Error, Reason};

/// Reads the file at this path below the folder. Blocks.
pub(crate) fn read(folder: Option<&Path>, path: &str, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let Some(folder) = folder else {
        return Err(Error::new(Reason::NotAllowed, "this host has no folder for file sources")
            .hint("start the host with --component-dir FOLDER, or use another source"));
    };
    let relative = Path::new(path);
    let is_below = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !is_below {
        return Err(Error::new(Reason::Invalid, format!("file {path:?} is no relative path, or has `..`"))
            .hint("write the path relative to the folder of --component-dir"));
    }
    let file = open_below(folder, relative).map_err(|error| failed(path, &error))?;
    let metadata = file.metadata().map_err(|error| failed(path, &error))?;
    if !metadata.is_file() {
        return Err(Error::new(Reason::Invalid, format!("file {path} is not a regular file")));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(format_args!("file {path}"), max_bytes));
    }
    Ok(bytes)
}

/// Returns the error for content beyond the bound.
pub(crate) fn too_large(what: impl std::fmt::Display, max_bytes: u64) -> Error {
    Error::new(Reason::TooLarge, format!("{what} has more than {max_bytes} bytes"))
        .hint("make the component smaller, or raise maxBytes in the source policy of the host")
}

fn failed(path: &str, error: &io::Error) -> Error {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => Reason::NotFound,
        io::ErrorKind::PermissionDenied => Reason::Forbidden,
        _ if [Errno::XDEV, Errno::LOOP]
            .into_iter()
            .any(|it| error.raw_os_error() == Some(it.raw_os_error())) =>
        {
            return Error::new(Reason::NotAllowed, format!("file {path}: a link leads out of the folder"))
                .hint("place the file itself in the folder of --component-dir");
        }
        _ => Reason::Unavailable,
    };
    Error::new(reason, format!("file {path}: {error}"))
}

/// Opens a file below a folder. No link leads out of it, also if the folder changes meanwhile.
#[cfg(target_os = "linux")]
fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};

    let folder = File::open(folder)?;
    // With NONBLOCK, opening a FIFO does not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve)?.into())
}

/// Opens a file below a folder, if it is there after all links were followed.
#[cfg(not(target_os = "linux"))]
fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    let folder = folder.canonicalize()?;
    let path = folder.join(path).canonicalize()?;
    if !path.starts_with(&folder) {
        return Err(Errno::XDEV.into());
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_below_the_folder_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("files");
        std::fs::create_dir_all(folder.join("team-a")).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::fs::write(folder.join("team-a/a.wasm"), "12345").unwrap();
        symlink("a.wasm", folder.join("team-a/link")).unwrap();
        symlink("../../secret", folder.join("team-a/out")).unwrap();
        symlink(dir.path().join("secret"), folder.join("absolute")).unwrap();
        symlink(dir.path(), folder.join("parent")).unwrap();
        symlink("loop", folder.join("loop")).unwrap();

        let read = |path| super::read(Some(&folder), path, 5);
        assert_eq!(read("team-a/a.wasm").unwrap(), b"12345");
        assert_eq!(read("team-a/link").unwrap(), b"12345", "a link within the folder");
        for path in ["team-a/out", "absolute", "parent/secret", "loop"] {
            assert_eq!(read(path).unwrap_err().reason(), Reason::NotAllowed, "{path}");
        }
        for path in ["", "../secret", "/etc/passwd", "team-a/../team-a/a.wasm", "./a"] {
            assert_eq!(read(path).unwrap_err().reason(), Reason::Invalid, "{path}");
        }
        assert_eq!(read("absent").unwrap_err().reason(), Reason::NotFound);
        assert_eq!(read("team-a").unwrap_err().reason(), Reason::Invalid, "a folder");
        std::fs::write(folder.join("large"), "123456").unwrap();
        assert_eq!(read("large").unwrap_err().reason(), Reason::TooLarge);
        assert_eq!(super::read(None, "a", 5).unwrap_err().reason(), Reason::NotAllowed);
    }
}
