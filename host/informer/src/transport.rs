//! Connections to an API server, with keep-alive and without retries.
//!
//! The default `kube::Client` retries some failures, which the reflector would then not see (RL-74). It also
//! has no keep-alive, so that a watch waits forever if its server disappears without closing the connection
//! (RL-70). This client differs in these two points, and in how it reads a [token file](TokenFile); other
//! credentials, TLS and headers are kube's.

mod pools;
mod resolver;
mod token_file;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{AbortHandle, BoxFuture, abortable};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt};
use tokio::time::Instant;
use tower::util::MapFutureLayer;
use tower::{BoxError, Service, ServiceBuilder};

use self::pools::Pools;
use self::resolver::Resolver;
pub use self::token_file::{TokenFile, TokenFileError};
use crate::outages::Outages;

/// HTTP/2: a ping after this long without a frame.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// HTTP/2: the connection is dead if a ping has no answer for this long.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// TCP: a probe after this long without a byte; then two more, [`TCP_PROBE_INTERVAL`] apart, before the
/// connection is dead.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
const TCP_PROBE_INTERVAL: Duration = Duration::from_secs(10);
const TCP_PROBES: u32 = 3;

/// TCP: the connection is dead if sent data is not acknowledged for this long. See
/// [`Options::acknowledged_within`].
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a configuration gives no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration has a proxy, on this host.
    #[error("the kubeconfig names a proxy ({0}), and proxies are not supported")]
    Proxy(String),
    /// Certificates, credentials or headers are not usable.
    #[error("cannot make a client for the API server")]
    Config(#[source] kube::Error),
    /// The file with the token has none.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
}

type Connector = TimeoutConnector<HttpsConnector<HttpConnector<Resolver>>>;

/// Receives the metrics of a client's requests. client-go has the same: `RequestResult` and `RequestLatency`.
pub trait RequestMetrics: Send + Sync {
    /// The head of an answer arrived, this long after the request; the code is `None` if none arrived.
    fn answered(&self, method: &Method, code: Option<StatusCode>, took: Duration);
}

/// What a client does beyond what [`client`] does.
#[derive(Clone, Default)]
pub struct Options {
    /// Receives the metrics of the requests.
    pub metrics: Option<Arc<dyn RequestMetrics>>,
    /// Notices outages of the server.
    pub outages: Outages,
    /// TCP: a connection ends if sent data is not acknowledged for this long, and the data is not sent again,
    /// also if this process has ended meanwhile. So a write never leaves this machine later than that.
    /// Connections of watches, which carry no writes, keep the default of 60 s. Only Linux has this.
    pub acknowledged_within: Option<Duration>,
}

/// Reports the answers of [`Pools`].
#[derive(Clone)]
struct Observed {
    pools: Pools,
    metrics: Option<Arc<dyn RequestMetrics>>,
    outages: Outages,
}

/// Ends a request when it is dropped. tokio-util has the same for a task, but not for one of shuttle's tokio,
/// with which the informer is compiled for the tests of its interleavings.
struct EndOnDrop(AbortHandle);

/// Makes a client for an API server. It never retries, and its connections detect a dead peer within 70 s.
///
/// Over TLS it uses HTTP/2 with pings if the server supports it; TCP keep-alive is always on. Must be called
/// within a tokio runtime. It sends no request.
///
/// # Errors
///
/// If the configuration cannot be used.
pub fn client(config: Config) -> Result<kube::Client, Error> {
    client_with(config, Options::default())
}

/// Makes a client like [`client`], with options.
///
/// # Errors
///
/// If the configuration cannot be used.
pub fn client_with(config: Config, options: Options) -> Result<kube::Client, Error> {
    let Options { metrics, outages, acknowledged_within } = options;
    if let Some(proxy) = &config.proxy_url {
        // Only the host: the URL may contain a password.
        return Err(Error::Proxy(proxy.host().unwrap_or_default().to_owned()));
    }
    let watches = connector(&config, TCP_USER_TIMEOUT).map_err(Error::Config)?;
    let others =
        connector(&config, acknowledged_within.unwrap_or(TCP_USER_TIMEOUT)).map_err(Error::Config)?;
    let pools = Pools::new(&watches, &others);
    let runs_program = config.auth_info.exec.is_some();
    let token_file = TokenFile::of(&config.auth_info)?;
    let other_credentials = match &token_file {
        Some(_) => None,
        None => config.auth_layer().map_err(Error::Config)?,
    };
    let service = ServiceBuilder::new()
        .option_layer(runs_program.then(|| MapFutureLayer::new(in_a_task)))
        .layer(config.base_uri_layer())
        .option_layer(token_file.map(TokenFile::layer))
        .option_layer(other_credentials)
        .layer(config.extra_headers_layer().map_err(Error::Config)?)
        .map_err(BoxError::from)
        .service(Observed { pools, metrics, outages });
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

/// Runs a request as a task. A program of the kubeconfig that returns a token is run on a thread, which would
/// inherit the low priority of a guest's thread (see [`Resolver`]).
fn in_a_task<T: Send + 'static>(
    request: impl Future<Output = Result<T, BoxError>> + Send + 'static,
) -> impl Future<Output = Result<T, BoxError>> + Send {
    let (request, end) = abortable(request);
    let end = EndOnDrop(end);
    #[expect(clippy::disallowed_methods, reason = "ends when the request is dropped")]
    let task = tokio::spawn(request);
    async move {
        let _end = end;
        task.await??
    }
}

