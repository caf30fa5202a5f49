//! Runs WebAssembly plugins as Kubernetes controllers. This crate joins `oarlock-informer` and
//! `oarlock-plugin`; no other crate knows both.
//!
//! ```text
//!   plugin files ──► config ──► reload ──► one generation of a plugin ──────────────┐
//!                                 │ compile, describe, plan                         │ switch
//!                                 ▼                                                 ▼
//!   API server ──► informers ──► subscriptions ──► Listeners ──────────────────► dispatch ──► instance
//!                  one watch     gate: rights of   selector, fields, backlog    calls         │ cache,
//!                  per resource  the account                                    on lanes      │ client
//!                      ▲                                                                      ▼
//!                      └───────────────────────────── access (the one gate) ◄──────── kube_access
//! ```
//!
//! A program needs three modules: [`runtime`] to run the host, [`report`] to print its events, and [`config`]
//! to read plugin files. Everything runs as a task of [`tasks`]. Requests on behalf of a plugin pass the gate
//! or impersonate the plugin's account.
//!
//! # Example
//!
//! A host without plugins, over the embedded API server:
//!
//! ```
//! use std::time::Duration;
//!
//! use oarlock_controller::informers::{Limits, Prunings};
//! use oarlock_controller::report::{self, HostEvent};
//! use oarlock_controller::runtime::{ClientMetrics, Config, RestartPolicy, RetryPolicy, Runtime, WallClock};
//! use oarlock_dev_cluster::DevCluster;
//! use oarlock_informer::list_watch::transport;
//! use oarlock_informer::reflector::ConsistencyCheck;
//! use oarlock_plugin::EngineConfig;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = DevCluster::start(oarlock_dev_cluster::Config::default()).await?;
//! let kubeconfig = kube::config::Kubeconfig::from_yaml(&cluster.kubeconfig())?;
//! let kubeconfig = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
//!
//! let (reporter, mut reports) = report::channel(report::Config::default());
//! let runtime = Runtime::new(Config {
//!     client: transport::client(kubeconfig)?,
//!     client_metrics: ClientMetrics::default(),
//!     outages: transport::Outages::default(),
//!     server: cluster.url(),
//!     sources: Vec::new(),
//!     plugin_resources: None,
//!     admin: None,
//!     control: None,
//!     reporter,
//!     engine: EngineConfig::default(),
//!     state_dir: None,
//!     retry: RetryPolicy::default(),
//!     restart: RestartPolicy::default(),
//!     provision: None,
//!     limits: Limits::default(),
//!     prunings: Prunings::default(),
//!     election: None,
//!     drain_timeout: Duration::from_secs(20),
//!     record: None,
//!     traces: None,
//!     interception: None,
//!     wall_clock: WallClock::system(),
//!     fault_swallow: None,
//!     consistency_check: ConsistencyCheck::Off,
//! })?;
//!
//! let token = CancellationToken::new();
//! let print = async {
//!     while let Some(line) = reports.next().await {
//!         println!("{line}");
//!         if matches!(line.event, HostEvent::HostStarted { .. }) {
//!             token.cancel();
//!         }
//!     }
//! };
//! let (ended, ()) = tokio::join!(runtime.run(token.clone()), print);
//! ended?;
//! cluster.shut_down().await;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

// To run a host.
pub mod admin;
pub mod control;
pub mod provision;
pub mod recordings;
pub mod report;
pub mod runtime;
pub mod tasks;
pub mod traces;

// Plugins: their files, their declarations, their rights.
pub mod account;
pub mod config;
pub mod plan;
pub mod plugin_resource;
pub mod rbac;
pub mod regular_file;
pub mod yaml;

// The resources of the API server and their caches.
pub mod discovery;
pub mod informers;

// From files to plugins that are called.
mod dispatch;
mod drain;
mod generations;
mod leadership;
mod reload;
mod schedule;
mod shadow;
mod subscriptions;

// The rights of a plugin, and its requests.
mod access;
mod identity;
mod kube_access;

// The state of the host, for probes, metrics and the status page.
mod health;
mod metrics;
mod state_folder;
mod status;
mod write_settings;

mod chain;
mod fields;
mod followed;
mod size;
