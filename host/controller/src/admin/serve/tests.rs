use std::sync::Arc;

use axum::routing::get;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::*;

/// The time after which a test fails.
const LIMIT: Duration = Duration::from_secs(60);

struct Served {
    address: SocketAddr,
    token: CancellationToken,
    task: futures::future::BoxFuture<'static, ()>,
}

async fn served(certificate: Option<Certificate>, limits: Limits) -> Served {
    let pages = Router::new().route("/", get(|| async { "page\n" }));
    served_pages(certificate, limits, pages).await
}

async fn served_pages(certificate: Option<Certificate>, limits: Limits, pages: Router) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = CancellationToken::new();
    let ended = token.clone();
    let task = Box::pin(async move {
        let (tasks, _) = Tasks::new(ended.clone());
        serve(&listener, certificate.as_ref(), &pages, limits, &tasks, &ended).await;
    });
    Served { address, token, task }
}

impl Served {
    /// Runs a client beside the server, and ends the server.
    async fn with<T>(self, client: impl AsyncFnOnce(SocketAddr) -> T) -> T {
        let Self { address, token, task } = self;
        let client = async {
            let result = client(address).await;
            token.cancel();
            result
        };
        let both = async { tokio::join!(client, task) };
        tokio::time::timeout(LIMIT, both).await.expect("the server or its client hangs").0
    }
}

async fn get_page(mut connection: impl AsyncRead + AsyncWrite + Unpin, head: &str) -> String {
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{head}\r\n");
    // A server that refuses a request closes the connection before it has read all of it.
    let _ = connection.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_head_that_is_too_long_or_has_too_many_headers_is_refused() {
    served(None, Limits::default())
        .await
        .with(async |address| {
            let connect = async || TcpStream::connect(address).await.unwrap();
            assert!(get_page(connect().await, "").await.starts_with("HTTP/1.1 200 "));
            let long = format!("X: {}\r\n", "x".repeat(2 * MAX_HEAD));
            assert!(get_page(connect().await, &long).await.starts_with("HTTP/1.1 431 "));
            let many: String = (0..=MAX_HEADERS).map(|n| format!("X{n}: x\r\n")).collect();
            assert!(get_page(connect().await, &many).await.starts_with("HTTP/1.1 431 "));
        })
        .await;
}

#[tokio::test]
async fn one_address_has_a_limited_number_of_connections() {
    let limits = Limits { per_address: 2, head: LIMIT, ..Limits::default() };
    served(None, limits)
        .await
        .with(async |address| {
            let connect = async || TcpStream::connect(address).await.unwrap();
            let silent = [connect().await, connect().await];
            // The connection beyond the limit is closed without an answer.
            assert_eq!(get_page(connect().await, "").await, "");
            drop(silent);
            while !get_page(connect().await, "").await.starts_with("HTTP/1.1 200 ") {
                tokio::task::yield_now().await;
            }
        })
        .await;
}

#[tokio::test]
async fn a_silent_connection_is_closed_and_makes_room() {
    let limits = Limits { per_address: 1, head: Duration::from_millis(200), ..Limits::default() };
    served(None, limits)
        .await
        .with(async |address| {
            let connect = async || TcpStream::connect(address).await.unwrap();
            let mut silent = connect().await;
            let mut answer = Vec::new();
            let _ = silent.read_to_end(&mut answer).await;
            while !get_page(connect().await, "").await.starts_with("HTTP/1.1 200 ") {
                tokio::task::yield_now().await;
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_does_not_wait_for_a_page_that_takes_long() {
    const LONG: Duration = Duration::from_secs(20);
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begun, released) = (Arc::new(Mutex::new(begun)), Arc::new(Mutex::new(released)));
    // It keeps the thread on which it is polled.
    let long = move || {
        begun.lock().send(()).unwrap();
        let released = released.clone();
        async move { if released.lock().recv_timeout(LONG).is_ok() { "released\n" } else { "too late\n" } }
    };
    let pages = Router::new().route("/", get(|| async { "page\n" })).route("/long", get(long));
    let served = served_pages(None, Limits::default(), pages).await;
    let (address, token) = (served.address, served.token.clone());
    let clients = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let ask = |path: &str| {
            let mut connection = std::net::TcpStream::connect(address).unwrap();
            write!(connection, "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
            connection
        };
        let read = |mut connection: std::net::TcpStream| {
            let mut answer = String::new();
            connection.read_to_string(&mut answer).unwrap();
            answer
        };
        let long = ask("/long");
        has_begun.recv().unwrap();
        let probe = read(ask("/"));
        // The page may have ended already: then the probe has waited for it.
        let _ = release.send(());
        token.cancel();
        (probe, read(long))
    });
    tokio::time::timeout(LIMIT, served.task).await.expect("the server ends");
    let (probe, long) = clients.join().unwrap();
    assert!(probe.ends_with("\r\n\r\npage\n") && long.ends_with("\r\n\r\nreleased\n"), "{probe} {long}");
}

#[tokio::test]
async fn pages_are_served_over_tls_1_2_or_newer_with_http_1_1_alone() {
    let certificate = Certificate::self_signed("127.0.0.1".parse().unwrap()).unwrap();
    let mut client =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = TlsConnector::from(Arc::new(client));
    served(Some(certificate), Limits::default())
        .await
        .with(async |address| {
            let tcp = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let tls = connector.connect(name, tcp).await.unwrap();
            assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            assert!(get_page(tls, "").await.ends_with("\r\n\r\npage\n"));
            // A client without TLS gets nothing.
            let plain = get_page(TcpStream::connect(address).await.unwrap(), "").await;
            assert!(!plain.contains("page"), "{plain}");
        })
        .await;
}

/// Accepts every certificate, as the kubelet's probes do.
#[derive(Debug)]
struct AnyCertificate;

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
