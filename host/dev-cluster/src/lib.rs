//! An embedded Kubernetes API server, for local work (`oarlock dev`) and for tests with faults.
//!
//! It serves the API of kube-apiserver 1.36 as far as controllers and kubectl need it, with the same
//! messages. It is *not* a second Kubernetes: it has no scheduler, no kubelet and no disk. It refuses
//! unsupported requests with a message that names them (404, 405, 406, 415, 422).
//!
//! It does the work of some controllers:
//!
//! - It deletes the objects of a deleted namespace, and removes the namespace with its last object. Objects
//!   with finalizers delay this.
//! - A new namespace gets the ServiceAccount `default`, but no `kube-root-ca.crt`.
//! - A CustomResourceDefinition is established and served at once. Deleting it deletes its instances.
//! - It deletes objects whose owners no longer exist, and supports foreground, background and orphan
//!   deletion. `Config::garbage_collection` turns this off.
//!
//! These differences from a real cluster remain:
//!
//! - A PodDisruptionBudget refuses evictions until a client writes its status.
//! - A Pod stays Pending. A deleted Pod with a node stays until a client deletes it with a grace period of 0,
//!   as no kubelet ends it.
//! - Services get cluster IPs, on which nothing listens.
//! - Validation rules of custom resources (CEL) have no type checker and no cost limit.
//! - The subresources of the kubelet, the old `/watch/` paths and resources that are not in `builtin.rs` are
//!   missing. `left_out.rs` lists the missing groups.
//!
//! ```text
//! server ─ service ─┬ authn, authorizer, faults             user, rights, faults
//!                   ├ discovery, openapi, reviews           requests about the server itself
//!                   └ handlers, subresources ─┬ write, model, patch …     from the request to the object
//!                                             └ store ─ collector         history; garbage collection
//! ```
//!
//! A test starts a server and sends requests over HTTPS. Clients that read a kubeconfig use
//! [`DevCluster::kubeconfig`].
//!
//! ```
//! use http::Request;
//! use http_body_util::{BodyExt, Full};
//! use oarlock_dev_cluster::{Config, DevCluster};
//! use serde_json::{Value, json};
//! # use hyper::client::conn::http1::{SendRequest, handshake};
//! # use rustls::pki_types::{CertificateDer, pem::PemObject};
//! # use std::{error::Error, sync::Arc};
//! # type Body = Full<bytes::Bytes>;
//! # async fn connect(cluster: &DevCluster) -> Result<SendRequest<Body>, Box<dyn Error>> {
//! #     let mut roots = rustls::RootCertStore::empty();
//! #     roots.add(CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes())?)?;
//! #     let provider = Arc::new(rustls::crypto::ring::default_provider());
//! #     let config = rustls::ClientConfig::builder_with_provider(provider)
//! #         .with_safe_default_protocol_versions()?
//! #         .with_root_certificates(roots)
//! #         .with_no_client_auth();
//! #     let stream = tokio::net::TcpStream::connect(cluster.addr()).await?;
//! #     let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
//! #     let stream = connector.connect(cluster.addr().ip().into(), stream).await?;
//! #     let (sender, connection) = handshake(hyper_util::rt::TokioIo::new(stream)).await?;
//! #     tokio::spawn(connection);
//! #     Ok(sender)
//! # }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn Error>> {
//! let cluster = DevCluster::start(Config::default()).await?;
//! // A TLS connection that trusts `cluster.ca_pem()`.
//! let mut client = connect(&cluster).await?;
//! let request = |method: &str, path: &str, body: String| {
//!     Request::builder()
//!         .method(method)
//!         .uri(path)
//!         .header("host", cluster.addr().to_string())
//!         .header("authorization", format!("Bearer {}", cluster.admin_token()))
//!         .body(Full::from(body))
//! };
//!
//! let config_maps = "/api/v1/namespaces/default/configmaps";
//! let settings = json!({"metadata": {"name": "settings"}, "data": {"color": "red"}});
//! let response = client.send_request(request("POST", config_maps, settings.to_string())?).await?;
//! assert_eq!(response.status(), 201);
//! response.into_body().collect().await?;
//!
//! let path = format!("{config_maps}/settings");
//! let response = client.send_request(request("GET", &path, String::new())?).await?;
//! let settings: Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
//! assert_eq!(settings["data"]["color"], "red");
//!
//! cluster.shut_down().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod config;
mod dev_cluster;
pub mod faults;
mod in_process;
mod state;

// The path of a request.
mod authn;
mod call;
mod cluster;
mod faulty_body;
mod generated;
mod handlers;
mod negotiation;
mod protobuf;
mod query;
mod request_info;
mod respond;
mod server;
mod service;
mod status;
mod tasks;
mod tls;
mod user;

// The served resources.
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

// The rules of objects, as functions of JSON.
mod authorizer;
mod crd;
mod managed_fields;
mod model;
mod patch;
mod schema;
mod validation;

pub use config::Config;
pub use dev_cluster::{DevCluster, Error};
pub use generated::Clock;
pub use in_process::{InProcess, Requests};
