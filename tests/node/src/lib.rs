//! A Kubernetes cluster of one real node: etcd, the control plane, kubelet, containerd and runc, without a
//! container engine and without anything installed.
//!
//! ```text
//!   Programs ──▶ built or downloaded once, into the cache
//!      │
//!   Node::start ──▶ Folder         kubeconfigs, configuration, logs; removed at the end
//!      │        ──▶ Cgroups        removed at the end
//!      │        ──▶ Namespaces     mount, network and process namespaces; their first process ends with ours
//!      │               └──▶ one child process for each Component
//!      └──────▶ Forward            127.0.0.1:PORT outside ──▶ the API server inside
//! ```
//!
//! Everything that the node writes is in a tmpfs of its mount namespace, and all ports are those of its
//! network namespace. So several nodes can run on one machine, and the end of the process that started one,
//! also by SIGKILL, ends all of its processes. What such a process leaves is a folder and empty cgroups,
//! which the next start removes.
//!
//! What a node lacks: kube-proxy (only the Service of the API server has an address that works), DNS, and
//! NetworkPolicies, which are accepted and not enforced.
//!
//! Everything here blocks.

#![forbid(unsafe_code)]

mod cgroups;
mod component;
mod credentials;
mod folder;
mod forward;
pub mod kubernetes;
mod machine;
mod namespaces;
mod node;
mod programs;
mod wait;

pub use component::Component;
pub use machine::{lacks, prepare};
pub use node::{NODE_IP, Node, REGISTRY};
pub use programs::{Programs, clock_library};
pub use wait::{LIMIT, wait_until};
