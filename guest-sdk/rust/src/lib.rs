//! Write Oarlock plugins in Rust.
//!
//! A plugin is a type that declares its subscriptions ([`Plugin::describe`]) and handles notifications
//! ([`Handler`]) or reconciles keys ([`Reconciler`]). The host owns watches, caches, retries and access. The
//! contract in `wit/` defines the order of notifications, the handling of failures, and the limits.
//!
//! ```
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
//! # fn main() {
//! #     let host = oarlock_sdk::testing::Host::new();
//! #     let mut plugin = host.start::<Greeter>();
//! #     let object = serde_json::json!({"metadata": {"name": "a", "namespace": "b"}});
//! #     plugin.add("configmaps", &object).unwrap();
//! #     assert_eq!(host.logs()[0].to_string(), "info hello name=a");
//! # }
//! ```
//!
//! - What a plugin declares: [`Description`], [`Subscription`], [`Lister`], [`Index`], [`Request`].
//! - What it gets: [`Added`], [`Updated`], [`Deleted`], [`WorkKey`]; the parts of objects that it needs
//!   ([`Fields`]), or typed objects ([`Resource`], [`Object`]).
//! - What it does: [`Client`], [`events`], [`work_queue`], [`metrics`], [`mod@log`].
//! - How it is tested, without WebAssembly: [`testing`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

// The derive macros name this crate.
extern crate self as oarlock_sdk;

pub mod client;
pub mod clock;
pub mod config;
mod description;
pub mod event;
pub mod events;
mod export;
mod failure;
pub mod fields;
mod imports;
#[cfg(feature = "kube-rs")]
pub mod kube;
mod lister;
pub mod log;
pub mod metrics;
mod names;
mod notification;
mod plugin;
pub mod resource;
mod rows;
#[cfg(any(feature = "kube-rs", not(target_family = "wasm")))]
mod selector;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
#[cfg(feature = "tracing")]
mod tracing;
pub mod work_queue;

pub use client::Client;
pub use description::{
    Content, Description, Enqueue, FieldCondition, NamedAt, OwnerKind, Read, Request, Schedule, Scope,
    Subscription, Test, Trigger, WallTimes, at, enqueue_controller_owner, enqueue_label, enqueue_pointer,
    every,
};
pub use failure::{Error, Failure, retry_after};
pub use fields::Fields;
pub use lister::{Index, Lister};
pub use names::{GroupVersionResource, Namespaces, ObjectKey, ObjectRef, escape_pointer, gvr, key};
pub use notification::{Added, Deleted, Synced, Updated};
pub use oarlock_sdk_bindings::exports::oarlock::plugin::reconciler::Outcome;
pub use plugin::{Handler, Plugin, Reconciler};
pub use resource::{Object, ObjectMeta, OwnerReference, Resource};
pub use rows::{FromRow, Rows};
pub use work_queue::{WorkKey, requeue_after, work_key};

#[doc(hidden)]
pub use export::__private;

// It sets the global allocator.
#[cfg(all(feature = "allocator", target_family = "wasm"))]
use oarlock_sdk_allocator as _;
