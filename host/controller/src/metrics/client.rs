//! The counters of the host's requests to the API server, with the names of client-go.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use oarlock_informer::list_watch::transport::RequestMetrics;
use parking_lot::Mutex;
use prometheus_client::encoding::DescriptorEncoder;

use super::catalog;
use super::histogram::Histogram;

/// Counts the requests of one client. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct ClientMetrics {
    shared: Arc<ClientMetricsShared>,
}

#[derive(Debug, Default)]
struct ClientMetricsShared {
    /// The host of the API server.
    host: String,
    requests: Mutex<BTreeMap<(Verb, Option<u16>), u64>>,
    durations: [Histogram; VERBS.len()],
}

/// The position of a method in [`VERBS`].
type Verb = usize;

/// The methods of the API.
const VERBS: [Method; 6] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD];

// === impl ClientMetrics ===

impl ClientMetrics {
    /// Counts the requests to the API server at this URL.
    #[must_use]
    pub fn new(server: &str) -> Self {
        let uri: Option<http::Uri> = server.parse().ok();
        // Credentials in a URL are no part of the host.
        let host = uri.as_ref().and_then(http::Uri::authority).map(|it| {
            let authority = it.as_str();
            authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_owned()
        });
        let shared = ClientMetricsShared { host: host.unwrap_or_default(), ..ClientMetricsShared::default() };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let ClientMetricsShared { host, requests, durations } = &*self.shared;
        let code = |code: Option<u16>| code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let counts: Vec<_> = requests.lock().iter().map(|(key, n)| (*key, *n)).collect();
        let series = counts
            .into_iter()
            .map(|((verb, answer), n)| ([code(answer), VERBS[verb].to_string(), host.clone()], n as f64));
        catalog::REQUESTS.encode(encoder, series)?;
        let durations = VERBS.iter().zip(durations.iter().map(Histogram::view));
        let used = durations.filter(|(_, view)| view.count() > 0);
        let series = used.map(|(verb, view)| ([verb.to_string(), host.clone()], view));
        catalog::REQUEST_DURATION.encode_histograms(encoder, series)
    }
}

impl RequestMetrics for ClientMetrics {
    fn answered(&self, method: &Method, code: Option<StatusCode>, took: Duration) {
        let Some(verb) = VERBS.iter().position(|it| it == method) else { return };
        let ClientMetricsShared { host: _, requests, durations } = &*self.shared;
        *requests.lock().entry((verb, code.map(|code| code.as_u16()))).or_default() += 1;
        durations[verb].observe(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_that_of_the_url_without_credentials() {
        for (url, host) in [
            ("https://10.0.0.1:6443", "10.0.0.1:6443"),
            ("https://user:secret@api.example.com/base", "api.example.com"),
            ("https://[::1]:6443/", "[::1]:6443"),
            ("no URL", ""),
        ] {
            assert_eq!(ClientMetrics::new(url).shared.host, host, "{url}");
        }
    }
}
