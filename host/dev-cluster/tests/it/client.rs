//! A small HTTP client: one connection per request. Every wait has a deadline.
#![expect(clippy::disallowed_methods, reason = "the connection of a request has to be driven somewhere")]

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_wait_until::LIMIT;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

#[derive(Clone)]
pub(crate) struct Client {
    addr: SocketAddr,
    connector: TlsConnector,
    headers: Vec<(&'static str, String)>,
}

/// An open watch.
pub(crate) struct Watch {
    path: String,
    body: Incoming,
    buffer: Vec<u8>,
    n_lines: usize,
}

pub(crate) async fn start() -> (DevCluster, Client) {
    let cluster = DevCluster::start(Config::default()).await.unwrap();
    let client = Client::new(&cluster, cluster.admin_token());
    (cluster, client)
}

/// A ConfigMap for a POST or a PUT.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"v": value}})
}

/// The path of ConfigMaps in the namespace `default`.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

// === impl Client ===

impl Client {
    pub(crate) fn new(cluster: &DevCluster, token: &str) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            addr: cluster.addr(),
            connector: TlsConnector::from(Arc::new(config)),
            headers: vec![("authorization", format!("Bearer {token}"))],
        }
    }

    pub(crate) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| *known != name);
        client.headers.push((name, value.to_owned()));
        client
    }

    pub(crate) fn anonymous(&self) -> Self {
        Self { headers: Vec::new(), ..self.clone() }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(self.addr).await?;
        let name = ServerName::IpAddress(self.addr.ip().into());
        let stream = self.connector.connect(name, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        Ok(sender.send_request(request.body(Full::new(body.into()))?).await?)
    }

    pub(crate) async fn whole(&self, method: Method, path: &str, body: &str) -> (u16, HeaderMap, Bytes) {
        let answer = timeout(LIMIT, async {
            let response = self.send(method.clone(), path, body.to_owned()).await.unwrap();
            let (parts, body) = response.into_parts();
            (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
        });
        answer.await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the response to {method} {path}"))
    }

    async fn call(&self, method: Method, path: &str, content_type: &str, body: &str) -> (u16, Value) {
        let mut client = self.clone();
        if !body.is_empty() && !client.headers.iter().any(|(name, _)| *name == "content-type") {
            client.headers.push(("content-type", content_type.to_owned()));
        }
        let (code, _, body) = client.whole(method, path, body).await;
        (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::POST, path, "application/json", &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::PUT, path, "application/json", &body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::PATCH, path, "application/merge-patch+json", &body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.call(Method::DELETE, path, "", "").await
    }

    /// Creates an object, and fails the test if the server refuses it.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        let (code, created) = self.post(path, body).await;
        assert_eq!(code, 201, "{created}");
        created
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.send(Method::GET, path, "").await.unwrap();
        assert_eq!(response.status(), 200);
        Watch { path: path.to_owned(), body: response.into_body(), buffer: Vec::new(), n_lines: 0 }
    }

    /// Reads an object until it is as expected.
    pub(crate) async fn get_until(&self, path: &str, what: &str, holds: impl Fn(u16, &Value) -> bool) {
        let begun_at = Instant::now();
        loop {
            let (code, object) = self.get(path).await;
            if holds(code, &object) {
                return;
            }
            assert!(
                begun_at.elapsed() < LIMIT,
                "waited {LIMIT:?} for {what}; the last response to GET {path} was {code} {object}"
            );
        }
    }

    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        let (code, list) = self.get(path).await;
        assert_eq!(code, 200, "{list}");
        names(&list)
    }
}

pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

// === impl Watch ===

impl Watch {
    /// Returns the next line; `None` at the end of the watch, clean or not.
    pub(crate) async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                self.n_lines += 1;
                return Some(self.buffer.drain(..=end).collect());
            }
            let frame = timeout(LIMIT, self.body.frame()).await;
            let frame = frame.unwrap_or_else(|_| {
                panic!(
                    "waited {LIMIT:?} for an event of {} after {} lines; an incomplete line has {} bytes",
                    self.path,
                    self.n_lines,
                    self.buffer.len()
                )
            });
            self.buffer.extend_from_slice(&frame?.ok()?.into_data().unwrap_or_default());
        }
    }

    /// Returns the next event; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        Some(serde_json::from_slice(&self.next_line().await?).unwrap())
    }

    /// Reads events until one has this summary.
    pub(crate) async fn wait_for(&mut self, wanted: &str) {
        let begun_at = Instant::now();
        loop {
            let summary = self.next_summary().await;
            if summary == wanted {
                return;
            }
            assert!(
                begun_at.elapsed() < LIMIT && !summary.starts_with("END"),
                "waited for {wanted}; the last event of {} was {summary}",
                self.path
            );
        }
    }

    /// Returns the next event as `TYPE name@version`.
    pub(crate) async fn next_summary(&mut self) -> String {
        let event = self.next().await.unwrap_or_else(|| json!({"type": "END"}));
        let metadata = &event["object"]["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {}@{}", text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]))
    }
}
