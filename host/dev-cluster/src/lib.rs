//! An embedded Kubernetes API server, for local work (`oarlock dev`) and for fault tests.
//!
//! It speaks the API of kube-apiserver 1.36 as far as controllers and kubectl need it, and answers in its words. It is *not*
//! a second Kubernetes: there is no scheduler, no kubelet and no disk. What it cannot do it refuses by name (404, 405,
//! 406, 415, 422). Where a bare API server would wait for controllers, this is what happens:
//!
//! - A deleted namespace is emptied and goes at once, or with the last object that a finalizer holds in it.
//! - A new namespace has its ServiceAccount `default`, and no `kube-root-ca.crt`.
//! - A CustomResourceDefinition is established and served at once; its instances go with it.
//! - What has no owner any more is deleted, in the background, in the foreground or not at all, as a cluster's garbage
//!   collector does it; `Config::garbage_collection` turns that off.
//! - A PodDisruptionBudget refuses evictions until somebody writes its status.
//! - A Pod stays Pending; one that names a node waits for its grace period to be cut short, since no kubelet ends it.
//! - Services get cluster IPs, on which nothing listens.
//!
//! - Validation rules of custom resources (CEL) are evaluated without a type checker and without a bound on their cost.
//!
//! Left out: the subresources that a kubelet answers, the old `/watch/` paths, and everything that is not in `builtin.rs`.
//! `left_out.rs` says of the groups of a real cluster what they would take.
//!
//! ```text
//! server ─ service ─┬ authn, authorizer, faults            who, may they, what goes wrong
//!                   ├ discovery, openapi, reviews          questions about the server
//!                   └ handlers, subresources ─┬ write, model, patch …    what a change makes of an object
//!                                             └ store ─ collector        bytes, revisions, history; owners
//! ```

#![forbid(unsafe_code)]

mod config;
mod dev_cluster;
pub mod faults;
pub mod status;
pub mod tls;
pub mod user;

// The way of a request.
mod authn;
mod call;
mod cluster;
mod faulty_body;
mod handlers;
mod negotiation;
mod protobuf;
mod query;
mod request_info;
mod respond;
mod server;
mod service;
mod tasks;

// What is served.
mod builtin;
mod catalog;
mod custom;
mod definitions;
mod discovery;
mod left_out;
mod openapi;
mod resource;
mod reviews;
mod service_account_tokens;

// Objects.
mod certificates;
mod collector;
mod deletion;
mod event_view;
mod form;
mod namespaces;
mod priorities;
mod selector;
mod services;
mod store;
mod subresources;
mod table;
mod watch_event;
mod write;

// Rules about them, as functions of JSON.
mod authorizer;
mod crd;
mod managed_fields;
mod model;
mod patch;
mod schema;
mod validation;

pub use config::Config;
pub use dev_cluster::{DevCluster, Error};
pub use status::StatusError;
pub use user::UserInfo;
