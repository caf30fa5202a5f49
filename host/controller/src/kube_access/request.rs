//! Requests to the API server as a plugin's account.
//!
//! This is the only place that sets the user: every request carries `Impersonate-User`, and no header that a
//! guest chooses. Requests are never repeated here. A guest names resources by their parts. Each part is
//! checked, so that a path always leads to one object of one resource, or to its status or scale.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use oarlock_flow_control::TokenBucket;
use oarlock_informer::GroupVersionResource as Resource;
use oarlock_plugin::contract::{Error, GroupVersionResource, Namespaces, ObjectKey, ThrottledInfo};
use oarlock_plugin::guest::HostBytes;
use oarlock_plugin::guest::host_bytes::{Charge, Use};

use super::{failure, rate::Rate, secret_values};
use crate::{
    discovery::{self, Discovery, Served},
    identity::Identity,
    leadership::Leadership,
    metrics::Writes,
    traces::RequestTrace,
    write_settings::WriteSettings,
};

/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request waits for the plugin's own rate before it fails with `throttled`.
const RATE_PATIENCE: Duration = Duration::from_millis(250);

/// The longest response that is read. No object is longer; a page of a list may be.
const LONGEST_ANSWER: usize = 16 << 20;

/// Sends a plugin's requests.
pub(super) struct Requester {
    client: kube::Client,
    discovery: Arc<Discovery>,
    bucket: TokenBucket,
    /// The account to which bodies are charged while a request runs.
    pub(super) account: HostBytes,
    identity: Identity,
    /// The account that every request impersonates.
    impersonate: HeaderValue,
    writes: Writes,
    /// Whether writes are sent as dry runs.
    settings: WriteSettings,
    /// Decides whether this host may write.
    leadership: Leadership,
    /// The plugin's name, which is also its field manager.
    pub(super) plugin: Arc<str>,
}

/// One request, without its user.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// The path without the query.
    pub(super) path: String,
    /// Names and values, which are escaped here.
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
    /// The verb and object, for messages.
    pub(super) what: &'a str,
    /// Whether the body carries a uid or resourceVersion that must match.
    pub(super) preconditions: bool,
}

// === impl Requester ===

impl Requester {
    pub(super) fn new(
        client: kube::Client,
        discovery: Arc<Discovery>,
        plugin: Arc<str>,
        identity: Identity,
        rate: Rate,
        writes: Writes,
        leadership: Leadership,
    ) -> Self {
        Self {
            client,
            discovery,
            bucket: rate.bucket(),
            account: HostBytes::default(),
            // An account's names are DNS names, which are valid in any header. An invalid one is replaced by
            // a user that no rule allows to impersonate.
            impersonate: HeaderValue::try_from(identity.account().username())
                .unwrap_or_else(|_| HeaderValue::from_static("-")),
            identity,
            writes,
            settings: WriteSettings::default(),
            leadership,
            plugin,
        }
    }

