//! Tests of the embedded API server over HTTPS.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail the test")]

#[path = "it/access.rs"]
mod access;
#[path = "it/client.rs"]
mod client;
#[path = "it/collector.rs"]
mod collector;
#[path = "it/custom_resources.rs"]
mod custom_resources;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/kubectl.rs"]
mod kubectl;
#[path = "it/lists.rs"]
mod lists;
#[path = "it/load.rs"]
mod load;
#[path = "it/namespaces.rs"]
mod namespaces;
#[path = "it/negotiation.rs"]
mod negotiation;
#[path = "it/objects.rs"]
mod objects;
#[path = "it/protobuf.rs"]
mod protobuf;
#[path = "it/server.rs"]
mod server;
#[path = "it/subresources.rs"]
mod subresources;
#[path = "it/watches.rs"]
mod watches;
