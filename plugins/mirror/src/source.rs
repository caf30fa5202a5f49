//! The sources, and the namespaces that they ask to be copied to.

use std::collections::BTreeSet;

use oarlock_sdk::{Error, ObjectRef, config};
use serde_json::Value;

use crate::kind::Kind;

/// The annotation of a source: the namespaces to copy it to, separated by commas, or `*`.
pub(crate) const MIRROR_TO: &str = "oarlock.dev/mirror-to";
pub(crate) const MIRROR_TO_POINTER: &str = "/metadata/annotations/oarlock.dev~1mirror-to";

/// Names a source within its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The namespaces that `*` does not include.
pub(crate) struct Exclusions(BTreeSet<String>);

// === impl SourceKey ===

impl SourceKey {
    /// Parses the `namespace/name` in a copy's annotation. Returns `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let valid = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
        valid.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    pub(crate) fn annotation(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

// === impl Exclusions ===

impl Exclusions {
    pub(crate) fn from_config() -> Result<Self, Error> {
        Ok(Self(config::get("/excludedNamespaces")?.unwrap_or_default()))
    }
}

/// Returns the existing namespaces that `mirror-to` names, except the source's own.
pub(crate) fn targets(
    mirror_to: &str,
    own: &str,
    existing: &BTreeSet<String>,
    exclusions: &Exclusions,
) -> BTreeSet<String> {
    let named: BTreeSet<&str> = mirror_to.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let everywhere = named.contains("*");
    existing
        .iter()
        .filter(|&namespace| {
            let chosen =
                named.contains(namespace.as_str()) || (everywhere && !exclusions.0.contains(namespace));
            chosen && namespace != own
        })
        .cloned()
        .collect()
}

/// Returns the value of the annotation, or `None` if the object is not a source: not annotated, being
/// deleted, or a copy.
pub(crate) fn mirror_to(object: &Value) -> Option<&str> {
    let metadata = &object["metadata"];
    let annotations = &metadata["annotations"];
    let is_copy = annotations.get(crate::copy::MIRRORED_FROM).is_some();
    let is_going = metadata.get("deletionTimestamp").is_some();
    if is_copy || is_going { None } else { annotations[MIRROR_TO].as_str() }
}

/// Returns the keys of all sources of a kind.
pub(crate) fn all(kind: Kind) -> Result<BTreeSet<SourceKey>, Error> {
    let mut sources = BTreeSet::new();
    for value in kind.sources_index().values()? {
        for source in kind.sources_index().get(&value) {
            let ObjectRef { namespace, name, .. } = source?;
            sources.insert(SourceKey { namespace, name });
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn targets_are_existing_namespaces_except_the_own() {
        let existing = set(&["home", "team-a", "team-b", "kube-system"]);
        let exclusions = Exclusions(set(&["kube-system"]));
        let targets = |mirror_to| targets(mirror_to, "home", &existing, &exclusions);
        assert_eq!(targets("team-a, team-b,nowhere,home"), set(&["team-a", "team-b"]));
        assert_eq!(targets("*"), set(&["team-a", "team-b"]));
        assert_eq!(targets("*,kube-system"), set(&["kube-system", "team-a", "team-b"]));
        assert_eq!(targets(" , "), set(&[]));
    }

    #[test]
    fn a_copy_is_never_a_source() {
        let object = serde_json::json!({"metadata": {"annotations": {
            MIRROR_TO: "*", crate::copy::MIRRORED_FROM: "home/settings"}}});
        assert_eq!(mirror_to(&object), None);
    }

    #[test]
    fn a_source_key_is_a_namespace_and_a_name() {
        assert_eq!(
            SourceKey::parse("home/settings").map(|key| key.annotation()),
            Some("home/settings".to_owned())
        );
        for text in ["", "settings", "/settings", "home/", "a/b/c"] {
            assert_eq!(SourceKey::parse(text), None, "{text:?}");
        }
    }
}
