//! Artifacts in the server, and fetchers of it.

use std::path::Path;

use async_trait::async_trait;
use oarlock_component_source::{
    Config, Digest, Error, Fetched, Fetcher, OciSource, Policy, ReadError, ReadReferenced, Source,
};

use super::server::{Answer, Server};

/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Returns the bytes of a component: they begin like one.
pub(crate) fn component(text: &str) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0", text.as_bytes()].concat()
}

/// Puts a component under a tag of the repository `team/mirror`, as `wkg` and ORAS lay it out. Returns the
/// digest of its manifest.
pub(crate) fn put(server: &Server, tag: &str, component: &[u8]) -> Digest {
    let digest = Digest::of(component);
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{{"mediaType":"application/vnd.wasm.config.v0+json","digest":"{}","size":2}},"layers":[{{"mediaType":"application/wasm","digest":"{digest}","size":{}}}]}}"#,
        Digest::of(b"{}"),
        component.len()
    );
    blob(server, component);
    put_manifest(server, tag, manifest.as_bytes(), MANIFEST)
}

pub(crate) fn blob(server: &Server, content: &[u8]) -> Digest {
    let digest = Digest::of(content);
    server
        .answer(&format!("/v2/team/mirror/blobs/{digest}"), Answer::Full(200, Vec::new(), content.to_vec()));
    digest
}

pub(crate) fn put_manifest(server: &Server, tag: &str, manifest: &[u8], media_type: &str) -> Digest {
    let digest = Digest::of(manifest);
    let headers =
        vec![("content-type", media_type.to_owned()), ("docker-content-digest", digest.to_string())];
    for name in [tag.to_owned(), digest.to_string()] {
        let answer = Answer::Full(200, headers.clone(), manifest.to_vec());
        server.answer(&format!("/v2/team/mirror/manifests/{name}"), answer);
    }
    digest
}

/// Returns a fetcher with a cache in this folder, whose policy has these lines.
pub(crate) fn fetcher(folder: &Path, policy: &str) -> Fetcher {
    let file = folder.join("policy.yaml");
    std::fs::write(&file, policy).unwrap();
    let policy = Policy::read(&file).unwrap_or_else(|error| panic!("{error}"));
    Fetcher::new(Config { cache: folder.join("cache"), cache_bytes: 1 << 20, files: None, policy }).unwrap()
}

/// Returns the lines of a policy that allow a server on loopback, over plain HTTP.
pub(crate) fn loopback(server: &Server) -> String {
    format!("privateAddresses: [127.0.0.0/8]\nplainHttp: ['{}']\n", server.address)
}

pub(crate) fn oci(server: &Server, name: &str) -> Source {
    let reference = format!("{}/team/mirror{name}", server.address);
    let oci = OciSource { reference, pull_secret_name: None, poll_seconds: 300 };
    Source { oci: Some(oci), ..Source::default() }
}

/// Fetches as an account without any right.
pub(crate) async fn fetch(fetcher: &Fetcher, source: &Source) -> Result<Fetched, Error> {
    fetcher.fetch(source, &Nothing).await
}

pub(crate) fn content(fetched: &Fetched) -> Vec<u8> {
    std::fs::read(fetched.component.path()).unwrap()
}

/// An account that may read nothing.
pub(crate) struct Nothing;

#[async_trait]
impl ReadReferenced for Nothing {
    async fn config_map_key(&self, _: &str, _: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::Forbidden("no right".to_owned()))
    }

    async fn secret_key(&self, _: &str, _: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::NotFound)
    }

    async fn pull_secret(&self, _: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::Forbidden("no right".to_owned()))
    }
}

/// An account of this tenant, without any right.
pub(crate) struct Tenant(pub(crate) &'static str);

#[async_trait]
impl ReadReferenced for Tenant {
    async fn config_map_key(&self, name: &str, key: &str) -> Result<Vec<u8>, ReadError> {
        Nothing.config_map_key(name, key).await
    }

    async fn secret_key(&self, name: &str, key: &str) -> Result<Vec<u8>, ReadError> {
        Nothing.secret_key(name, key).await
    }

    async fn pull_secret(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        Nothing.pull_secret(name).await
    }

    fn tenant(&self) -> &str {
        self.0
    }
}

/// An account that may read this one Secret, whatever its name.
pub(crate) struct Secret(pub(crate) Vec<u8>);

#[async_trait]
impl ReadReferenced for Secret {
    async fn config_map_key(&self, _: &str, _: &str) -> Result<Vec<u8>, ReadError> {
        Ok(self.0.clone())
    }

    async fn secret_key(&self, _: &str, _: &str) -> Result<Vec<u8>, ReadError> {
        Ok(self.0.clone())
    }

    async fn pull_secret(&self, _: &str) -> Result<Vec<u8>, ReadError> {
        Ok(self.0.clone())
    }
}
