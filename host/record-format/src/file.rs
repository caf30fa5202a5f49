//! The file that holds a record.
//!
//! ```text
//! "OARLKREC" version:u16 0:u16    the head; all numbers are little-endian
//! packed:u32 raw:u32 zstd         a block: one zstd frame with a checksum; a line of JSON for each entry
//! …
//! ```
//!
//! A block is complete in itself, so a file that ends within a block, because the host ended, can be read up
//! to there. A reader trusts no length: a block has at most 40 MiB packed and 64 MiB unpacked, an entry at
//! most 32 MiB, and 384 MiB in memory.

mod memory;

use std::io::{self, Read};

pub use self::memory::json_size;
use crate::entry::Entry;

const MAGIC: &[u8; 8] = b"OARLKREC";

/// The version of the format. A host reads only its own version.
pub const VERSION: u16 = 1;

/// The offset of the first block, behind the head of the file.
pub const FIRST_BLOCK: u64 = 12;

const MAX_PACKED: usize = 40 << 20;
const MAX_RAW: usize = 64 << 20;

/// The maximum size of one entry as JSON.
pub const MAX_ENTRY: usize = 32 << 20;

/// The size at which a block is written.
const BLOCK: usize = 256 << 10;

/// Why a record cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// Another kind of file.
    #[error("is not a record: it does not begin with OARLKREC")]
    NotARecord,
    /// A record in another version of the format.
    #[error("is a record in version {found} of the format; this oarlock reads version {VERSION}")]
    OtherVersion {
        /// The version.
        found: u16,
    },
    /// The bytes are not what a host wrote.
    #[error("is damaged at byte {at}: {reason}")]
    Damaged {
        /// The offset of the block.
        at: u64,
        /// What is wrong.
        reason: String,
    },
}

/// Collects entries in blocks.
#[derive(Debug)]
pub struct Encoder {
    raw: Vec<u8>,
}

/// Reads the entries of a record.
pub struct Reader<R> {
    from: R,
    /// The offset of the next block.
    at: u64,
    block: Vec<u8>,
    /// The offset of the next line in the block.
    next: usize,
    /// The length of the last entry.
    entry_len: usize,
    is_truncated: bool,
}

// === impl Encoder ===

impl Encoder {
    /// Returns an encoder, and the head of the file.
    #[must_use]
    pub fn new() -> (Self, Vec<u8>) {
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend([0, 0]);
        (Self { raw: Vec::new() }, head)
    }

    /// Adds an entry. Returns false if it is larger than an entry may be.
    ///
    /// # Errors
    ///
    /// When the entry cannot be written as JSON.
    pub fn add(&mut self, entry: &Entry) -> io::Result<bool> {
        let before = self.raw.len();
        serde_json::to_writer(&mut self.raw, entry)?;
        if self.raw.len() - before > MAX_ENTRY {
            self.raw.truncate(before);
            return Ok(false);
        }
        self.raw.push(b'\n');
        Ok(true)
    }

    /// Returns whether the entries since the last block are worth one.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.raw.len() >= BLOCK
    }

    /// Returns the block of all entries since the last one; empty without entries.
    ///
    /// # Errors
    ///
    /// When it cannot be compressed.
    pub fn block(&mut self) -> io::Result<Vec<u8>> {
        let raw = std::mem::take(&mut self.raw);
        if raw.is_empty() {
            return Ok(Vec::new());
        }
        let mut compressor = zstd::bulk::Compressor::new(3)?;
        compressor.include_checksum(true)?;
        let packed = compressor.compress(&raw)?;
        let length = |n: usize| u32::try_from(n).map_err(io::Error::other);
        let mut block = length(packed.len())?.to_le_bytes().to_vec();
        block.extend(length(raw.len())?.to_le_bytes());
        block.extend(packed);
        Ok(block)
    }
}

// === impl Reader ===

