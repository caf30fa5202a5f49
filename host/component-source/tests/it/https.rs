//! Files of HTTPS servers.

use std::{path::Path, sync::Arc};

use oarlock_component_source::{Digest, Error, Fetched, HttpsSource, Reason, Source};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

use super::{
    artifact::{component, content, fetch, fetcher, loopback},
    server::{Answer, Server},
};

fn source(url: &str, content: &[u8]) -> Source {
    let sha256 = Digest::of(content).to_hex();
    Source { https: Some(HttpsSource { url: url.to_owned(), sha256 }), ..Source::default() }
}

async fn get(folder: &Path, policy: &str, url: &str, content: &[u8]) -> Result<Fetched, Error> {
    fetch(&fetcher(folder, policy), &source(url, content)).await
}

fn ok(content: &[u8]) -> Answer {
    Answer::Full(200, Vec::new(), content.to_vec())
}

/// Starts a server with TLS. Returns its certificate in PEM.
async fn tls_server() -> (Server, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::Pkcs8(signing_key.serialize_der().into()))
        .unwrap();
    (Server::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await, cert.pem())
}

#[tokio::test]
async fn a_file_is_fetched_over_tls_once() {
    let (mut server, certificate) = tls_server().await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), certificate).unwrap();
    let policy = "privateAddresses: [localhost]\ncertificateAuthorities: [ca.pem]\n";
    server.answer("/mirror.wasm", ok(&component("one")));
    let url = format!("https://localhost:{}/mirror.wasm", server.address.port());
    let fetched = get(dir.path(), policy, &url, &component("one")).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
    server.stop().await;
    let again = get(dir.path(), policy, &url, &component("one")).await.unwrap();
    assert!(again.stale.is_none(), "the digest is that of the source");
    // Another source that only knows the digest has to fetch it itself.
    let other = get(dir.path(), policy, &format!("{url}x"), &component("one")).await.unwrap_err();
    assert_eq!(other.reason(), Reason::Unavailable);
}

#[tokio::test]
async fn tls_is_verified() {
    let (server, _) = tls_server().await;
    let plain = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let policy = "privateAddresses: [localhost]\n";
    let error = async |server: &Server| {
        let url = format!("https://localhost:{}/a", server.address.port());
        get(dir.path(), policy, &url, b"").await.unwrap_err()
    };
    let untrusted = error(&server).await;
    assert_eq!(untrusted.reason(), Reason::Unavailable);
    assert!(untrusted.fix().unwrap().contains("certificateAuthorities"), "{untrusted}");
    let no_tls = error(&plain).await;
    assert!(no_tls.to_string().ends_with("does not speak TLS"), "{no_tls}");
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused_where_the_connection_is_made() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let url = format!("https://localhost:{}/a", server.address.port());
    for url in [
        &url,
        "https://127.0.0.1/a",
        "https://[::ffff:10.0.0.1]/a",
        "https://169.254.169.254/latest/meta-data",
        "https://2130706433/a",
        "https://0x7f.1/a",
    ] {
        let error = get(dir.path(), "{}", url, b"").await.unwrap_err();
        assert_eq!(error.reason(), Reason::NotAllowed, "{error}");
        assert!(error.to_string().ends_with("which is not public"), "{error}");
    }
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test]
async fn a_redirect_to_an_address_that_is_not_listed_is_refused() {
    let (server, metadata) = (Server::start().await, Server::start().await);
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "privateAddresses: [localhost]\nplainHttp: ['localhost:{}', '{}']\n",
        server.address.port(),
        metadata.address
    );
    let url = format!("http://localhost:{}/a", server.address.port());
    metadata.answer("/b", ok(&component("one")));
    let refusal = async |target: String| {
        server.answer("/a", Answer::Full(302, vec![("location", target)], Vec::new()));
        let error = get(dir.path(), &policy, &url, &component("one")).await.unwrap_err();
        assert_eq!(error.reason(), Reason::NotAllowed, "{error}");
        error.to_string()
    };
    insta::assert_snapshot!(refusal(format!("http://{}/b", metadata.address)).await, @"127.0.0.1 has the address 127.0.0.1, which is not public");
    insta::assert_snapshot!(refusal("http://example.com/b".to_owned()).await, @"example.com would be asked over http, without TLS");
    insta::assert_snapshot!(refusal("file:///etc/passwd".to_owned()).await, @"a URL with the scheme file is not asked for");
    assert_eq!(metadata.requests(), [""; 0]);

    // Listed, it is followed.
    let policy = format!("{policy}  \nallow: ['localhost:{}/*']\n", server.address.port())
        .replace("[localhost]", "[localhost, 127.0.0.1]");
    server.answer(
        "/a",
        Answer::Full(302, vec![("location", format!("http://{}/b", metadata.address))], Vec::new()),
    );
    let fetched = get(dir.path(), &policy, &url, &component("one")).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
}

#[tokio::test]
async fn content_that_is_not_the_file_is_refused() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let policy = loopback(&server) + "maxBytes: 1000000\n";
    let url = format!("http://{}/a", server.address);
    let refusal = async |answer: Answer| {
        server.answer("/a", answer);
        let error = get(dir.path(), &policy, &url, &component("one")).await.unwrap_err();
        (error.reason(), error.to_string().replace(&server.address.to_string(), "HOST"))
    };
    let (reason, _) = refusal(ok(&component("two"))).await;
    assert_eq!(reason, Reason::DigestMismatch);
    let (reason, message) = refusal(ok(b"<html>")).await;
    assert_eq!(reason, Reason::NotAComponent);
    insta::assert_snapshot!(message, @"HOST: the content is not a component: it is an HTML or XML page");
    for answer in [Answer::Announces10Gb, Answer::Endless] {
        let (reason, message) = refusal(answer).await;
        assert_eq!(reason, Reason::TooLarge);
        assert_eq!(message, "the component at HOST has more than 1000000 bytes");
    }
    let (reason, message) = refusal(Answer::Full(404, Vec::new(), Vec::new())).await;
    assert_eq!(reason, Reason::NotFound);
    insta::assert_snapshot!(message, @"HOST: HOST/a does not exist (404 Not Found)");
}

#[tokio::test]
async fn a_malformed_source_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = async |url: &str| {
        let error = get(dir.path(), "{}", url, b"").await.unwrap_err();
        (error.reason(), error.to_string())
    };
    assert_eq!(refusal("ftp://a.example/b").await.0, Reason::Invalid);
    assert_eq!(refusal("mirror.wasm").await.0, Reason::Invalid);
    let (reason, message) = refusal("https://user:password@a.example/b").await;
    assert_eq!(reason, Reason::Invalid);
    assert!(!message.contains("password@"), "{message}");
    let https = HttpsSource { url: "https://a.example/b".to_owned(), sha256: "ABC".to_owned() };
    let error = fetch(&fetcher(dir.path(), "{}"), &Source { https: Some(https), ..Source::default() })
        .await
        .unwrap_err();
    insta::assert_snapshot!(error, @r#"sha256 "ABC" is not 64 hexadecimal digits in lower case"#);
}
