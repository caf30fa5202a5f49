//! Registries: the parts of the OCI distribution specification that fetching and pushing needs.

mod credentials;
mod manifest;
mod push;
mod token;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use url::Url;

use self::credentials::Credentials;
pub(crate) use self::manifest::{Descriptor, Manifest};
use self::token::Token;
pub use self::{
    credentials::Keyring,
    push::{Artifact, Publisher, Pushed},
};
use crate::{
    digest::Digest,
    error::{Error, Reason},
    http::{Http, Response, host, unexpected},
    policy::Policy,
    reference::Reference,
    signature::{self, Evidence},
};

/// The longest manifest, as registries bound it.
const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// The header with the digest of a manifest.
const CONTENT_DIGEST: &str = "docker-content-digest";
/// What a request for a manifest accepts.
const MANIFEST_TYPES: HeaderValue = HeaderValue::from_static(
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json",
);

/// Asks registries.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    http: Http,
    policy: Arc<Policy>,
    tokens: Arc<Mutex<HashMap<String, Token>>>,
}

/// A repository at a registry or mirror, and the credentials for it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Scheme and host.
    base: Url,
    repository: String,
    credentials: Option<Credentials>,
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(http: Http, policy: Arc<Policy>) -> Self {
        Self { http, policy, tokens: Arc::default() }
    }

    /// Returns the places of a reference: the mirrors, then the registry itself.
    pub(crate) fn places(&self, reference: &Reference, keyring: &Keyring) -> Result<Vec<Place>, Error> {
        let mut places = Vec::new();
        for mirror in self.policy.mirrors(reference.registry()) {
            let (host, path) = mirror.split_once('/').unwrap_or((mirror, ""));
            let separator = if path.is_empty() { "" } else { "/" };
            let repository = format!("{}{separator}{}", path.trim_matches('/'), reference.repository());
            places.push(self.place(host, repository, keyring)?);
        }
        places.push(self.place(reference.registry(), reference.repository().to_owned(), keyring)?);
        Ok(places)
    }

    fn place(&self, registry: &str, repository: String, keyring: &Keyring) -> Result<Place, Error> {
        let scheme = if self.policy.is_plain_http(registry) { "http" } else { "https" };
        // Docker Hub serves its registry under another name.
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let base = Url::parse(&format!("{scheme}://{host}/"))
            .map_err(|error| Error::new(Reason::Invalid, format!("registry {registry}: {error}")))?;
        let credentials = keyring.find(registry, &repository);
        Ok(Place { base, repository, credentials })
    }

    /// Returns the digest that a tag has now; none if the registry does not say it without the manifest.
    pub(crate) async fn digest(&self, place: &Place, tag: &str) -> Result<Option<Digest>, Error> {
        let path = format!("manifests/{tag}");
        let response = self.get(place, Method::HEAD, &path, Some(MANIFEST_TYPES)).await?;
        match response.status {
            StatusCode::OK => Ok(response.header(CONTENT_DIGEST).and_then(|it| it.parse().ok())),
            // Some registries do not answer HEAD.
            StatusCode::METHOD_NOT_ALLOWED => Ok(None),
            status => Err(unexpected(&place.host(), status, &place.name_of(tag))),
        }
    }

    /// Returns a manifest, by tag or digest, with the digest of its bytes. If it is named by digest, or the
    /// registry says a digest, that one is compared.
    pub(crate) async fn manifest(&self, place: &Place, name: &str) -> Result<(Digest, Manifest), Error> {
        let path = format!("manifests/{name}");
        let mut response = self.get(place, Method::GET, &path, Some(MANIFEST_TYPES)).await?;
        if response.status != StatusCode::OK {
            return Err(refused(&mut response, place, &place.name_of(name)).await);
        }
        if response.is_page() {
            return Err(not_a_registry(place));
        }
        let said = response.header(CONTENT_DIGEST).map(str::to_owned);
        let bytes = response.bytes(MAX_MANIFEST_BYTES).await?;
        let digest = Digest::of(&bytes);
        for wanted in [Some(name.to_owned()).filter(|it| it.contains(':')), said].into_iter().flatten() {
            // Digests of other algorithms are not compared, unless they are asked for.
            if wanted.parse() != Ok(digest) && (wanted.starts_with("sha256:") || wanted == name) {
                return Err(Error::new(
                    Reason::DigestMismatch,
                    format!("{}: the manifest has the digest {digest}, not {wanted}", place.name_of(name)),
                )
                .hint("check the registry and the proxies in front of it: what they answer is not what they say"));
            }
        }
        let manifest = Manifest::parse(&bytes).map_err(|error| {
            if bytes.first() == Some(&b'<') {
                not_a_registry(place)
            } else {
                error.context(place.name_of(name))
            }
        })?;
        Ok((digest, manifest))
    }

    /// Returns the answer with a blob, whose bytes are not compared with its digest yet.
    pub(crate) async fn blob(&self, place: &Place, digest: Digest) -> Result<Response, Error> {
        let mut response = self.get(place, Method::GET, &format!("blobs/{digest}"), None).await?;
        match response.status {
            StatusCode::OK if response.is_page() => Err(not_a_registry(place)),
            StatusCode::OK => Ok(response),
            _ => Err(refused(&mut response, place, &format!("blob {digest}")).await),
        }
    }

    /// Returns a short blob.
    async fn short_blob(&self, place: &Place, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let digest = descriptor.digest()?;
        let bytes = self.blob(place, digest).await?.bytes(signature::MAX_BYTES).await?;
        if Digest::of(&bytes) != digest {
            return Err(Error::new(Reason::DigestMismatch, format!("blob {digest} has other bytes")));
        }
        Ok(bytes)
    }

    /// Returns the signatures of a manifest, of both forms, and why the others could not be read. There may
    /// be none.
    pub(crate) async fn evidence(
        &self,
        place: &Place,
        manifest: Digest,
    ) -> Result<(Vec<Evidence>, Vec<Error>), Error> {
        let (mut evidence, mut unread) = (Vec::new(), Vec::new());
        let hex = manifest.to_hex();
        if let Some(signatures) = self.optional_manifest(place, &format!("sha256-{hex}.sig")).await? {
            for layer in signatures.layers.iter().take(signature::MAX_SIGNATURES) {
                let signature = layer.annotations.get(signature::SIGNATURE_ANNOTATION);
                let Some(signature) = signature.filter(|_| layer.media_type == signature::SIMPLE_SIGNING)
                else {
                    continue;
                };
                match self.short_blob(place, layer).await {
                    Ok(payload) => evidence.push(Evidence::of_simple_signing(&payload, signature)),
                    Err(error) => unread.push(error),
                }
            }
        }
        let mut n_bundles = 0;
        for referrer in self.referrers(place, manifest).await?.iter().take(signature::MAX_SIGNATURES) {
            let layers = match self.referrer_layers(place, referrer).await {
                Ok(layers) => layers,
                Err(error) => {
                    unread.push(error);
                    continue;
                }
            };
            for layer in layers.iter().filter(|it| it.media_type.starts_with(signature::BUNDLE)) {
                if n_bundles == signature::MAX_SIGNATURES {
                    return Ok((evidence, unread));
                }
                n_bundles += 1;
                match self.short_blob(place, layer).await {
                    Ok(bundle) => evidence.push(Evidence::of_bundle(bundle)),
                    Err(error) => unread.push(error),
                }
            }
        }
        Ok((evidence, unread))
    }

    async fn referrer_layers(&self, place: &Place, referrer: &Descriptor) -> Result<Vec<Descriptor>, Error> {
        let (_, manifest) = self.manifest(place, &referrer.digest()?.to_string()).await?;
        Ok(manifest.layers)
    }

    /// Returns the bundles that refer to a manifest: from the referrers API, or else from the tag that stands
    /// for it.
    async fn referrers(&self, place: &Place, manifest: Digest) -> Result<Vec<Descriptor>, Error> {
        let index = "application/vnd.oci.image.index.v1+json";
        let accept = HeaderValue::from_static(index);
        let mut response =
            self.get(place, Method::GET, &format!("referrers/{manifest}"), Some(accept)).await?;
        let found = match response.status {
            StatusCode::OK if response.header(header::CONTENT_TYPE) == Some(index) => {
                Some(Manifest::parse(&response.bytes(MAX_MANIFEST_BYTES).await?)?)
            }
            _ => self.optional_manifest(place, &format!("sha256-{}", manifest.to_hex())).await?,
        };
        let mut referrers = found.map(|it| it.manifests).unwrap_or_default();
        // Attestations, such as an SBOM, are bundles too.
        let is_signature = |it: &Descriptor| {
            let predicate = it.annotations.get(signature::PREDICATE_ANNOTATION);
            predicate.is_none_or(|it| it == signature::SIGN_PREDICATE)
        };
        referrers.retain(|it| it.artifact_type.starts_with(signature::BUNDLE) && is_signature(it));
        Ok(referrers)
    }

    async fn optional_manifest(&self, place: &Place, name: &str) -> Result<Option<Manifest>, Error> {
        match self.manifest(place, name).await {
            Ok((_, manifest)) => Ok(Some(manifest)),
            Err(error) if error.reason() == Reason::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn get(
        &self,
        place: &Place,
        method: Method,
        path: &str,
        accept: Option<HeaderValue>,
    ) -> Result<Response, Error> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, accept);
        }
        let url = place.url(path)?;
        self.send(place, method, url, headers, Bytes::new(), "pull").await
    }

    /// Sends a request with the token or the credentials for the place. If the registry asks for a token,
    /// gets one, and sends the request again.
    async fn send(
        &self,
        place: &Place,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        body: Bytes,
        actions: &str,
    ) -> Result<Response, Error> {
        let key = place.token_key(actions);
        let is_ours = url.origin() == place.base.origin();
        let known = self.tokens.lock().get(&key).filter(|token| is_ours && !token.is_expired()).cloned();
        if let Some(token) = &known {
            headers.insert(header::AUTHORIZATION, token.value());
        }
        let response = self.http.send(method.clone(), url.clone(), headers.clone(), body.clone()).await?;
        if response.status != StatusCode::UNAUTHORIZED || response.url.origin() != place.base.origin() {
            return Ok(response);
        }
        let Some(token) = token::get(&self.http, place, &response, actions).await? else {
            return Ok(response);
        };
        headers.insert(header::AUTHORIZATION, token.value());
        {
            let mut tokens = self.tokens.lock();
            tokens.retain(|_, token| !token.is_expired());
            tokens.insert(key, token);
        }
        self.http.send(method, url, headers, body).await
    }
}

