//! Makes and builds plugins: what `oarlock plugin new`, `build` and `doctor` do, and `cargo xtask guests`.
//!
//! A [`Project`] is a folder whose sources become a component. [`new`] writes one from a template,
//! [`build()`] builds it with the tools of its language, and [`doctor`] lists these tools. Everything that a
//! build needs and that no registry has is embedded: the contract, the SDKs, the templates. So it works in
//! any folder, without a checkout of this repository.
//!
//! Blocks, runs other programs, and writes progress to standard error. Knows nothing of a running host.

#![forbid(unsafe_code)]

pub mod bindings;
mod build;
pub mod doctor;
mod embedded;
mod environment;
mod language;
pub mod new;
pub mod progress;
mod project;
pub mod toolchain;

pub use build::{Outcome, Snapshot, build, install, write_c_test_sdk};
pub use environment::ENVIRONMENT;
pub use language::Language;
pub use project::Project;
