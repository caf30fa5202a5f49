//! Requests to registries and servers: bounded in time, and only to addresses that the policy allows.
//!
//! The address is checked where the connection is made, after the name was resolved: a name that resolves to
//! another address at the second time gains nothing. This is why the requests are made with hyper: the
//! clients for registries that exist do not let their user decide about addresses and redirects.

mod connect;
mod response;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, Error as ClientError},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::crypto::CryptoProvider;
use tokio::time::timeout;
use url::Url;

use self::connect::Connector;
pub(crate) use self::{connect::ConnectError, response::Response};
use crate::{
    error::{Error, Reason},
    policy::Policy,
};

/// How long the headers of an answer may take, with the connection.
const HEADERS: Duration = Duration::from_secs(30);
/// How many bytes of a request's body are sent in a second at least.
const SLOWEST_UPLOAD: u64 = 64 << 10;
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;
/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);

/// Sends requests.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    policy: Arc<Policy>,
}

// === impl Http ===

impl Http {
    /// Reads the certificate authorities of the system. Blocks.
    pub(crate) fn new(policy: Arc<Policy>) -> Result<Self, Error> {
        let failed = |error: rustls::Error| {
            Error::new(Reason::Invalid, format!("the certificate authorities cannot be used: {error}"))
                .hint("check certificateAuthorities in the source policy, and those of the system")
        };
        let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
        let roots = policy.roots.clone();
        let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(roots, Arc::clone(&provider))
            .map_err(failed)?;
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let connector = HttpsConnector::from((Connector::new(Arc::clone(&policy)), tls));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(2)
            .build(connector);
        Ok(Self { client, policy })
    }

    /// Sends a request, and follows redirects if it is `GET` or `HEAD`. A redirect to another host loses the
    /// credentials.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, Error> {
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("oarlock/", env!("CARGO_PKG_VERSION"))),
        );
        let mut url = url;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(&method, &url, &headers, &body).await?;
            let status = response.status();
            let is_followed = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
                && (method == Method::GET || method == Method::HEAD);
            if !is_followed {
                return Ok(Response::new(url, response));
            }
            let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
            let next = location.and_then(|it| url.join(it).ok());
            let Some(next) = next else {
                return Err(Error::new(Reason::Unavailable, format!("{} redirects to no URL", host(&url))));
            };
            if next.origin() != url.origin() {
                headers.remove(header::AUTHORIZATION);
            }
            url = next;
        }
        Err(Error::new(
            Reason::Unavailable,
            format!("more than {MAX_REDIRECTS} redirects, the last one from {}", host(&url)),
        )
        .hint("name the place where the content is"))
    }

    async fn send_once(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<http::Response<hyper::body::Incoming>, Error> {
        let host = host(url);
        self.check_scheme(url)?;
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.as_str().parse().map_err(|error| {
            Error::new(Reason::Invalid, format!("{url:.200} is not a URL that can be requested: {error}"))
        })?;
        *request.headers_mut() = headers.clone();
        let within = HEADERS + Duration::from_secs(body.len() as u64 / SLOWEST_UPLOAD);
        match timeout(within, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(failed(&host, &error)),
            Err(_) => Err(Error::new(
                Reason::Unavailable,
                format!("{host} does not answer within {} s", within.as_secs()),
            )
            .hint("check that the host can reach it; the host tries again")),
        }
    }

    fn check_scheme(&self, url: &Url) -> Result<(), Error> {
        let host = host(url);
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::new(Reason::Invalid, format!("the URL for {host} has a user or password"))
                .hint("remove it from the URL: objects with URLs are no place for passwords"));
        }
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.policy.is_plain_http(&host) => Ok(()),
            scheme if host.is_empty() => Err(Error::new(
                Reason::NotAllowed,
                format!("a URL with the scheme {scheme:.20} is not asked for"),
            )),
            scheme => Err(Error::new(
                Reason::NotAllowed,
                format!("{host} would be asked over {scheme}, without TLS"),
            )
            .hint("use https, or list the host with its port in plainHttp of the source policy")),
        }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// Returns the host of a URL, with its port if the URL has one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns what an answer with this status means, when it was not expected.
pub(crate) fn unexpected(host: &str, status: StatusCode, what: &str) -> Error {
    let error = |reason, message: &str| Error::new(reason, format!("{host}: {message} ({status})"));
    match status.as_u16() {
        401 | 403 => error(Reason::Forbidden, &format!("access to {what} is denied")).hint(
            "check the reference, and the pull secret: registries also deny access to what does not exist",
        ),
        404 | 410 => {
            error(Reason::NotFound, &format!("{what} does not exist")).hint("push it, or correct the source")
        }
        429 => error(Reason::Unavailable, "too many requests")
            .hint("use a pull secret or a mirror, or raise pollSeconds; the host tries again"),
        _ => error(Reason::Unavailable, &format!("{what} cannot be read"))
            .hint("check the registry or server; the host tries again"),
    }
}

/// Returns the error of a request that was not answered.
fn failed(host: &str, error: &ClientError) -> Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(error) = source {
        if let Some(connect) = error.downcast_ref::<ConnectError>() {
            return connect.to_error();
        }
        last = error.to_string();
        source = error.source();
        // An I/O error hides what it wraps.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            source = Some(inner);
        }
    }
    if last.contains("InvalidContentType") || last.contains("corrupt message") {
        return Error::new(Reason::Unavailable, format!("{host} does not speak TLS"))
            .hint("if it is a registry without TLS, list it in plainHttp of the source policy");
    }
    if last.contains("certificate") {
        return Error::new(Reason::Unavailable, format!("{host}: {last}")).hint(
            "list the certificate authority of the server in certificateAuthorities of the source policy",
        );
    }
    Error::new(Reason::Unavailable, format!("{host} does not answer the request: {last}"))
        .hint("check the registry or server; the host tries again")
}
