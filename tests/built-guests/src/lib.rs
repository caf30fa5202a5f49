//! The components that `cargo xtask guests` has built, for tests; and what this machine lacks, so that tests
//! are skipped by name.
//!
//! The test harness cannot skip a test that runs already. So a test that lacks something panics with
//! [`SKIPPED`] and the reason; `cargo xtask test` counts it as skipped, and prints the reason. `cargo test`
//! alone shows a failure with the reason.
//!
//! `cargo xtask guests` notes what is missing: a file for each guest, language or program, with the reason.

#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How the message of a test that is skipped begins.
pub const SKIPPED: &str = "SKIPPED: ";

/// The plugins that the demo runs.
pub const OF_THE_DEMO: [&str; 7] =
    ["hello-rust", "hello-c", "hello-go", "hello-ts", "hello-python", "mirror", "traps"];

/// Returns the path of a guest's component. Skips the test if its toolchain is missing.
///
/// # Panics
///
/// When the guest was not built.
#[must_use]
pub fn component(guest: &str) -> PathBuf {
    needs(guest);
    let path = folder().join(format!("{guest}.wasm"));
    assert!(path.is_file(), "{} is missing: run `cargo xtask guests {guest}` first", path.display());
    path
}

/// Skips the test if this is missing: a guest, a language by its short name, or `control-plane`.
pub fn needs(what: &str) {
    if let Some(reason) = missing(what) {
        skip(&reason);
    }
}

/// Returns why something was not built or fetched.
#[must_use]
pub fn missing(what: &str) -> Option<String> {
    fs::read_to_string(note(&folder(), what)).ok()
}

/// Ends the test that runs as skipped.
///
/// # Panics
///
/// Always.
pub fn skip(reason: &str) -> ! {
    panic!("{SKIPPED}{reason}")
}

/// Skips the test for these reasons, if there are any, after it has done what it can.
pub fn skip_rest(reasons: &[String]) {
    if !reasons.is_empty() {
        skip(&format!("in part: {}", reasons.join("; ")));
    }
}

/// Notes that something is missing in the folder of built guests, or that it no longer is.
///
/// # Errors
///
/// When the note cannot be written or removed.
pub fn set_missing(folder: &Path, what: &str, reason: Option<&str>) -> io::Result<()> {
    let note = note(folder, what);
    let Some(reason) = reason else {
        return match fs::remove_file(&note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    fs::create_dir_all(folder.join(MISSING))?;
    fs::write(&note, reason)
}

const MISSING: &str = "missing";

fn note(folder: &Path, what: &str) -> PathBuf {
    folder.join(MISSING).join(what)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests")
}
