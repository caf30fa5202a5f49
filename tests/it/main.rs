//! Tests of the whole: the binary as a process, against real and embedded API servers.

mod bad_input;
mod compare;
mod demo;
mod examples;
mod real;
mod restart;
