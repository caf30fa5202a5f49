//! Tests of plugins: a **case** names the objects of a cluster, steps, and what the plugin is expected to do.
//!
//! ```text
//!   case.yaml ──► Case ──► run ──► a host, as in production ──► plugin
//!                           │        │ requests                    │ calls and imports
//!                           │        ▼                             ▼
//!                           │      an embedded API server        Happened ──► compared with `expect`
//!                           └ clock: paused, moved by steps
//! ```
//!
//! A case runs on a runtime of its own, on one thread, whose clock is paused: time passes only when nothing
//! else can happen, and the server answers in the same process. So a case that waits ten minutes takes
//! milliseconds, and two runs are equal.
//!
//! [`Case::read`] reads a file, [`run`] runs it, [`accept`] writes what happened into the file, and
//! [`junit`] writes a report for CI.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod accept;
mod api;
mod case;
mod clock;
mod compare;
mod happened;
mod host;
pub mod junit;
mod rights;
mod run;
mod watcher;

pub use accept::{AcceptError, accept};
pub use case::{Case, CaseError};
pub use compare::Difference;
pub use run::{Checkpoint, Job, Place, Ran, RunError, run};
