//! The only unsafe code of the host: running machine code from a file.
//!
//! wasmtime cannot check machine code; it believes what the file says. [`map`] is sound for as long as every file that it is given
//! holds what [`wasmtime::Engine::precompile_component`] wrote and is not changed while it is mapped. `CodeStore`, the only
//! caller, sees to both: it maps files of its own private folder only, which a compiler of this host wrote, whose name says which component and
//! which engine they are for and whose digest is as it was when they were written; and it never changes a file, it only makes and removes
//! them. wasmtime itself looks once more whether the code was made by the same version with the same settings.
#![allow(unsafe_code, reason = "compiled code is loaded; the module says why that is sound")]

use std::path::Path;

use wasmtime::{Engine, component::Component};

/// Maps compiled code.
pub(super) fn map(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file was written by this host's compiler and is nobody else's to write; see above.
    unsafe { Component::deserialize_file(engine, path) }
}
