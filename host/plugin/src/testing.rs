//! For tests and the programs of `host/plugin/fuzz` only.

pub mod fuzz;
