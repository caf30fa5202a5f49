//! The join: Kubernetes and WebAssembly meet here and nowhere else.
//!
//! ```text
//!   plugin files ──► config ──► reload ──► one generation of a plugin ──────────────┐
//!                                 │ compile, describe, plan                         │ switch
//!                                 ▼                                                 ▼
//!   API server ──► informers ──► subscriptions ──► Listeners ──────────────────► dispatch ──► instance
//!                  one watch     gate: what the    selector, fields, backlog    one call      │ cache, client,
//!                  per resource  account may see                                at a time     │ work-queue, events
//!                      ▲                                                                      ▼
//!                      └───────────────────────────── access (the one gate) ◄──────── kube_access
//! ```
//!
//! Everything runs as a task of [`tasks`], says what it does through [`report`], and is started and ended by
//! [`runtime`]. The API server is asked on behalf of a plugin only through [`access`] and [`kube_access`].
#![forbid(unsafe_code)]

// What is started, and how it ends.
pub mod report;
pub mod runtime;
pub mod tasks;

// Who a plugin is, and what it may do.
pub mod access;
pub mod account;
pub mod config;
pub mod discovery;
pub mod identity;
pub mod kube_access;
pub mod provision;
pub mod rbac;

// From files to plugins that are called.
pub mod dispatch;
pub mod informers;
pub mod plan;
mod reload;
mod subscriptions;

// What can be seen of it from outside.
pub mod admin;
pub mod health;
pub mod metrics;
pub mod status;

mod chain;
mod fields;
pub mod regular_file;
mod size;
