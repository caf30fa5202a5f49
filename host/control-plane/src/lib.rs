//! A real etcd and a real kube-apiserver on loopback, with RBAC on, for `oarlock dev --real` and for tests.
//!
//! It is not a cluster: no controller manager, no scheduler and no kubelet run. Deleted namespaces stay
//! Terminating, owner references are not collected, and new namespaces have no ServiceAccount "default" (the
//! admission plugin that needs one is off).
//!
//! ```text
//!   ControlPlane ──▶ folder       certificates, tokens, etcd's data, logs; removed at the end
//!        │
//!        ├──▶ etcd                each a child process behind a launcher, which makes the kernel end
//!        └──▶ kube-apiserver      the child when this process ends
//! ```
//!
//! The launcher is a program that calls [`launch`] with its arguments; it replaces itself with the server. A
//! program that starts a control plane may name itself as the launcher (see [`Launcher`]).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod assets;
mod control_plane;
mod credentials;
mod error;
mod folder;
mod launcher;
mod port;
mod server;

pub use self::assets::Assets;
pub use self::control_plane::{Config, ControlPlane, Progress};
pub use self::error::Error;
pub use self::launcher::{Launcher, launch};
