//! An embedded Kubernetes API server, for local work (`oarlock dev`) and for fault tests.
//!
//! It is *not* a second Kubernetes: there are no controllers, no scheduler, no kubelet and no disk. Owner references
//! are kept and never collected, as on an API server without a controller-manager. What it cannot do it refuses by name.

#![forbid(unsafe_code)]

mod authorizer;
mod crd;
mod managed_fields;
mod model;
mod patch;
mod schema;
mod validation;
pub mod status;
pub mod user;

pub use status::StatusError;
pub use user::UserInfo;
