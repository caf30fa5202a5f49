//! A shared informer, as in client-go: one list and one watch for a resource, one cache, many listeners.
//!
//! ```text
//! API server ─bytes→ list_watch ─objects→ reflector ─deltas→ delta_fifo ─pop→ shared_informer
//!                                                                               ├→ indexer (the cache)
//!                                                                               └→ listener (one a consumer)
//! ```
//!
//! The modules are the stations of that path, in this order:
//!
//! 1. [`object`]: an object of any resource as one JSON text, its key and its version;
//! 2. [`list_watch`]: lists and watches; [`list_watch::api`] decodes those of an API server;
//! 3. [`reflector`]: lists, watches, resumes and relists;
//! 4. [`delta_fifo`]: the queue of changes, by object;
//! 5. [`indexer`]: the cache, with indices and pages;
//! 6. [`shared_informer`]: puts the stations together;
//! 7. [`listener`]: what a consumer selects, its backlog, its retries.
//!
//! [`toolkit`] has the rest of client-go: listers, event handlers, the informer factory, the work queue.
//!
//! The crate spawns no task and does not read the environment: the caller runs [`SharedInformer::run`] on a
//! task of its own.
//!
//! ```
//! use std::sync::Arc;
//!
//! use oarlock_informer::testing::FakeListWatch;
//! use oarlock_informer::{
//!     GroupVersionResource, ListenerConfig, Notification, SharedInformer, listener::Outcome,
//!     shared_informer,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // A real program uses `list_watch::api::ApiListWatch`.
//! let api_server = FakeListWatch::pods();
//! api_server.put("default/web");
//! let config = shared_informer::Config::new(GroupVersionResource::new("", "v1", "pods"));
//! let informer = SharedInformer::new(Arc::new(api_server), config);
//! let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
//! let token = CancellationToken::new();
//! let consume = async {
//!     let delivery = listener.next().await.unwrap();
//!     let Notification::Added { object, .. } = &delivery.notification else { panic!("an add") };
//!     assert_eq!(object.key().name(), "web");
//!     listener.finish(&delivery.key, Outcome::Done);
//!     assert_eq!(informer.indexer().len(), 1);
//!     token.cancel();
//! };
//! tokio::join!(informer.run(token.clone()), consume);
//! # }
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod api_list_watch;
mod controller;
mod intern;
mod names;
mod namespaces;
mod outages;
mod processor;
mod repolled;
mod resource_version;
mod selector;
mod transport;
mod user_function;

pub mod delta_fifo;
pub mod indexer;
pub mod list_watch;
pub mod listener;
pub mod object;
pub mod reflector;
pub mod shared_informer;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod toolkit;

pub use listener::{Listener, ListenerConfig, Notification};
pub use names::GroupVersionResource;
pub use object::Object;
pub use shared_informer::SharedInformer;