impl<R: Read> Reader<R> {
    /// Reads the head of a record.
    ///
    /// # Errors
    ///
    /// When it is another kind of file, or another version of the format.
    pub fn new(mut from: R) -> Result<Self, Error> {
        let mut head = [0; FIRST_BLOCK as usize];
        let n_read = read_up_to(&mut from, &mut head)?;
        if n_read < 10 || head[..8] != *MAGIC {
            return Err(Error::NotARecord);
        }
        let found = u16::from_le_bytes([head[8], head[9]]);
        if found != VERSION {
            return Err(Error::OtherVersion { found });
        }
        Ok(Self {
            from,
            at: FIRST_BLOCK,
            block: Vec::new(),
            next: 0,
            entry_len: 0,
            is_truncated: n_read < head.len(),
        })
    }

    /// Returns the next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// When the file is damaged from here on.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        while self.next >= self.block.len() {
            if self.is_truncated || !self.read_block()? {
                return Ok(None);
            }
        }
        let rest = &self.block[self.next..];
        let line = memchr::memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
        if line.len() > MAX_ENTRY || memory::of_text(line) > memory::MOST {
            let n_bytes = line.len();
            let most = memory::MOST >> 20;
            return Err(self.damaged(format!(
                "an entry of {n_bytes} bytes, which is larger than hosts write, or takes more than {most} MiB"
            )));
        }
        self.next += line.len() + 1;
        self.entry_len = line.len();
        serde_json::from_slice(line).map(Some).map_err(|error| self.damaged(format!("an entry: {error}")))
    }

    /// Returns the length of the last entry's text.
    #[must_use]
    pub fn entry_len(&self) -> usize {
        self.entry_len
    }

    /// Returns whether the file ends within a block: the host was ended while it wrote.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    fn read_block(&mut self) -> Result<bool, Error> {
        let mut lengths = [0; 8];
        let n_read = read_up_to(&mut self.from, &mut lengths)?;
        if n_read < lengths.len() {
            self.is_truncated = n_read > 0;
            return Ok(false);
        }
        let [a, b, c, d, e, f, g, h] = lengths;
        let packed = u32::from_le_bytes([a, b, c, d]) as usize;
        let raw = u32::from_le_bytes([e, f, g, h]) as usize;
        if packed > MAX_PACKED || raw > MAX_RAW || packed == 0 || raw == 0 {
            return Err(self.damaged(format!("a block of {packed} bytes, unpacked {raw}")));
        }
        // Reads what is there, and not what the length says.
        let mut bytes = Vec::new();
        (&mut self.from).take(packed as u64).read_to_end(&mut bytes)?;
        if bytes.len() < packed {
            self.is_truncated = true;
            return Ok(false);
        }
        let block = zstd::bulk::decompress(&bytes, raw)
            .map_err(|error| self.damaged(format!("a block cannot be unpacked: {error}")))?;
        if block.len() != raw {
            return Err(self.damaged(format!("a block has {} bytes instead of {raw}", block.len())));
        }
        self.block = block;
        self.next = 0;
        self.at += (packed + lengths.len()) as u64;
        Ok(true)
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { at: self.at, reason }
    }
}

/// Fills the buffer unless the input ends. Returns the number of bytes.
fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n_read = 0;
    while n_read < buffer.len() {
        match from.read(&mut buffer[n_read..]) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_read)
}

/// Returns a file with one block of this content.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn in_one_block(content: &[u8]) -> Vec<u8> {
    let (mut encoder, mut file) = Encoder::new();
    encoder.raw = content.to_vec();
    file.extend(encoder.block().unwrap_or_default());
    file
}

/// Returns a file with these entries.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn encoded(entries: &[Entry]) -> Vec<u8> {
    let (mut encoder, mut file) = Encoder::new();
    for entry in entries {
        // A block that would become too large is written first.
        if encoder.is_full() {
            file.extend(encoder.block().unwrap_or_default());
        }
        let _ = encoder.add(entry);
    }
    file.extend(encoder.block().unwrap_or_default());
    file
}

#[cfg(test)]
mod tests;
