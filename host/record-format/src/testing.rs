//! For tests and the programs of `host/record-format/fuzz` only.

pub mod fuzz;
