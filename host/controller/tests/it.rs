//! The whole host, but for its command line, against the embedded API server and with real guests.
//!
//! The guests are those that `cargo xtask guests` puts into `target/guests`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "it/bad_files.rs"]
mod bad_files;
#[path = "it/bad_plugins.rs"]
mod bad_plugins;
#[path = "it/definitions.rs"]
mod definitions;
#[path = "it/election.rs"]
mod election;
#[path = "it/events.rs"]
mod events;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/hoarding.rs"]
mod hoarding;
#[path = "it/mended_files.rs"]
mod mended_files;
#[path = "it/rig.rs"]
mod rig;
#[path = "it/rights.rs"]
mod rights;
#[path = "it/swapping.rs"]
mod swapping;
#[path = "it/told.rs"]
mod told;
