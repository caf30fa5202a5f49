//! The only unsafe code of the host: it runs machine code from a file.
//!
//! wasmtime cannot check machine code. [`map`] is sound if every file that it gets contains the output of
//! [`wasmtime::Engine::precompile_component`] and does not change while it is mapped. `CodeStore`, the only
//! caller, ensures both. It maps only files of its private folder that a compiler of this host wrote, whose
//! name identifies the component and the engine, and that were not changed since they were written. It
//! creates and removes files, and never changes one. wasmtime also checks that the same version with the same
//! settings compiled the code.
#![allow(unsafe_code, reason = "loads compiled code; the module's documentation explains why this is sound")]

use std::path::Path;

use wasmtime::{Engine, component::Component};

/// Maps compiled code.
pub(super) fn map(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: this host's compiler wrote the file, and no other user can write it; see above.
    unsafe { Component::deserialize_file(engine, path) }
}
