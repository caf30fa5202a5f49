//! Hosting of WebAssembly components: how a plugin's code is checked, compiled, limited and called.
//!
//! ```text
//!   bytes ──> Component ──> Instance ── on_add · on_update · on_delete · on_synced · reconcile ──> the guest's answer
//!               │ checked     │ limits                                                       or a CallError
//!             Engine          └── imports: event · cache · client · … ──> EventObject, KubeAccess, GuestLog, GuestMetrics
//! ```
//!
//! Deliberately absent: Kubernetes. What a guest reads and writes goes through the traits in [`kube_access`], and what
//! it is called with are the contract's own types ([`contract`], generated from `wit/`). Absent too: any decision what to do after
//! a failure. An instance dies of one, and its owner makes another.

#![deny(missing_docs)]
// Not forbidden: one module loads compiled code, and says why that is sound.
#![deny(unsafe_code)]

pub mod call_error;
pub mod compiler;
pub mod component;
pub mod contract;
pub mod describe;
pub mod engine;
pub mod guest_log;
pub mod guest_metrics;
pub mod guest_text;
pub mod host_bytes;
mod instance;
pub mod kube_access;
pub mod limits;

mod bindings;
mod code;
mod imports;
mod inspect;
mod limiter;
mod output;
mod pointer;
mod replaceable;
mod state;

pub use call_error::CallError;
pub use compiler::{Allowance, Compilation, CompilationState, Compiler};
pub use component::Component;
pub use describe::{DescribeError, describe, describe_counted};
pub use engine::{Engine, EngineConfig};
pub use guest_log::{GuestLog, LogLine, LogSink};
pub use guest_metrics::GuestMetrics;
pub use host_bytes::HostBytes;
pub use instance::{Instance, InstanceConfig};
pub use kube_access::{EventObject, GuestEvent, KubeAccess};
pub use limits::Limits;