    /// Sets what decides whether writes are sent as dry runs.
    pub(super) fn with_settings(self, settings: WriteSettings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the account to which bodies are charged while a request runs.
    pub(super) fn charged_to(self, account: HostBytes) -> Self {
        Self { account, ..self }
    }

    /// Sends a request and returns the body of a successful response.
    pub(super) async fn send(&self, call: Call<'_>) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        self.send_into(call, |chunk| {
            body.extend_from_slice(chunk);
            Ok(())
        })
        .await?;
        Ok(body)
    }

    /// Sends a request and passes the chunks of a successful response to `receive`. Returns the charge of the
    /// request and of its response.
    pub(super) async fn send_into(
        &self,
        call: Call<'_>,
        receive: impl FnMut(&[u8]) -> Result<(), Error> + Send,
    ) -> Result<Charge, Error> {
        let Call { method, path, query, content_type, body, what, preconditions } = call;
        // The API server would allow it, because it knows accounts only by name.
        if let Some(denial) = self.identity.denial() {
            return Err(Error::Forbidden(format!("{what}: {denial}")));
        }
        let is_write = method != Method::GET;
        let mut charge = self.charge(body.len())?;
        let trace = RequestTrace::begin(&method, content_type, &path);
        let body = Bytes::from(body);
        let secret = (is_write && secret_values::is_of_secrets(&path)).then(|| body.clone());
        let mut uri = path;
        let dry_run = (is_write && self.settings.dry_run()).then_some(("dryRun", "All"));
        for (idx, (name, value)) in query.iter().copied().chain(dry_run).enumerate() {
            uri.push(if idx == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            escape(value, &mut uri);
        }
        let request = Request::builder()
            .method(&method)
            .uri(uri)
            .header("Impersonate-User", self.impersonate.clone())
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content_type)
            .body(Body::from(body))
            .map_err(|error| Error::Invalid(format!("{what}: {error}")))?;

        let answer = async {
            let response =
                self.client.send(request).await.map_err(|error| failure::from_transport(what, &error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER);
            let mut status = Vec::new();
            if parts.status.is_success() {
                collect(what, body, &mut charge, is_write, receive).await?;
            } else {
                let mut keep = |chunk: &[u8]| {
                    status.extend_from_slice(chunk);
                    Ok(())
                };
                collect(what, body, &mut charge, is_write, &mut keep).await?;
            }
            Ok::<_, Error>((parts, status))
        };
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer);
        let answer = match is_write {
            true => self.fenced(what, answer).await?,
            false => answer.await,
        };
        let answer = answer.unwrap_or_else(|_| Err(failure::no_answer(what, REQUEST_TIMEOUT)));
        self.writes.count(&method, content_type, answer.as_ref().ok().map(|(parts, _)| parts.status));
        if let Some(trace) = trace {
            trace.end(answer.as_ref().ok().map(|(parts, _)| parts.status));
        }
        let (parts, body) = answer?;
        if parts.status.is_success() {
            return Ok(charge);
        }
        if parts.status == StatusCode::SWITCHING_PROTOCOLS || parts.status.is_redirection() {
            return Err(Error::Unavailable(format!("{what}: unexpected response {}", parts.status)));
        }
        let (status, headers) = (parts.status, &parts.headers);
        match failure::from_response(what, status, headers, &body, preconditions, secret.as_deref()) {
            // A proxy responded: the write may have happened.
            Error::Unavailable(message) if is_write && status.is_server_error() => {
                Err(Error::Timeout(message))
            }
            error => Err(error),
        }
    }

    /// Makes a write for as long as this host may write. The outcome of one that was sent is unknown.
    async fn fenced<T>(&self, what: &str, write: impl Future<Output = T>) -> Result<T, Error> {
        self.leadership.fenced(write).await.map_err(|error| {
            let message = format!("{what}: {error}");
            if error.may_be_sent { Error::Timeout(message) } else { Error::Unavailable(message) }
        })
    }

    /// Charges the bytes that a request keeps in the host while it runs.
    pub(super) fn charge(&self, bytes: usize) -> Result<Charge, Error> {
        self.account.charge(Use::Requests, bytes)
    }

    /// Returns the path of an object or of a part of it.
    pub(super) async fn object_path(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<String, Error> {
        let mut path = self.collection_path(target, &key.namespace).await?;
        segment("name", &key.name)?;
        path.push('/');
        escape(&key.name, &mut path);
        if !subresource.is_empty() {
            segment("subresource", subresource)?;
            path.push('/');
            path.push_str(subresource);
        }
        Ok(path)
    }

    /// Returns the path of a resource's objects in one namespace, or in all.
    pub(super) async fn list_path(
        &self,
        target: &GroupVersionResource,
        namespaces: &Namespaces,
    ) -> Result<String, Error> {
        match namespaces {
            Namespaces::One(namespace) => self.collection_path(target, namespace).await,
            Namespaces::All => self.path(target, None).await,
        }
    }

    /// Returns the path of a resource's objects in one namespace.
    pub(super) async fn collection_path(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
    ) -> Result<String, Error> {
        self.path(target, Some(namespace)).await
    }

    /// Returns the path of a resource's objects: of all of them without a namespace.
    async fn path(&self, target: &GroupVersionResource, namespace: Option<&str>) -> Result<String, Error> {
        let GroupVersionResource { group, version, plural } = target;
        if !group.is_empty() {
            segment("group", group)?;
        }
        segment("version", version)?;
        segment("resource", plural)?;
        // Every request builds one path. Discovery may need a request too, so the rate is checked before.
        self.wait_for_rate(plural).await?;
        let served = self.served(target).await?;
        let mut path =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match (served.namespaced, namespace) {
            (_, None) => {}
            (true, Some("")) => {
                return Err(Error::Invalid(format!("{plural} are namespaced, but no namespace was given")));
            }
            (false, Some("")) => {}
            (true, Some(namespace)) => {
                segment("namespace", namespace)?;
                path.push_str("/namespaces/");
                path.push_str(namespace);
            }
            (false, Some(namespace)) => {
                return Err(Error::Invalid(format!(
                    "{plural} do not live in namespaces, but `{namespace}` was given"
                )));
            }
        }
        path.push('/');
        path.push_str(plural);
        Ok(path)
    }

    async fn served(&self, target: &GroupVersionResource) -> Result<Served, Error> {
        let GroupVersionResource { group, version, plural } = target;
        let resource = Resource::new(group.as_str(), version.as_str(), plural.as_str());
        match self.discovery.resolve(&resource).await {
            Ok(Some(served)) => Ok(served),
            Ok(None) => Err(Error::NotFound(format!("the API server serves no resource {resource}"))),
            Err(error @ (discovery::Error::Unavailable { .. } | discovery::Error::Forbidden { .. })) => {
                Err(Error::Unavailable(error.to_string()))
            }
        }
    }

    async fn wait_for_rate(&self, what: &str) -> Result<(), Error> {
        match self.bucket.reserve(RATE_PATIENCE) {
            Ok(wait) if wait.is_zero() => Ok(()),
            Ok(wait) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Err(wait) => Err(Error::Throttled(ThrottledInfo {
                message: format!(
                    "{what}: plugin {} makes more requests than limits.requestsPerSecond allows",
                    self.plugin
                ),
                retry_after_ms: Some(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)),
            })),
        }
    }
}

