//! client-go's `tools/cache` around the pipeline: key functions, event handlers, listers, the bare
//! controller, and its `synctrack`.

mod event_handler;
mod keys;
mod lazy;
mod lister;
mod sync_tracker;

pub use event_handler::{EventHandler, FilteringHandler, HandlerFunctions, Handling, Registration, deliver};
pub use keys::{Cause, KeyError, KeyFunction, Keyed, NotOneValue};
pub use lazy::Lazy;
pub use lister::{Lister, NamespaceLister, NotFound, SelectingError};
pub use sync_tracker::{AsyncTracker, SingleFileTracker};

pub use crate::controller::{Controller, Informer, ProcessError, Store, process_deltas};
