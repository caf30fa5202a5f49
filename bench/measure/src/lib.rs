//! Measures the own process, and controls the synthetic API server.
//!
//! All calls block and cost little, so that they do not change the readings.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod control;
mod process;
mod record;

pub use control::{Control, Plan};
pub use process::{cpu, peak_resident, reset_peak, resident, settle};
pub use record::{Meter, Record};
