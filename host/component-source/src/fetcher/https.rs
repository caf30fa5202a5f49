//! Files of HTTPS servers.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use super::{Fetched, Fetcher, Verified};
use crate::{
    digest::Digest,
    error::{Error, Reason},
    http::{host, unexpected},
    records::{Record, RecordKey},
    source::HttpsSource,
};

impl Fetcher {
    pub(super) async fn https(&self, source: &HttpsSource, tenant: &str) -> Result<Fetched, Error> {
        let HttpsSource { url: text, sha256 } = source;
        let invalid = |message: String| Error::new(Reason::Invalid, message);
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.host().is_some())
            .ok_or_else(|| {
                invalid(format!("url {text:.200?} is not a URL of HTTPS")).hint("write https://HOST/PATH")
            })?;
        let digest = Digest::from_hex(sha256).ok_or_else(|| {
            invalid(format!("sha256 {sha256:.100?} is not 64 hexadecimal digits in lower case"))
                .hint("take what `sha256sum FILE` prints")
        })?;
        let name = format!("{}{}", host(&url), url.path());
        self.shared.policy.check_allowed(&name)?;
        if self.shared.policy.signers_of(&name).is_some() {
            return Err(Error::new(
                Reason::NotSigned,
                format!("the policy of this host requires a signature for {name}"),
            )
            .hint(
                "push the component to a registry and sign it there: a file of a server has no signature",
            ));
        }
        let key = RecordKey::new(&format!("{url} {digest}"), b"");
        if let Some(last) = self.last(&key, &name).await {
            return Ok(last.fetched);
        }
        self.or_last(&key, &name, self.ask_server(url, &name, digest, &key, tenant)).await
    }

    async fn ask_server(
        &self,
        url: Url,
        name: &str,
        digest: Digest,
        key: &RecordKey,
        tenant: &str,
    ) -> Result<Fetched, Error> {
        let host = host(&url);
        let request = async {
            let response = self.shared.http.send(Method::GET, url, HeaderMap::new(), Bytes::new()).await?;
            match response.status {
                StatusCode::OK if response.is_page() => Err(Error::new(
                    Reason::NotAComponent,
                    format!("{host} answers with an HTML page, not with a component"),
                )
                .hint("name the file itself, not the page that shows it")),
                StatusCode::OK => Ok(response),
                status => Err(unexpected(&host, status, name)),
            }
        };
        let record =
            Record { source: name.to_owned(), component: digest, manifest: None, evidence: Vec::new() };
        let component = self.component(key, tenant, record, None, request).await?;
        Ok(Fetched { component, resolved: None, verified: Verified::NotRequired, stale: None })
    }
}
