//! The shared informer machinery: one list and one watch for a resource, one cache, many listeners.
//!
//! ```text
//! API server ─bytes→ ApiListWatch ─(event, Object)→ Reflector ─delta→ DeltaFifo ─pop→ SharedInformer
//!                                                                                      ├→ Indexer ← Lister
//!                                                                                      └→ Processor → Listener …
//! ```
//!
//! The modules below stand in the order in which an event passes them. Nothing here knows WebAssembly, spawns a task or
//! reads the environment; the caller runs [`Reflector::run`](reflector::Reflector::run) and its like on tasks of its own.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod intern;
pub mod keys;
pub mod names;
pub mod namespaces;
pub mod object;
pub mod selector;

pub mod list_watch;

pub mod api_list_watch;
pub mod transport;

pub mod pager;
pub mod reflector;

pub mod delta_fifo;
pub mod indexer;
pub mod listener;
mod processor;
pub mod resource_version;
pub mod retry;

pub mod controller;
pub mod event_handler;
pub mod informer_factory;
pub mod informer_metrics;
pub mod lazy;
pub mod lister;
pub mod shared_informer;
pub mod sync_tracker;
pub mod user_function;
pub mod wait;
pub mod work_queue;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use api_list_watch::ApiListWatch;
pub use controller::Controller;
pub use delta_fifo::{Delta, DeltaFifo};
pub use event_handler::{EventHandler, FilteringHandler, HandlerFunctions, Handling, Registration};
pub use indexer::{IndexSource, Indexer, Page, PageRequest};
pub use informer_factory::InformerFactory;
pub use informer_metrics::{InformerMetrics, InformerName};
pub use list_watch::{ApiError, ListWatch};
pub use listener::{
    BacklogAccount, Delivery, Listener, ListenerConfig, ListenerHandle, ListenerStats, Notification, Outcome,
};
pub use lister::{Lister, NamespaceLister};
pub use names::{GroupVersionResource, ObjectKey, TypeMeta};
pub use namespaces::Namespaces;
pub use object::{Content, Object};
pub use reflector::{Reflector, ReflectorStore};
pub use selector::{FieldCondition, FieldTest};
pub use shared_informer::SharedInformer;
pub use work_queue::WorkQueue;
