//! The commands of `oarlock`, one file for each.

pub(crate) mod dev;
pub(crate) mod plugin;
pub(crate) mod rbac;
pub(crate) mod run;

mod examine;
mod hosting;