/// Reads a response, and charges its bytes as they arrive.
async fn collect(
    what: &str,
    body: Limited<Body>,
    charge: &mut Charge,
    is_write: bool,
    mut receive: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut body = std::pin::pin!(body);
    while let Some(frame) = body.frame().await {
        // The request may have been carried out: only its response is incomplete.
        let broken = |why: &dyn std::fmt::Display| {
            Error::Timeout(format!("{what}: the response is incomplete: {why}"))
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) if !is_write && error.is::<LengthLimitError>() => {
                return Err(Error::LimitExceeded(format!(
                    "{what}: the response has more than {LONGEST_ANSWER} bytes; ask for less"
                )));
            }
            Err(error) => return Err(broken(&error)),
        };
        let Some(data) = frame.data_ref() else { continue };
        charge.grow(data.len()).map_err(|error| match error {
            Error::LimitExceeded(why) | Error::Throttled(ThrottledInfo { message: why, .. }) if is_write => {
                broken(&why)
            }
            Error::LimitExceeded(why) => Error::LimitExceeded(format!("{what}: {why}")),
            Error::Throttled(ThrottledInfo { message, retry_after_ms }) => {
                Error::Throttled(ThrottledInfo { message: format!("{what}: {message}"), retry_after_ms })
            }
            other => other,
        })?;
        receive(data)?;
    }
    Ok(())
}

/// Refuses a segment that could change the path, by the rule of Kubernetes for path segments.
fn segment(what: &str, text: &str) -> Result<(), Error> {
    let bad = text.is_empty()
        || text == "."
        || text == ".."
        || text
            .chars()
            .any(|it| matches!(it, '/' | '%' | '?' | '#' | '\\') || it.is_control() || it.is_whitespace());
    if bad {
        return Err(Error::Invalid(format!("{text:?} is not a valid {what}")));
    }
    Ok(())
}

/// Percent-encodes all characters but the unreserved ones and the colon, which names of RBAC objects contain.
fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                into.push(byte.into())
            }
            _ => into.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests;
