//! The format of records: the [entries](entry), and the [file](file) that holds them.
//!
//! Here is what a file contains, and how it is written and read. It depends on no WebAssembly, so that the
//! reader is fuzzed without it: `oarlock-plugin` makes the entries, and replays them.
//!
//! ```
//! use oarlock_record_format::{entry::{Entry, Gone}, file::{Encoder, Reader}};
//!
//! let (mut encoder, mut file) = Encoder::new();
//! encoder.add(&Entry::Gone(Gone { instance: 1, lost_before: 0 }))?;
//! file.extend(encoder.block()?);
//! let mut reader = Reader::new(&file[..])?;
//! assert!(matches!(reader.next_entry()?, Some(Entry::Gone(_))));
//! assert_eq!(reader.next_entry()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod entry;
pub mod file;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
