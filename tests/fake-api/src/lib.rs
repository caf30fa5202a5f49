//! A fake API server for unit tests: a function from request to reply, behind a real [`kube::Client`].

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, reason = "for tests only: a panic fails the test")]

use std::{convert::Infallible, sync::Arc};

use http::{HeaderMap, Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;

/// A request that the client sent.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: String,
}

/// A reply of the server.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A response, at once.
    Now { code: u16, body: String },
    /// No response, ever.
    Never,
}

/// The fake server. Clones share the recorded requests.
#[derive(Clone)]
pub struct FakeApi {
    requests: Arc<Mutex<Vec<SeenRequest>>>,
    answer: Arc<dyn Fn(&SeenRequest) -> Reply + Send + Sync>,
}

// === impl Reply ===

impl Reply {
    pub fn json(code: u16, body: impl Into<String>) -> Self {
        Self::Now { code, body: body.into() }
    }

    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::json(
            code,
            serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": reason, "message": message,
            })
            .to_string(),
        )
    }
}

// === impl FakeApi ===

impl FakeApi {
    pub fn new(answer: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self { requests: Arc::default(), answer: Arc::new(answer) }
    }

    pub fn client(&self) -> kube::Client {
        let this = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let this = this.clone();
            async move { Ok::<_, Infallible>(this.serve(request).await) }
        });
        kube::Client::new(service, "default")
    }

    pub fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().clone()
    }

    async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.expect("a body made of bytes");
        let seen = SeenRequest {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).expect("a body of text"),
        };
        self.requests.lock().push(seen.clone());
        match (self.answer)(&seen) {
            Reply::Now { code, body } => Response::builder()
                .status(code)
                .body(Body::from(body.into_bytes()))
                .expect("a valid response"),
            Reply::Never => std::future::pending().await,
        }
    }
}