fn connector(config: &Config, user_timeout: Duration) -> Result<Connector, kube::Error> {
    let mut tcp = HttpConnector::new_with_resolver(Resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(TCP_PROBE_INTERVAL));
    tcp.set_keepalive_retries(Some(TCP_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(user_timeout));
    #[cfg(not(target_os = "linux"))]
    let _ = user_timeout;

    let tls = if config.tls_server_name.is_some() {
        // Only kube's constructor supports another server name, and it has no HTTP/2.
        config.rustls_https_connector_with_connector(tcp)?
    } else {
        let mut tls = config.rustls_client_config()?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        HttpsConnector::from((tcp, tls))
    };
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_write_timeout(config.write_timeout);
    Ok(connector)
}

// === impl EndOnDrop ===

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Observed ===

impl Service<Request<Body>> for Observed {
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = BoxFuture<'static, Result<Response<Incoming>, legacy::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        // A pool opens connections when requests need them.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, began) = (request.method().clone(), Instant::now());
        let (metrics, outages) = (self.metrics.clone(), self.outages.clone());
        let answer = self.pools.send(request);
        let answer = answer.inspect(move |answer| {
            let code = answer.as_ref().ok().map(Response::status);
            outages.answered(code);
            if let Some(metrics) = metrics {
                metrics.answered(&method, code, began.elapsed());
            }
        });
        answer.boxed()
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn get(path: &str) -> Request<Body> {
        Request::get(path).body(Body::empty()).unwrap()
    }

    #[derive(Default)]
    struct Answers(Mutex<Vec<(Method, Option<u16>)>>);

    impl RequestMetrics for Answers {
        fn answered(&self, method: &Method, code: Option<StatusCode>, _: Duration) {
            self.0.lock().push((method.clone(), code.map(|code| code.as_u16())));
        }
    }

    #[tokio::test]
    async fn the_client_returns_a_failure_without_a_retry_rl_74() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/base", listener.local_addr().unwrap());
        let answers = Arc::new(Answers::default());
        let outages = Outages::default();
        let options =
            Options { metrics: Some(answers.clone()), outages: outages.clone(), acknowledged_within: None };
        let client = client_with(Config::new(url.parse().unwrap()), options).unwrap();
        let server = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                connection.read_buf(&mut request).await.unwrap();
            }
            let answer =
                b"HTTP/1.1 503 Not Now\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            connection.write_all(answer).await.unwrap();
            String::from_utf8(request).unwrap()
        };
        let both = async { tokio::join!(server, client.send(get("/api/v1/pods?limit=1"))) };
        let limit = Duration::from_secs(60);
        let (request, answer) = tokio::time::timeout(limit, both).await.expect("no answer within the limit");
        assert!(request.starts_with("GET /base/api/v1/pods?limit=1 HTTP/1.1\r\n"), "{request}");
        // The default client of kube would retry.
        assert_eq!(answer.unwrap().status(), 503);
        assert!(!outages.is_out());
        drop(listener);
        assert!(client.send(get("/api/v1/pods?limit=1")).await.is_err());
        assert_eq!(*answers.0.lock(), [(Method::GET, Some(503)), (Method::GET, None)]);
        assert!(outages.is_out());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_write_that_is_not_acknowledged_ends_its_connection() {
        // The system accepts the connection, and no task reads from it.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let options = Options { acknowledged_within: Some(Duration::from_millis(200)), ..Options::default() };
        let client = client_with(Config::new(url.parse().unwrap()), options).unwrap();
        // More than the buffers of both ends.
        let body = Body::from(vec![0; 64 << 20]);
        let answer = client.send(Request::post("/api/v1/pods").body(body).unwrap());
        let error =
            tokio::time::timeout(TCP_USER_TIMEOUT / 2, answer).await.expect("no end of the connection");
        let kube::Error::Service(error) = error.unwrap_err() else { panic!("another kind of error") };
        let mut source: Option<&dyn std::error::Error> = Some(&*error);
        let kind = std::iter::from_fn(|| {
            let error = source?;
            source = error.source();
            Some(error.downcast_ref::<std::io::Error>().map(std::io::Error::kind))
        });
        assert_eq!(kind.flatten().last(), Some(std::io::ErrorKind::TimedOut));
    }

    #[tokio::test]
    async fn a_request_has_the_trimmed_token_of_the_token_file() {
        let path = std::env::temp_dir().join(format!("oarlock-transport-token-{}", std::process::id()));
        std::fs::write(&path, "the-token\n").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.auth_info.token_file = Some(path.display().to_string());
        let client = client(config).unwrap();
        std::fs::remove_file(&path).unwrap();
        let server = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                connection.read_buf(&mut request).await.unwrap();
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            connection.write_all(answer).await.unwrap();
            String::from_utf8(request).unwrap()
        };
        let both = async { tokio::join!(server, client.send(get("/api"))) };
        let limit = Duration::from_secs(60);
        let (request, answer) = tokio::time::timeout(limit, both).await.expect("no answer within the limit");
        assert_eq!(answer.unwrap().status(), 200);
        assert!(request.contains("authorization: Bearer the-token\r\n"), "{request}");
    }

    #[tokio::test]
    async fn a_proxy_is_rejected_without_its_credentials() {
        let mut config = Config::new("https://api:6443".parse().unwrap());
        config.proxy_url = Some("http://user:secret@proxy:3128".parse().unwrap());
        let error = client(config).err().unwrap();
        insta::assert_snapshot!(error, @"the kubeconfig names a proxy (proxy), and proxies are not supported");
    }
}
