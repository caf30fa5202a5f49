//! Plugins as Kubernetes objects: the kinds `Plugin` and `ClusterPlugin`, and the controller that runs them.
//!
//! ```text
//!   Plugin object ─► work queue ─► resolve ─► a definition, as of a plugin file ─► reload ─► roll-out
//!                                    │ opt-in, component, configuration                         │
//!                                    ▼                                                          ▼
//!                                 status ◄──────────────── conditions ◄──────────────── status registry
//! ```
//!
//! A Plugin acts as a ServiceAccount of its own namespace. What its spec refers to (ConfigMaps, Secrets, pull
//! secrets) is read as that account. A ClusterPlugin acts as an account of the host's namespace.

mod at_once;
mod authorization;
mod conditions;
mod controller;
pub mod crd;
mod definitions;
mod good_versions;
mod record;
mod referenced;
mod resolve;
mod rolled_back;
mod shadow_status;
mod shadows;
mod status_writer;
mod statuses;
mod transitions;
mod types;
mod unresolved;

pub(crate) use self::controller::PluginResources;
pub use self::controller::{Config, Maxima};
pub(crate) use self::definitions::{Definitions, Snapshot, is_of_object};
pub(crate) use self::good_versions::{GoodVersions, Request as GoodVersionsRequest, StatedVersion};
pub(crate) use self::types::GROUP;
pub use self::types::{
    ClusterPlugin, ClusterPluginSpec, ConfigSource, GoodVersion, KeyReference, Plugin, PluginSpec,
    PluginStatus, RolledBackVersion, ShadowDifference, ShadowSpec, ShadowStatus, SubscriptionSummary,
};
