//! client-go's toolkit around the pipeline, in modules with client-go's package names.
//!
//! The host itself uses only [`workqueue`]; the pipeline uses [`pager`]. The rest is for programs that are
//! written as Go controllers are: a factory, handlers, listers, a work queue.

pub mod cache;
pub mod informers;
pub mod metrics;
pub mod pager;
pub mod retry;
pub mod wait;
pub mod workqueue;
