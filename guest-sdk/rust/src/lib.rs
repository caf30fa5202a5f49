//! Write Oarlock plugins in Rust.
//!
//! A plugin is a type that declares its subscriptions ([`Plugin::describe`]) and handles notifications
//! ([`Handler`]) or reconciles keys ([`Reconciler`]). The host owns watches, caches, retries and access. The
//! contract in `wit/` defines the order of notifications, the handling of failures, and the limits.
//!
//! ```no_run
//! use oarlock_sdk::{Added, Description, Failure, Handler, Plugin, Subscription, gvr, info};
//!
//! struct Greeter;
//!
//! impl Plugin for Greeter {
//!     fn describe() -> Result<Description, String> {
//!         let configmaps = Subscription::new("configmaps", gvr("", "v1", "configmaps"));
//!         Ok(Description::new("greeter", "0.1.0").subscribe(configmaps))
//!     }
//!     fn start() -> Result<Self, Failure> {
//!         Ok(Greeter)
//!     }
//! }
//!
//! impl Handler for Greeter {
//!     fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
//!         info!("hello", "name" = added.object.name);
//!         Ok(())
//!     }
//! }
//!
//! oarlock_sdk::export_handler!(Greeter);
//! # fn main() {}
//! ```
//!
//! In reading order: [`description`](Description) → [`plugin`](Plugin) → [`event`] → [`cache`] → [`client`] →
//! [`log`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod cache;
pub mod client;
pub mod config;
mod description;
pub mod event;
mod export;
mod failure;
pub mod log;
mod names;
mod notified;
mod plugin;

pub use description::{
    Description, Index, Read, Request, Schedule, Subscription, at, enqueue_controller_owner, enqueue_label,
    enqueue_pointer, every, label_index, pointer_index,
};
pub use failure::{Error, Failure};
pub use names::{Entry, GroupVersionResource, Namespaces, ObjectKey, ObjectRef, escape_pointer, gvr, key};
pub use notified::Notified;
pub use oarlock_sdk_bindings::exports::oarlock::plugin::handler::{Added, Deleted, Synced, Updated};
pub use oarlock_sdk_bindings::exports::oarlock::plugin::metadata::{
    Content, Enqueue, FieldCondition, NamedAt, OwnerKind, Scope, Test, Trigger, WallTimes,
};
pub use oarlock_sdk_bindings::exports::oarlock::plugin::reconciler::Outcome;
pub use oarlock_sdk_bindings::oarlock::plugin::work_queue::WorkKey;
/// The clock, the work queue, Kubernetes Events and metrics, as in the contract.
pub use oarlock_sdk_bindings::oarlock::plugin::{clock, events, metrics, work_queue};
pub use plugin::{Handler, Plugin, Reconciler};

#[doc(hidden)]
pub use export::__private;

/// Its code is 7 KiB smaller than that of the standard library's, and the host compiles all code of a plugin.
#[cfg(all(feature = "allocator", target_family = "wasm"))]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();
