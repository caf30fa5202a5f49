//! The root file system of the image, as a layer: a tar archive, compressed with gzip, which every
//! tool reads.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::libraries::Library;
use super::source::Source;

/// The user of the image, as in distroless images. The manifests name it too.
pub(super) const USER: u32 = 65532;

/// The path of the binary.
pub(super) const PROGRAM: &str = "/usr/bin/oarlock";

const LICENSE: &str = include_str!("../../../LICENSE");

/// A compressed layer.
pub(super) struct Layer {
    pub(super) bytes: Vec<u8>,
    /// The SHA-256 of the archive before its compression.
    pub(super) diff_id: String,
}

/// What is at a path.
enum Entry {
    Folder { mode: u32, owner: u32 },
    File { mode: u32, bytes: Vec<u8> },
}

/// Makes the layer. Equal arguments make equal bytes.
pub(super) fn layer(
    program: Vec<u8>,
    libraries: Vec<Library>,
    source: &Source,
    level: Compression,
) -> Result<Layer> {
    let archive = archive(&entries(program, libraries), source.time)?;
    let diff_id = sha256(&archive);
    // Without a file name or a time.
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(&archive)?;
    Ok(Layer { bytes: encoder.finish()?, diff_id })
}

/// Returns the SHA-256 of bytes, in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns all entries. A folder sorts before what is in it.
fn entries(program: Vec<u8>, libraries: Vec<Library>) -> BTreeMap<PathBuf, Entry> {
    let text = |text: &str| Entry::File { mode: 0o644, bytes: text.as_bytes().to_vec() };
    let mut entries = BTreeMap::from([
        (PathBuf::from(PROGRAM), Entry::File { mode: 0o755, bytes: program }),
        ("/etc/group".into(), text(&format!("root:x:0:\noarlock:x:{USER}:\n"))),
        ("/etc/nsswitch.conf".into(), text("passwd: files\ngroup: files\nhosts: files dns\n")),
        (
            "/etc/passwd".into(),
            text(&format!(
                "root:x:0:0:root:/:/sbin/nologin\noarlock:x:{USER}:{USER}:oarlock:/home/oarlock:/sbin/nologin\n"
            )),
        ),
        ("/etc/ssl/certs/ca-certificates.crt".into(), text(&certificates())),
        ("/home/oarlock".into(), Entry::Folder { mode: 0o700, owner: USER }),
        ("/tmp".into(), Entry::Folder { mode: 0o1777, owner: 0 }),
        ("/usr/share/doc/oarlock/LICENSE".into(), text(LICENSE)),
    ]);
    for Library { path, bytes } in libraries {
        entries.insert(path, Entry::File { mode: 0o755, bytes });
    }
    let folders: Vec<_> =
        entries.keys().flat_map(|path| path.ancestors().skip(1)).map(Path::to_owned).collect();
    for folder in folders.into_iter().filter(|folder| folder != Path::new("/")) {
        entries.entry(folder).or_insert(Entry::Folder { mode: 0o755, owner: 0 });
    }
    entries
}

fn archive(entries: &BTreeMap<PathBuf, Entry>, time: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, entry) in entries {
        let mut header = Header::new_ustar();
        header.set_mtime(time);
        let (kind, mode, owner, bytes) = match entry {
            Entry::Folder { mode, owner } => (EntryType::Directory, *mode, *owner, [].as_slice()),
            Entry::File { mode, bytes } => (EntryType::Regular, *mode, 0, bytes.as_slice()),
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner.into());
        header.set_gid(owner.into());
        header.set_size(bytes.len() as u64);
        let path = path.strip_prefix("/").unwrap_or(path);
        archive.append_data(&mut header, path, bytes)?;
    }
    archive.into_inner()
}

/// Returns Mozilla's certificate authorities, as PEM. Their version is in the lock file, so that the image
/// does not depend on the machine that builds it.
fn certificates() -> String {
    use base64::Engine;

    let mut pem = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        let text = base64::engine::general_purpose::STANDARD.encode(certificate);
        pem += "-----BEGIN CERTIFICATE-----\n";
        for start in (0..text.len()).step_by(64) {
            pem += &text[start..text.len().min(start + 64)];
            pem += "\n";
        }
        pem += "-----END CERTIFICATE-----\n";
    }
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str) -> Library {
        Library { path: path.into(), bytes: b"library".to_vec() }
    }

    #[test]
    fn the_archive_has_every_folder_before_its_files_and_one_time() {
        let libraries = vec![library("/lib64/ld.so"), library("/lib/x86_64-linux-gnu/libc.so.6")];
        let bytes = archive(&entries(b"program".to_vec(), libraries), 7).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut listed = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 7);
            assert_eq!(header.username().unwrap(), Some(""));
            let (mode, uid) = (header.mode().unwrap(), header.uid().unwrap());
            listed.push(format!("{mode:o} {uid} {}", entry.path().unwrap().display()));
        }
        insta::assert_snapshot!(listed.join("\n"), @"
        755 0 etc
        644 0 etc/group
        644 0 etc/nsswitch.conf
        644 0 etc/passwd
        755 0 etc/ssl
        755 0 etc/ssl/certs
        644 0 etc/ssl/certs/ca-certificates.crt
        755 0 home
        700 65532 home/oarlock
        755 0 lib
        755 0 lib/x86_64-linux-gnu
        755 0 lib/x86_64-linux-gnu/libc.so.6
        755 0 lib64
        755 0 lib64/ld.so
        1777 0 tmp
        755 0 usr
        755 0 usr/bin
        755 0 usr/bin/oarlock
        755 0 usr/share
        755 0 usr/share/doc
        755 0 usr/share/doc/oarlock
        644 0 usr/share/doc/oarlock/LICENSE
        ");
    }

    #[test]
    fn the_certificates_are_pem() {
        let pem = certificates();
        let n_begun = pem.matches("-----BEGIN CERTIFICATE-----\nMII").count();
        assert_eq!(n_begun, webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(n_begun > 100 && pem.lines().all(|line| line.len() <= 64), "{n_begun}");
    }
}
