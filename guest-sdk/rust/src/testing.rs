//! Unit tests of plugins, without WebAssembly and without a cluster: `#[test]` and `cargo test`.
//!
//! A [`Host`] answers the plugin's calls, from objects that the test gives it, and records what the plugin
//! does. [`Host::start`] starts the plugin, and the test calls it with changes of objects:
//!
//! ```
//! use oarlock_sdk::testing::Host;
//! # use oarlock_sdk::{Client, Deleted, Description, Failure, Handler, Plugin, Request, Subscription};
//! # use oarlock_sdk::{gvr, key};
//! use serde_json::json;
//!
//! # struct Cleaner;
//! # impl Plugin for Cleaner {
//! #     fn describe() -> Result<Description, String> {
//! #         let pods = Subscription::new("pods", gvr("", "v1", "pods"));
//! #         let delete = Request::new(gvr("", "v1", "configmaps"), &["delete"]);
//! #         Ok(Description::new("cleaner", "0.1.0").subscribe(pods).request(delete))
//! #     }
//! #     fn start() -> Result<Self, Failure> { Ok(Self) }
//! # }
//! # impl Handler for Cleaner {
//! #     fn on_delete(&mut self, pod: &Deleted) -> Result<(), Failure> {
//! #         let configmaps = Client::new(gvr("", "v1", "configmaps"));
//! #         Ok(configmaps.delete(&key(&pod.object.namespace, &pod.object.name))?)
//! #     }
//! # }
//! // #[test]
//! fn the_configmap_of_a_pod_that_is_gone_is_deleted() {
//!     let host = Host::new();
//!     host.insert(&gvr("", "v1", "configmaps"), &json!({"metadata": {"namespace": "home", "name": "web"}}));
//!     let mut plugin = host.start::<Cleaner>();
//!     plugin.add("pods", &json!({"metadata": {"namespace": "home", "name": "web"}})).unwrap();
//!     plugin.delete("pods", "home", "web").unwrap();
//!     assert_eq!(host.writes()[0].to_string(), "delete v1/configmaps home/web");
//! }
//! # the_configmap_of_a_pod_that_is_gone_is_deleted();
//! ```
//!
//! The fake is simple on purpose: the cache has every write at once, an apply is a merge, and the test
//! decides which notifications there are. What only the real host does (selectors and conditions of
//! subscriptions, order, retries, access) is tested with `oarlock plugin test`.

mod cluster;
mod host;
pub(crate) mod imports;
mod instance;
mod json_patch;
mod recorded;
mod selector;
#[cfg(test)]
mod tests;

pub use host::Host;
pub use instance::Instance;
pub use recorded::{Line, RecordedEvent, Write};
