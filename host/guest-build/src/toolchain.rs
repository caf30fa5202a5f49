//! The tools that build guests: found on this machine, or downloaded into the cache.
//!
//! The only change outside the cache is `rustup target add`, the usual way to install a target.

pub mod c;
pub mod cache;
pub mod command;
pub mod debian;
pub mod go;
pub mod node;
pub mod python;
pub mod rust;
pub mod versions;
