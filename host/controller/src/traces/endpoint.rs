//! The exporter: OTLP in protobuf over the host's own HTTP client.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use super::config::{Config, Error};

/// The timeout of a request, from the specification of OTLP.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the last request had no answer. The exporter itself does not say.
pub(super) type LastError = Arc<Mutex<Option<String>>>;

/// Sends the requests of the exporter.
#[derive(Debug)]
struct Client {
    client: HyperClient<HttpsConnector<HttpConnector>>,
    last_error: LastError,
}

/// Makes the exporter.
pub(super) fn exporter(config: &Config, resource: &Resource) -> Result<(SpanExporter, LastError), Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    let connector = HttpsConnector::from((connector, tls(config)?));
    let last_error = LastError::default();
    let client =
        Client { client: HyperClient::new(connector, TIMEOUT, None), last_error: last_error.clone() };
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(config.endpoint.as_str())
        .with_http_client(client)
        .build()
        .map_err(|error| Error::Exporter(error.to_string()))?;
    exporter.set_resource(resource);
    Ok((exporter, last_error))
}

/// Returns the configuration of TLS, which trusts the system's certificate authorities and those given.
fn tls(config: &Config) -> Result<ClientConfig, Error> {
    let failed = |error: rustls::Error| Error::Authorities(error.to_string());
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    if config.endpoint.scheme() == "http" {
        // There may be no authorities on the machine.
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let roots = config.authorities.clone();
    let verifier =
        rustls_platform_verifier::Verifier::new_with_extra_roots(roots, provider).map_err(failed)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

// === impl Client ===

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send_bytes(request).await;
        *self.last_error.lock() = answer.as_ref().err().map(innermost);
        answer
    }
}

/// Returns the message of the innermost error.
fn innermost(error: &HttpError) -> String {
    let mut last = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        last = error.to_string();
        source = error.source();
    }
    last
}
