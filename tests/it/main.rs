//! Tests of the binary as a process, against real and embedded API servers.

mod bad_input;
mod bad_roll_out;
mod command;
mod compare;
mod demo;
mod docs;
mod examples;
mod hostile;
mod image;
mod monitoring;
mod new_plugins;
mod one_watch;
mod plugin_cases;
mod real;
mod registry;
mod restart;
mod swaps;
mod takeover;
mod two_tenants;
