//! Manifests and indices, as wkg, ORAS and `oarlock plugin push` write them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    digest::Digest,
    error::{Error, Reason},
};

/// The media type of a layer that is a component: of the Wasm OCI artifact, and of older tools.
const COMPONENT_TYPES: [&str; 2] = ["application/wasm", "application/vnd.wasm.content.layer.v1+wasm"];

/// A manifest or an index: what is absent is empty.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    schema_version: u32,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(crate) manifests: Vec<Descriptor>,
}

/// What a manifest or index refers to.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    #[serde(default)]
    pub(crate) artifact_type: String,
    digest: String,
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
}

// === impl Manifest ===

impl Manifest {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let refused = |why: String| {
            Error::new(Reason::NotAComponent, format!("the manifest cannot be read: {why}"))
                .hint("push the component again with `oarlock plugin push`")
        };
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
        match manifest.schema_version {
            2 => Ok(manifest),
            version => Err(refused(format!("it has schema version {version}, and only 2 is read"))),
        }
    }

    /// Returns the manifest of an index that is for WebAssembly; none if this is no index.
    pub(crate) fn of_index(&self) -> Result<Option<&Descriptor>, Error> {
        let is_wasm = |it: &&Descriptor| it.platform.as_ref().is_some_and(|it| it.architecture == "wasm");
        match self.manifests.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            many => many.iter().find(is_wasm).map(Some).ok_or_else(|| {
                Error::new(Reason::NotAComponent, "the index has no manifest for the architecture wasm")
                    .hint("name the manifest of the component by its digest, or push it alone")
            }),
        }
    }

    /// Returns the layer with the component.
    pub(crate) fn component(&self) -> Result<&Descriptor, Error> {
        let components: Vec<_> =
            self.layers.iter().filter(|it| COMPONENT_TYPES.contains(&it.media_type.as_str())).collect();
        match components.as_slice() {
            [component] => Ok(component),
            [] => {
                let found: Vec<_> =
                    self.layers.iter().take(3).map(|it| format!("{:.100}", it.media_type)).collect();
                let found = if found.is_empty() { "no layer".to_owned() } else { found.join(", ") };
                let message = format!("the artifact has no layer application/wasm; it has {found}");
                Err(Error::new(Reason::NotAComponent, message)
                    .hint("push the component with `oarlock plugin push`, wkg or ORAS; a container image is no component"))
            }
            many => {
                let message = format!(
                    "the artifact has {} layers application/wasm, and a component is one",
                    many.len()
                );
                Err(Error::new(Reason::NotAComponent, message)
                    .hint("push each component as an artifact of its own"))
            }
        }
    }
}

// === impl Descriptor ===

impl Descriptor {
    pub(crate) fn digest(&self) -> Result<Digest, Error> {
        self.digest.parse().map_err(|()| {
            Error::new(
                Reason::NotAComponent,
                format!("the digest {:.100?} is not one of SHA-256", self.digest),
            )
            .hint("push the component again with `oarlock plugin push`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn manifest(layers: &str) -> Manifest {
        let text = format!(r#"{{"schemaVersion":2,"config":{{"mediaType":"x"}},"layers":[{layers}]}}"#);
        Manifest::parse(text.as_bytes()).unwrap()
    }

    fn layer(media_type: &str) -> String {
        format!(r#"{{"mediaType":"{media_type}","digest":"sha256:{HEX}","size":8}}"#)
    }

    #[test]
    fn the_component_is_the_only_layer_with_its_media_type() {
        let wasm = layer("application/wasm");
        assert_eq!(manifest(&wasm).component().unwrap().digest().unwrap().to_hex(), HEX);
        let with_others = format!("{},{wasm},{}", layer("text/markdown"), layer("application/json"));
        assert_eq!(manifest(&with_others).component().unwrap().size, 8);
        let refusal = |layers: &str| manifest(layers).component().unwrap_err().to_string();
        insta::assert_snapshot!(
            refusal(&layer("application/vnd.oci.image.layer.v1.tar+gzip")),
            @"the artifact has no layer application/wasm; it has application/vnd.oci.image.layer.v1.tar+gzip"
        );
        insta::assert_snapshot!(refusal(""), @"the artifact has no layer application/wasm; it has no layer");
        insta::assert_snapshot!(
            refusal(&format!("{wasm},{wasm}")),
            @"the artifact has 2 layers application/wasm, and a component is one"
        );
    }

    #[test]
    fn the_manifest_for_wasm_is_chosen_from_an_index() {
        let entry = |architecture: &str, size: u32| {
            format!(
                r#"{{"digest":"sha256:{HEX}","size":{size},"platform":{{"architecture":"{architecture}","os":"x"}}}}"#
            )
        };
        let index = |entries: &str| {
            Manifest::parse(format!(r#"{{"schemaVersion":2,"manifests":[{entries}]}}"#).as_bytes())
        };
        let size = |entries: &str| {
            index(entries).unwrap().of_index().map(|it| it.map(|it| it.size)).map_err(|it| it.reason())
        };
        assert_eq!(size(""), Ok(None));
        assert_eq!(size(&entry("amd64", 1)), Ok(Some(1)), "the only one");
        assert_eq!(size(&format!("{},{}", entry("amd64", 1), entry("wasm", 2))), Ok(Some(2)));
        assert_eq!(size(&format!("{},{}", entry("amd64", 1), entry("arm64", 2))), Err(Reason::NotAComponent));
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        for text in ["", "{}", "[]", r#"{"schemaVersion":1}"#, r#"{"schemaVersion":2,"layers":[{}]}"#] {
            assert_eq!(
                Manifest::parse(text.as_bytes()).unwrap_err().reason(),
                Reason::NotAComponent,
                "{text}"
            );
        }
        let deep = format!(r#"{{"schemaVersion":2,"x":{}"#, "[".repeat(1 << 20));
        assert!(Manifest::parse(deep.as_bytes()).is_err());
    }
}
