//! The binary as its users run it: output, exit codes, start and end.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

#[path = "it/beginning_and_ending.rs"]
mod beginning_and_ending;
#[path = "it/commands.rs"]
mod commands;
#[path = "it/inspections.rs"]
mod inspections;
#[path = "it/kubeconfigs.rs"]
mod kubeconfigs;
#[path = "it/odd_files.rs"]
mod odd_files;
#[path = "it/output.rs"]
mod output;
#[path = "it/real_servers.rs"]
mod real_servers;
#[path = "it/redirected.rs"]
mod redirected;
#[path = "it/refusals.rs"]
mod refusals;
#[path = "it/rig.rs"]
mod rig;
#[path = "it/terminals.rs"]
mod terminals;
