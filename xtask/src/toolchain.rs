//! The tools that guests are built with: found on this machine, or fetched into a cache of our own.
//!
//! Nothing is installed on the machine but `rustup target add`, which is the usual way to have that target.

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
