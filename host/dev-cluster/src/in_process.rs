//! A server without a network, for programs that control its time.

use crate::config::Config;
use crate::dev_cluster::Error;
use crate::service;
use crate::state::State;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An API server that answers requests in this process, without sockets and TLS. Dropping it discards its
/// objects.
///
/// A runtime with a paused clock may run it: no answer waits for input or output.
#[derive(Debug)]
pub struct InProcess {
    state: State,
}

/// Answers the requests of one user. It is a service of tower, so a client can be made of it, such as that of
/// the crate kube.
#[derive(Clone, Debug)]
pub struct Requests {
    cluster: Arc<crate::cluster::Cluster>,
    address: Arc<str>,
    authorization: Option<HeaderValue>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The address in discovery documents. Nothing connects to it.
const ADDRESS: &str = "in-process.invalid";

// === impl InProcess ===

impl InProcess {
    /// Starts a server. `config.addr` is not used.
    ///
    /// # Errors
    ///
    /// When the initial objects cannot be created, which is a defect.
    pub fn start(config: Config) -> Result<Self, Error> {
        Ok(Self { state: State::new(config)? })
    }

    /// Answers the requests of the administrator, who is allowed everything.
    #[must_use]
    pub fn as_admin(&self) -> Requests {
        self.requests(&self.state.admin_token)
    }

    /// Answers the requests of a ServiceAccount, which need not exist.
    #[must_use]
    pub fn as_account(&self, namespace: &str, name: &str) -> Requests {
        self.requests(&self.state.token_for(namespace, name))
    }

    /// Returns the newest resourceVersion.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.state.cluster.store.revision()
    }

    /// Ends all tasks.
    pub async fn shut_down(self) {
        self.state.tasks.shut_down().await;
    }

    fn requests(&self, token: &str) -> Requests {
        Requests::new(self.state.cluster.clone(), ADDRESS, token)
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.state.tasks.cancel();
    }
}

// === impl Requests ===

impl Requests {
    /// Answers requests with this token. Discovery documents have the address.
    pub(crate) fn new(cluster: Arc<crate::cluster::Cluster>, address: &str, token: &str) -> Self {
        let authorization = HeaderValue::try_from(format!("Bearer {token}")).ok();
        Self { cluster, address: address.into(), authorization }
    }

    /// Answers one request. The body of a watch goes on until it is dropped.
    pub async fn answer<B>(&self, mut request: Request<B>) -> Response<UnsyncBoxBody<Bytes, BoxError>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let response = service::serve(self.cluster.clone(), self.address.clone(), request).await;
        response.map(|body| body.map_err(BoxError::from).boxed_unsync())
    }
}

impl<B> tower_service::Service<Request<B>> for Requests
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let requests = self.clone();
        Box::pin(async move { Ok(requests.answer(request).await) })
    }
}
