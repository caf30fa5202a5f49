//! Where traces are exported to, and how many.

use opentelemetry::{Key, KeyValue};
use opentelemetry_sdk::Resource;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::Url;
use uuid::Uuid;

/// The path of traces below the endpoint of a collector, from the specification of OTLP.
const PATH: &str = "v1/traces";

/// Where traces are exported to, and how many.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) endpoint: Url,
    pub(super) ratio: f64,
    pub(super) authorities: Vec<CertificateDer<'static>>,
}

/// Why traces cannot be exported as configured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoint is not a URL of HTTP.
    #[error("the OTLP endpoint {endpoint:?} cannot be used: {why}")]
    Endpoint {
        /// The endpoint as it was given.
        endpoint: String,
        /// What is wrong with it.
        why: String,
    },
    /// The endpoint has a user or a password, which would be shown in messages.
    #[error("the OTLP endpoint at {host} has a user or a password")]
    Credentials {
        /// The host of the endpoint.
        host: String,
    },
    /// The ratio is no share.
    #[error("the ratio of traces is {0}, which is not between 0 and 1")]
    Ratio(f64),
    /// The certificate authorities cannot be used.
    #[error("the certificate authorities for the OTLP endpoint cannot be used: {0}")]
    Authorities(String),
    /// A variable of OpenTelemetry, such as OTEL_EXPORTER_OTLP_COMPRESSION, cannot be used.
    #[error("the exporter of traces cannot be made: {0}")]
    Exporter(String),
}

// === impl Config ===

impl Config {
    /// Exports to the collector with this base URL, such as `http://collector:4318`.
    pub fn of_collector(base: &str, ratio: f64) -> Result<Self, Error> {
        let mut config = Self::new(base, ratio)?;
        let path = format!("{}/{PATH}", config.endpoint.path().trim_end_matches('/'));
        config.endpoint.set_path(&path);
        Ok(config)
    }

    /// Exports to this URL, which has the path of the traces.
    pub fn new(endpoint: &str, ratio: f64) -> Result<Self, Error> {
        let unusable = |why: String| Error::Endpoint { endpoint: endpoint.to_owned(), why };
        let parsed: Url = endpoint.parse().map_err(|error| unusable(format!("it is no URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(unusable(format!("its scheme is {}, and not http or https", parsed.scheme())));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let host = parsed.host_str().unwrap_or_default().to_owned();
            return Err(Error::Credentials { host });
        }
        if !(0.0..=1.0).contains(&ratio) {
            return Err(Error::Ratio(ratio));
        }
        Ok(Self { endpoint: parsed, ratio, authorities: Vec::new() })
    }

    /// Returns the URL of the traces.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Also trusts the certificate authorities of a PEM text.
    pub fn trusting(self, pem: &[u8]) -> Result<Self, Error> {
        let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let authorities = authorities.map_err(|error| Error::Authorities(format!("no PEM: {error}")))?;
        if authorities.is_empty() {
            return Err(Error::Authorities("the PEM text has no certificate".to_owned()));
        }
        Ok(Self { authorities, ..self })
    }
}

/// Returns the attributes of this host. The SDK reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
pub(super) fn resource() -> Resource {
    let given = Resource::builder().build();
    let is_named = given
        .get(&Key::new("service.name"))
        .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    let mut own = vec![KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    if !is_named {
        own.push(KeyValue::new("service.name", "oarlock"));
    }
    if given.get(&Key::new("service.instance.id")).is_none() {
        own.push(KeyValue::new("service.instance.id", Uuid::new_v4().to_string()));
    }
    Resource::builder().with_attributes(own).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_added_to_the_address_of_a_collector_only() {
        let of = |base: &str| Config::of_collector(base, 0.5).unwrap().endpoint.to_string();
        assert_eq!(of("http://collector:4318"), "http://collector:4318/v1/traces");
        assert_eq!(of("https://collector/otlp/"), "https://collector/otlp/v1/traces");
        let whole = Config::new("http://collector:4318/x", 1.0).unwrap();
        assert_eq!(whole.endpoint.as_str(), "http://collector:4318/x");
    }

    #[test]
    fn an_endpoint_that_cannot_be_used_is_refused_without_its_password() {
        for (endpoint, wrong) in [
            ("collector:4318", "its scheme is collector"),
            ("grpc://collector:4317", "its scheme is grpc"),
            ("collector", "it is no URL"),
            ("http://", "it is no URL"),
            ("https://user:hunter2@collector", "at collector has a user or a password"),
        ] {
            let refused = Config::of_collector(endpoint, 1.0).unwrap_err().to_string();
            assert!(refused.contains(wrong) && !refused.contains("hunter2"), "{endpoint}: {refused}");
        }
        for ratio in [-0.1, 1.1, f64::NAN] {
            assert!(matches!(Config::new("http://a", ratio), Err(Error::Ratio(_))), "{ratio}");
        }
    }

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        let config = || Config::new("https://collector", 1.0).unwrap();
        for text in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n"] {
            assert!(matches!(config().trusting(text.as_bytes()), Err(Error::Authorities(_))), "{text}");
        }
    }
}
