//! The tools that build guests: found on this machine, or downloaded into the cache.
//!
//! The only change outside the cache is `rustup target add`, the usual way to install a target.

pub(crate) mod c;
pub(crate) mod cache;
pub(crate) mod command;
mod debian;
pub(crate) mod go;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod rust;
pub(crate) mod versions;
pub(crate) mod wit_tool;