// === impl Place ===

impl Place {
    /// Returns the registry.
    pub(crate) fn host(&self) -> String {
        host(&self.base)
    }

    fn name_of(&self, manifest: &str) -> String {
        let separator = if manifest.contains(':') { '@' } else { ':' };
        format!("{}/{}{separator}{manifest}", self.host(), self.repository)
    }

    fn url(&self, path: &str) -> Result<Url, Error> {
        let url = self.base.join(&format!("v2/{}/{path}", self.repository));
        url.map_err(|error| {
            Error::new(Reason::Invalid, format!("{}/{}: {error}", self.host(), self.repository))
        })
    }

    fn token_key(&self, actions: &str) -> String {
        let credentials = self.credentials.as_ref().map(Credentials::fingerprint);
        format!("{} {} {actions} {credentials:?}", self.base, self.repository)
    }
}

fn not_a_registry(place: &Place) -> Error {
    Error::new(
        Reason::Unavailable,
        format!("{} answers with an HTML page, not like a registry", place.host()),
    )
    .hint("check the name of the registry, and whether a proxy or a login page is in front of it")
}

/// Returns the error of an answer that is not what was asked for, with the message of the registry.
async fn refused(response: &mut Response, place: &Place, what: &str) -> Error {
    let error = unexpected(&place.host(), response.status, what);
    let Ok(body) = response.bytes(16 << 10).await else { return error };
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(&body) else { return error };
    let said = body.pointer("/errors/0/message").and_then(serde_json::Value::as_str).unwrap_or_default();
    // A registry may quote what it was sent.
    let said = place.credentials.as_ref().map_or(said.to_owned(), |it| it.hide_in(said));
    let said: String = said.chars().filter(|it| !it.is_control()).take(200).collect();
    if said.is_empty() { error } else { error.followed_by(&said) }
}
