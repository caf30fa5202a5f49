//! A registry that refuses all credentials, and quotes them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use k8s_openapi::ByteString;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A repository that asks for a token, and one that asks for user and password.
pub(super) const WITH_TOKEN: &str = "with-token";
pub(super) const WITH_BASIC: &str = "with-basic";

const USER: &str = "robot";

pub(super) struct Registry {
    pub(super) address: SocketAddr,
    quoted: Arc<Mutex<Vec<String>>>,
    _server: JoinSet<()>,
}

// === impl Registry ===

impl Registry {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let quoted = Arc::default();
        let router = Router::new().fallback(answer).with_state((address, Arc::clone(&quoted)));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, quoted, _server: server }
    }

    pub(super) fn reference(&self, repository: &str) -> String {
        format!("{}/{repository}:1", self.address)
    }

    pub(super) fn pull_secret(&self, name: &str, password: &str) -> Value {
        let auths = json!({"auths": {self.address.to_string(): {"username": USER, "password": password}}});
        json!({
            "metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": auths.to_string()},
        })
    }

    /// Returns the credentials as the header has them.
    pub(super) fn basic(&self, password: &str) -> String {
        json!(ByteString(format!("{USER}:{password}").into_bytes())).as_str().unwrap().to_owned()
    }

    /// Returns whether the registry and its server of tokens have quoted a password.
    pub(super) fn has_quoted(&self, password: &str) -> bool {
        let quoted = self.quoted.lock();
        ["/token", WITH_BASIC]
            .iter()
            .all(|at| quoted.iter().any(|it| it.contains(at) && it.contains(password)))
    }
}

async fn answer(
    State((address, quoted)): State<(SocketAddr, Arc<Mutex<Vec<String>>>)>,
    request: Request,
) -> Response {
    let path = request.uri().path().to_owned();
    let sent = request.headers().get(header::AUTHORIZATION).map(|it| it.to_str().unwrap().to_owned());
    let Some(sent) = sent else {
        let challenge = match path.contains(WITH_BASIC) {
            true => "Basic realm=\"here\"".to_owned(),
            false => format!("Bearer realm=\"http://{address}/token\",service=\"here\""),
        };
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    };
    let base64 = sent.split_once(' ').unwrap().1.to_owned();
    let decoded: ByteString = serde_json::from_value(json!(base64)).unwrap();
    let message = format!("{path}: no user {} ({sent})", String::from_utf8(decoded.0).unwrap());
    quoted.lock().push(message.clone());
    let body = json!({"errors": [{"code": "DENIED", "message": message}], "details": message});
    (StatusCode::FORBIDDEN, axum::Json(body)).into_response()
}
