//! Compiles, checks, limits and calls WebAssembly components that implement the contract in `wit/`.
//!
//! ```text
//!   bytes ──> Component ──> Instance ── on_add · on_update · on_delete · on_synced · reconcile ──> an answer
//!               │ checked     │ limits                                                       or a CallError
//!             Engine          └── imports: event · cache · client · … ──> EventObject, KubeAccess, GuestLog
//! ```
//!
//! Deliberately absent: Kubernetes. Reads and writes of a guest go through the traits in [`kube_access`], and
//! the arguments of calls are the contract's own types ([`contract`], generated from `wit/`). Also absent:
//! the handling of failures. An instance ends with its first failed call, and its owner creates another.
//!
//! [`Component::compile`] first reads the names of imports and exports, and says what is wrong with a file
//! that is not a plugin:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use oarlock_plugin::{Component, Engine, EngineConfig};
//!
//! let engine = Engine::new(EngineConfig::default())?;
//! let error = Component::compile(&engine, b"#!/bin/sh".as_slice()).await.unwrap_err();
//! assert!(error.to_string().starts_with("not WebAssembly"), "{error}");
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! The next steps are [`describe::describe`], which asks a component for its subscriptions, and
//! [`Instance::new`].

#![deny(missing_docs)]
// Not forbidden: one module loads compiled code, and explains why this is sound.
#![deny(unsafe_code)]

pub mod compiler;
pub mod component;
pub mod contract;
pub mod describe;
pub mod engine;
pub mod guest;
pub mod kube_access;
pub mod limits;
pub mod observe;
pub mod record;
pub mod replay;

mod bindings;
mod call_error;
mod code;
mod configuration;
mod crossing;
mod imports;
mod inspect;
mod instance;
mod intercept;
mod limiter;
mod output;
mod replaceable;
mod state;

pub use self::call_error::CallError;
pub use self::component::Component;
pub use self::configuration::Configuration;
pub use self::engine::{Engine, EngineConfig};
pub use self::instance::{Instance, InstanceConfig};
pub use self::intercept::Interception;
pub use self::limits::Limits;
