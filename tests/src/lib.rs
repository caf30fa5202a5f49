//! Support for the tests that need more than one crate, and for the demo.
//!
//! The host's own counters never decide whether plugins received what they should. [`recorder`] records the
//! history of the objects by a plain watch of its own, [`received`] reads from the host's output the
//! notifications that guests report, and [`chain_check`] compares the two.
//!
//! ```text
//!   API server ──watch──▶ recorder ───────history────────┐
//!       │                                                ├──▶ chain_check ──▶ violations
//!   host process ──log lines of guests──▶ received ──────┘
//! ```

#![forbid(unsafe_code)]

pub mod audit;
pub mod chain_check;
pub mod cluster;
pub mod control_plane;
pub mod copies;
pub mod host_process;
pub mod hostile;
pub mod manifests;
pub mod operator;
pub mod received;
pub mod recorder;
pub mod tool;
pub mod wait;
