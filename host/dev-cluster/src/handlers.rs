//! The handlers of requests for objects, one file per verb.

mod create;
mod delete;
mod get;
mod list;
mod patch;
mod update;
mod watch;

pub(crate) use create::create;
pub(crate) use delete::{delete, delete_collection};
pub(crate) use get::get;
pub(crate) use list::list;
pub(crate) use patch::patch;
pub(crate) use update::update;
pub(crate) use watch::watch;
