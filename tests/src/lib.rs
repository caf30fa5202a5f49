//! Support for the tests that need more than one crate, and for the demo.
//!
//! The verdict over what plugins were told never comes from the host's own counters: [`recorder`] keeps the event history
//! by a plain watch of its own, [`told`] reads what the guests say of themselves out of the host's output, and [`judge`]
//! holds one against the other.
//!
//! ```text
//!   API server ──watch──▶ recorder ──history──┐
//!       │                                     ├──▶ judge ──▶ faults
//!   host process ──log lines──▶ told ─────────┘
//! ```

#![forbid(unsafe_code)]

pub mod cluster;
pub mod control_plane;
pub mod host_process;
pub mod judge;
pub mod recorder;
pub mod told;

/// How long a test waits for another process before it fails and shows what it saw. What goes well takes a fraction of it.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);
