//! The resource that a plugin watches, as the command line names it.

use std::fmt;
use std::str::FromStr;

/// A resource: `apps/v1/deployments`, or `v1/pods` in the core group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural name, such as `deployments`.
    pub plural: String,
}

/// The only version of the core group.
const CORE_VERSION: &str = "v1";

/// A text is not a [`Resource`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError(String);

impl FromStr for Resource {
    type Err = ResourceError;

    fn from_str(text: &str) -> Result<Self, ResourceError> {
        let parts: Vec<_> = text.split('/').collect();
        let (group, version, plural) = match parts[..] {
            [group, version, plural] => (group, version, plural),
            [version, plural] => ("", version, plural),
            _ => {
                return refuse(
                    "a resource is GROUP/VERSION/PLURAL, such as apps/v1/deployments, or VERSION/PLURAL in the core group, such as v1/pods",
                );
            }
        };
        if parts.len() == 2 && version != CORE_VERSION && is_numbered_version(plural) {
            return refuse(&format!(
                "{text:?} names no resource: write GROUP/VERSION/PLURAL, such as apps/v1/deployments (`kubectl api-resources` lists them)"
            ));
        }
        if parts.len() == 2 && version != CORE_VERSION {
            return refuse(&format!(
                "the core group has the version v1 only, not {version:?}; for another group write GROUP/VERSION/{plural} (`kubectl api-resources` lists both)"
            ));
        }
        if !is_version(version) {
            return refuse(&format!(
                "{version:?} is not a version: lower-case letters, digits and -, a letter first, at most 63, such as v1, v1beta1 or stable; `kubectl api-resources` lists group and version of each resource"
            ));
        }
        if !is_label(plural) {
            return refuse(&format!(
                "{plural:?} is not the plural name of a resource, in lower-case letters, such as deployments (not a kind, such as Deployment)"
            ));
        }
        if is_of_kubernetes(group) && !plural.ends_with('s') {
            return refuse(&format!(
                "{plural:?} is not the plural name of a resource of Kubernetes, which ends in s; `kubectl api-resources` lists them"
            ));
        }
        if parts.len() == 3 && !group.split('.').all(is_label) {
            return refuse(&format!(
                "{group:?} is not an API group such as apps or networking.k8s.io; the core group is left out: {version}/{plural}"
            ));
        }
        Ok(Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() })
    }
}

/// Returns whether a text is a version such as `v1` or `v1beta1`.
fn is_numbered_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, plural } = self;
        if group.is_empty() {
            write!(f, "{version}/{plural}")
        } else {
            write!(f, "{group}/{version}/{plural}")
        }
    }
}

// === impl ResourceError ===

impl std::error::Error for ResourceError {}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refuse(why: &str) -> Result<Resource, ResourceError> {
    Err(ResourceError(why.to_owned()))
}

/// Returns whether a group is one of Kubernetes itself, whose plural names all end in `s`.
fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.')
        || group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io") && !group.ends_with("metrics.k8s.io")
}

/// Returns whether a text is a label of DNS (RFC 1123).
fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns whether a text is a version as CustomResourceDefinitions may have it: a label of DNS that begins
/// with a letter (RFC 1035).
fn is_version(text: &str) -> bool {
    is_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Resource::from_str(text).unwrap_err().to_string()
    }

    #[test]
    fn group_version_and_plural_name_a_resource() {
        for name in [
            "v1/pods",
            "apps/v1/deployments",
            "oarlock.dev/v1beta1/mirrors",
            "networking.k8s.io/v2alpha3/a2s",
            "example.com/v1/sheep",
            "oarlock.dev/stable/mirrors",
            "oarlock.dev/v2023-01-01/mirrors",
            "oarlock.dev/v0/mirrors",
        ] {
            assert_eq!(Resource::from_str(name).unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "pods",
            "/v1/pods",
            "v1/",
            "a/b/c/d",
            "v0/pods",
            "stable/pods",
            "oarlock.dev/2023-01-01/mirrors",
            "oarlock.dev/v1.1/mirrors",
            "oarlock.dev/V1/mirrors",
            "oarlock.dev/v1-/mirrors",
            "oarlock.dev//mirrors",
            "Apps/v1/pods",
            "a..b/v1/pods",
        ] {
            refusal(wrong);
        }
    }

    #[test]
    fn a_refusal_says_what_would_do() {
        insta::assert_snapshot!(refusal("deployments"), @"a resource is GROUP/VERSION/PLURAL, such as apps/v1/deployments, or VERSION/PLURAL in the core group, such as v1/pods");
        insta::assert_snapshot!(refusal("apps/deployments"), @r#"the core group has the version v1 only, not "apps"; for another group write GROUP/VERSION/deployments (`kubectl api-resources` lists both)"#);
        insta::assert_snapshot!(refusal("apps/v1"), @r#""apps/v1" names no resource: write GROUP/VERSION/PLURAL, such as apps/v1/deployments (`kubectl api-resources` lists them)"#);
        insta::assert_snapshot!(refusal("example.com/2023-01-01/widgets"), @r#""2023-01-01" is not a version: lower-case letters, digits and -, a letter first, at most 63, such as v1, v1beta1 or stable; `kubectl api-resources` lists group and version of each resource"#);
        insta::assert_snapshot!(refusal("apps/v1/Deployment"), @r#""Deployment" is not the plural name of a resource, in lower-case letters, such as deployments (not a kind, such as Deployment)"#);
        insta::assert_snapshot!(refusal("apps/v1/deployment"), @r#""deployment" is not the plural name of a resource of Kubernetes, which ends in s; `kubectl api-resources` lists them"#);
        insta::assert_snapshot!(refusal("/v1/pods"), @r#""" is not an API group such as apps or networking.k8s.io; the core group is left out: v1/pods"#);
    }
}
