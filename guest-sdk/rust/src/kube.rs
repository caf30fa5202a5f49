//! The shape of kube-rs, for controllers that were written with it: [`Api`], [`Controller`], `reconcile` and
//! `error_policy`. The names are those of the crates `kube` and `kube::runtime`; the host watches, caches and
//! retries.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use oarlock_sdk::kube::{Action, Api, Client, Controller, Patch, PatchParams, ResourceExt, Run, watcher};
//! use oarlock_sdk::{Error, ObjectMeta, Request, Resource};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Resource, Serialize, Deserialize)]
//! #[resource(group = "example.com", version = "v1", plural = "greetings")]
//! struct Greeting {
//!     metadata: ObjectMeta,
//!     text: String,
//! }
//!
//! #[derive(Resource, Serialize, Deserialize)]
//! #[resource(version = "v1", plural = "configmaps")]
//! struct ConfigMap {
//!     metadata: ObjectMeta,
//!     data: std::collections::BTreeMap<String, String>,
//! }
//!
//! struct Data {
//!     client: Client,
//! }
//!
//! async fn reconcile(greeting: Arc<Greeting>, data: Arc<Data>) -> Result<Action, Error> {
//!     let name = greeting.name_any();
//!     let metadata = ObjectMeta {
//!         name: Some(name.clone()),
//!         namespace: greeting.namespace(),
//!         owner_references: greeting.controller_owner_ref(&()).into_iter().collect(),
//!         ..ObjectMeta::default()
//!     };
//!     let copy = ConfigMap { metadata, data: [("text".to_owned(), greeting.text.clone())].into() };
//!     let configmaps: Api<ConfigMap> =
//!         Api::namespaced(data.client.clone(), &greeting.namespace().unwrap_or_default());
//!     configmaps.patch(&name, &PatchParams::apply("greetings"), &Patch::Apply(&copy)).await?;
//!     Ok(Action::requeue(Duration::from_secs(300)))
//! }
//!
//! fn error_policy(_greeting: Arc<Greeting>, _error: &Error, _data: Arc<Data>) -> Action {
//!     Action::requeue(Duration::from_secs(5))
//! }
//!
//! fn controller() -> impl Run {
//!     let client = Client::default();
//!     Controller::new(Api::<Greeting>::all(client.clone()), watcher::Config::default())
//!         .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
//!         // What kube-rs leaves to the author of the Role.
//!         .request(Request::of::<ConfigMap>(&["create", "patch"]))
//!         .run(reconcile, error_policy, Arc::new(Data { client }))
//! }
//!
//! oarlock_sdk::export_controller!(Greetings, controller());
//! # fn main() {
//! #     let host = oarlock_sdk::testing::Host::new();
//! #     let metadata = serde_json::json!({"name": "a", "namespace": "home"});
//! #     let object = serde_json::json!({"metadata": metadata, "text": "hello"});
//! #     host.insert(&Greeting::gvr(), &object);
//! #     let outcome = host.start::<Greetings>().reconcile("Greeting", "home", "a").unwrap();
//! #     assert_eq!(outcome, oarlock_sdk::requeue_after(Duration::from_secs(300)));
//! #     assert_eq!(host.writes()[0].to_string(), "apply v1/configmaps home/a");
//! # }
//! ```
//!
//! What differs:
//!
//! - `main` is gone: `export_controller!` exports what `run` returns.
//! - [`Controller::watches`] calls its function with whole objects, in the plugin. If the changed object
//!   names the other one in a field or label, a rule of the host does the same without a call of the plugin:
//!   [`Controller::subscribe`] takes a subscription with any [`crate::Enqueue`].
//! - Futures must not wait: those of [`Api`] are ready at once. Timers, channels and other clients have no
//!   runtime here; a call that waits for one fails.
//! - `reconcile` is not called for an object that is gone, as in kube-rs, and gets it from the host's cache.
//! - After an error the host repeats the call not before the time that `error_policy` names, with back-off,
//!   and parks the object after `limits.tries` failures; with [`Action::await_change`] it parks it at once.

mod api;
mod controller;
pub mod finalizer;
mod names;
#[cfg(test)]
mod tests;

pub use api::{Api, Client, DeleteParams, ListParams, ObjectList, Patch, PatchParams, PostParams};
pub use controller::{Action, Controller, Run, watcher};
pub use finalizer::finalizer;
pub use names::{ObjectRef, ResourceExt};
