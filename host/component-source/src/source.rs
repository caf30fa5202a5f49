//! The source of a plugin's component, as it is written.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Reason};

/// How often a tag is asked for, if the source does not say it.
const DEFAULT_POLL_SECONDS: u32 = 300;
/// The shortest time between two questions for a tag.
const MIN_POLL_SECONDS: u32 = 10;
/// The longest.
const MAX_POLL_SECONDS: u32 = 86_400;

/// Where the component of a plugin comes from. Exactly one member is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// An artifact in an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OciSource")]
    pub oci: Option<OciSource>,
    /// A file of an HTTPS server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HttpsSource")]
    pub https: Option<HttpsSource>,
    /// A key of a ConfigMap, in `binaryData` or `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "KeySource")]
    pub config_map: Option<KeySource>,
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "KeySource")]
    pub secret: Option<KeySource>,
    /// A file below the folder that the host was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FileSource")]
    pub file: Option<FileSource>,
}

/// An artifact in an OCI registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciSource {
    /// The reference: registry, repository, and a tag, a digest, or both. With a digest, the tag is not asked
    /// for.
    #[schemars(length(min = 3, max = 512), example = "ghcr.io/team-a/mirror:1.4.0")]
    pub reference: String,
    /// The Secret of type `kubernetes.io/dockerconfigjson` with the credentials for the registry. It is read
    /// as the plugin's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub pull_secret_name: Option<String>,
    /// How often the registry is asked which manifest the tag names, in seconds. A reference with a digest is
    /// not asked for again.
    #[serde(default = "default_poll_seconds")]
    #[schemars(range(min = 10, max = 86_400))]
    pub poll_seconds: u32,
}

/// A file of an HTTPS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpsSource {
    /// The URL, with scheme `https`, and without user and password.
    #[schemars(length(min = 9, max = 2048))]
    pub url: String,
    /// The SHA-256 digest of the component's bytes, as 64 hexadecimal digits.
    #[schemars(length(min = 64, max = 64))]
    pub sha256: String,
}

/// A key of a ConfigMap or of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeySource {
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A file of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSource {
    /// The path, relative to the folder that the host was started with. It has no `..`, and no link leads
    /// out of that folder.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
}

/// The member of a [`Source`] that is set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Member<'a> {
    Oci(&'a OciSource),
    Https(&'a HttpsSource),
    ConfigMap(&'a KeySource),
    Secret(&'a KeySource),
    File(&'a FileSource),
}

fn default_poll_seconds() -> u32 {
    DEFAULT_POLL_SECONDS
}

// === impl Source ===

impl Source {
    /// Returns when the source has to be fetched again to see a change of it; none if it cannot change.
    ///
    /// ConfigMaps and Secrets may be watched by the caller instead.
    #[must_use]
    pub fn poll_interval(&self) -> Option<Duration> {
        let seconds = match self.member().ok()? {
            Member::Https(_) => return None,
            Member::Oci(oci) if oci.reference.contains('@') => return None,
            Member::Oci(oci) => oci.poll_seconds.clamp(MIN_POLL_SECONDS, MAX_POLL_SECONDS),
            Member::ConfigMap(_) | Member::Secret(_) | Member::File(_) => 30,
        };
        Some(Duration::from_secs(seconds.into()))
    }

    pub(crate) fn member(&self) -> Result<Member<'_>, Error> {
        let Self { oci, https, config_map, secret, file } = self;
        let members = [
            oci.as_ref().map(Member::Oci),
            https.as_ref().map(Member::Https),
            config_map.as_ref().map(Member::ConfigMap),
            secret.as_ref().map(Member::Secret),
            file.as_ref().map(Member::File),
        ];
        let mut set = members.into_iter().flatten();
        match (set.next(), set.next()) {
            (Some(member), None) => Ok(member),
            (first, _) => {
                let n = if first.is_some() { "more than one member" } else { "no member" };
                Err(Error::new(Reason::Invalid, format!("source has {n}"))
                    .hint("set exactly one of oci, https, configMap, secret and file"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Source, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn exactly_one_member_is_set() {
        let refusal = |text| parse(text).unwrap().member().unwrap_err().to_string();
        assert_eq!(refusal("{}"), "source has no member");
        let two = r#"{"file":{"path":"a.wasm"},"secret":{"name":"a","key":"b"}}"#;
        assert_eq!(refusal(two), "source has more than one member");
        let file = parse(r#"{"file":{"path":"a.wasm"}}"#).unwrap();
        assert!(matches!(file.member(), Ok(Member::File(_))));
        assert_eq!(serde_json::to_string(&file).unwrap(), r#"{"file":{"path":"a.wasm"}}"#);
        assert!(parse(r#"{"files":{}}"#).is_err(), "an unknown member");
    }

    #[test]
    fn only_what_can_change_is_fetched_again() {
        let interval = |text| parse(text).unwrap().poll_interval().map(|it| it.as_secs());
        assert_eq!(interval(r#"{"oci":{"reference":"a.io/b:1"}}"#), Some(300));
        assert_eq!(interval(r#"{"oci":{"reference":"a.io/b:1","pollSeconds":1}}"#), Some(10));
        assert_eq!(interval(r#"{"oci":{"reference":"a.io/b:1@sha256:00"}}"#), None);
        assert_eq!(interval(r#"{"https":{"url":"https://a","sha256":""}}"#), None);
        assert_eq!(interval(r#"{"configMap":{"name":"a","key":"b"}}"#), Some(30));
        assert_eq!(interval("{}"), None);
    }

    #[test]
    fn the_schema_has_no_alternatives_and_no_null() {
        let settings = schemars::generate::SchemaSettings::openapi3().with(|it| it.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<Source>().to_value().to_string();
        for keyword in ["anyOf", "oneOf", "allOf", "null", "$ref"] {
            assert!(!schema.contains(keyword), "{keyword} in {schema}");
        }
    }
}
