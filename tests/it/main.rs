//! Tests of the whole: the binary as a process, against real and embedded API servers.

mod bad_input;
mod compare;
mod demo;
mod real;
mod restart;
