//! An embedded Kubernetes API server, for local work (`oarlock dev`) and for fault tests.
//!
//! It is *not* a second Kubernetes: there are no controllers, no scheduler, no kubelet and no disk. Owner references
//! are kept and never collected, as on an API server without a controller-manager. What it cannot do it refuses by name.
//!
//! ```text
//! server ─ service ─┬ authn, authorizer, faults            who, may they, what goes wrong
//!                   ├ discovery, openapi, reviews          questions about the server
//!                   └ handlers ─┬ write, model, patch …    what a change makes of an object
//!                               └ store                    bytes, revisions, history
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
mod openapi;
mod resource;
mod reviews;

// Objects.
mod deletion;
mod event_view;
mod form;
mod namespaces;
mod selector;
mod services;
mod store;
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
