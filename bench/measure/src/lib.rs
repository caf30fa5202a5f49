//! How a process under test measures itself, and how it talks to the server that it is measured against.
//!
//! All of it blocks, and does next to nothing: it must not show in what it measures.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod control;
mod process;
mod record;

pub use control::{Control, Plan};
pub use process::{cpu, peak_resident, reset_peak, resident, settle};
pub use record::{Meter, Record};
