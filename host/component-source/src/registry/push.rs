//! Pushes a component as a Wasm OCI artifact: the layout of the CNCF's guidance, which wkg, ORAS and
//! containerd read.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use url::Url;

use super::{Keyring, Place, Registry, refused};
use crate::{
    digest::Digest,
    error::{Error, Reason},
    http::Http,
    policy::Policy,
    reference::Reference,
};

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
const COMPONENT_TYPE: &str = "application/wasm";
/// What a push may do, in the words of the token authentication.
const ACTIONS: &str = "pull,push";

/// What is pushed.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// The component.
    pub component: Bytes,
    /// The time of creation in RFC 3339. To push the same bytes again, give the same time.
    pub created: String,
    /// The interfaces that the component imports.
    pub imports: Vec<String>,
    /// The interfaces that the component exports.
    pub exports: Vec<String>,
    /// The annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// What was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The digest of the manifest.
    pub manifest: Digest,
    /// The digest of the component.
    pub component: Digest,
}

/// Pushes artifacts.
#[derive(Debug)]
pub struct Publisher {
    registry: Registry,
}

// === impl Artifact ===

impl Artifact {
    /// Returns the configuration and the manifest.
    fn documents(&self) -> (Bytes, Bytes) {
        let Self { component, created, imports, exports, annotations } = self;
        let digest = Digest::of(component);
        let config = json!({
            "created": created,
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [digest],
            "component": { "exports": exports, "imports": imports },
        });
        let config = Bytes::from(config.to_string());
        let descriptor = |media_type: &str, content: &Bytes| json!({ "mediaType": media_type, "digest": Digest::of(content), "size": content.len() });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor(CONFIG_TYPE, &config),
            "layers": [descriptor(COMPONENT_TYPE, component)],
            "annotations": annotations,
        });
        (config, Bytes::from(manifest.to_string()))
    }
}

// === impl Publisher ===

impl Publisher {
    /// Reads the certificate authorities of the system. Blocks.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        let policy = Arc::new(policy);
        let http = Http::new(Arc::clone(&policy))?;
        Ok(Self { registry: Registry::new(http, policy) })
    }

    /// Pushes an artifact under the tag of the reference. What the registry has already is not sent again.
    pub async fn push(
        &self,
        reference: &Reference,
        keyring: &Keyring,
        artifact: &Artifact,
    ) -> Result<Pushed, Error> {
        let Some(tag) = reference.tag().filter(|_| reference.digest().is_none()) else {
            return Err(Error::new(Reason::Invalid, format!("{reference} does not end with a tag"))
                .hint("write REGISTRY/REPOSITORY:TAG; the digest follows from the content"));
        };
        let place = self.registry.place(reference.registry(), reference.repository().to_owned(), keyring)?;
        let (config, manifest) = artifact.documents();
        self.registry.push_blob(&place, &artifact.component).await?;
        self.registry.push_blob(&place, &config).await?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MANIFEST_TYPE));
        let (digest, url) = (Digest::of(&manifest), place.url(&format!("manifests/{tag}"))?);
        let mut response = self.registry.send(&place, Method::PUT, url, headers, manifest, ACTIONS).await?;
        if response.status != StatusCode::CREATED {
            return Err(refused(&mut response, &place, &place.name_of(tag)).await);
        }
        Ok(Pushed { manifest: digest, component: Digest::of(&artifact.component) })
    }
}

// === impl Registry ===

impl Registry {
    async fn push_blob(&self, place: &Place, content: &Bytes) -> Result<(), Error> {
        let digest = Digest::of(content);
        let url = place.url(&format!("blobs/{digest}"))?;
        let found = self.send(place, Method::HEAD, url, HeaderMap::new(), Bytes::new(), ACTIONS).await?;
        if found.status == StatusCode::OK {
            return Ok(());
        }
        let url = place.url("blobs/uploads/")?;
        let mut begun = self.send(place, Method::POST, url, HeaderMap::new(), Bytes::new(), ACTIONS).await?;
        if begun.status != StatusCode::ACCEPTED {
            return Err(refused(&mut begun, place, &format!("an upload to {}", place.repository)).await);
        }
        let location = begun.header(header::LOCATION).and_then(|it| begun.url.join(it).ok());
        let Some(mut location): Option<Url> = location else {
            return Err(Error::new(
                Reason::Unavailable,
                format!("{} names no place for the upload", place.host()),
            )
            .hint("check the registry or server; the host tries again"));
        };
        location.query_pairs_mut().append_pair("digest", &digest.to_string());
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        let mut ended = self.send(place, Method::PUT, location, headers, content.clone(), ACTIONS).await?;
        match ended.status {
            StatusCode::CREATED => Ok(()),
            _ => Err(refused(&mut ended, place, &format!("blob {digest}")).await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_guidance() {
        let artifact = Artifact {
            component: Bytes::from_static(b"\0asm\x0d\0\x01\0"),
            created: "1970-01-01T00:00:00Z".to_owned(),
            imports: vec!["oarlock:plugin/log".to_owned()],
            exports: vec!["oarlock:plugin/handler".to_owned()],
            annotations: BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1.0".to_owned())]),
        };
        let (config, manifest) = artifact.documents();
        let pretty =
            |bytes: &Bytes| format!("{:#}", serde_json::from_slice::<serde_json::Value>(bytes).unwrap());
        insta::assert_snapshot!(pretty(&config), @r#"
{
  "created": "1970-01-01T00:00:00Z",
  "architecture": "wasm",
  "os": "wasip2",
  "layerDigests": [
    "sha256:24eaf3439a60c96764c4f2c92a0a81b52bd4fe5d5b91f090184a0f6486b1bf29"
  ],
  "component": {
    "exports": [
      "oarlock:plugin/handler"
    ],
    "imports": [
      "oarlock:plugin/log"
    ]
  }
}
"#);
        insta::assert_snapshot!(pretty(&manifest), @r#"
{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.manifest.v1+json",
  "config": {
    "mediaType": "application/vnd.wasm.config.v0+json",
    "digest": "sha256:7e85e98aaa0a25fe2325c861ee3ff33cff7af63d9653e76c6f1fd6058c9472f6",
    "size": 245
  },
  "layers": [
    {
      "mediaType": "application/wasm",
      "digest": "sha256:24eaf3439a60c96764c4f2c92a0a81b52bd4fe5d5b91f090184a0f6486b1bf29",
      "size": 8
    }
  ],
  "annotations": {
    "org.opencontainers.image.version": "1.0"
  }
}
"#);
        assert_eq!(artifact.documents(), (config, manifest), "the same bytes each time");
    }
}
