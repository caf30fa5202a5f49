//! The versions of all tools that are fetched, in one place. A changed version is fetched anew and rebuilds what it made.

/// Debian's Rust compiler with sources, for machines whose rustup cannot get the Wasm target. Its standard library
/// package carries the version in its name.
pub(crate) const DEBIAN_RUST: &str = "1.96";
/// The LLVM that Debian's Rust needs.
pub(crate) const DEBIAN_RUST_LLVM: &str = "22";
/// Debian's clang, for C guests.
pub(crate) const DEBIAN_CLANG: &str = "19";
