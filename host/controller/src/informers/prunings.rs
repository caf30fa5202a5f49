//! The fields that caches leave out, by resource.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use oarlock_informer::GroupVersionResource;
use oarlock_informer::object::Pruning;

/// A resource in any version, as kubectl writes it: `pods`, `deployments.apps`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct GroupResource {
    /// The plural name of the resource.
    pub resource: String,
    /// The API group; empty for the core group.
    pub group: String,
}

/// The pruning of each resource; all others have [`Pruning::default`].
///
/// A cache is shared, so a field that is left out is missing for every plugin.
#[derive(Clone, Debug, Default)]
pub struct Prunings(BTreeMap<GroupResource, Pruning>);

// === impl GroupResource ===

impl FromStr for GroupResource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
        };
        if resource.is_empty() || !is_name(text) || text.ends_with('.') {
            return Err(format!(
                "{text:?} is not a resource: write it as kubectl does, such as pods or deployments.apps"
            ));
        }
        Ok(Self { resource: resource.to_owned(), group: group.to_owned() })
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, group } = self;
        if group.is_empty() { f.write_str(resource) } else { write!(f, "{resource}.{group}") }
    }
}

// === impl Prunings ===

impl Prunings {
    /// Returns the pruning of a resource, to be changed.
    pub fn entry(&mut self, resource: GroupResource) -> &mut Pruning {
        self.0.entry(resource).or_default()
    }

    /// Returns the pruning of a resource.
    #[must_use]
    pub fn of(&self, resource: &GroupVersionResource) -> Pruning {
        let GroupVersionResource { group, resource, .. } = resource;
        let named = GroupResource { resource: resource.clone(), group: group.clone() };
        self.0.get(&named).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_the_syntax_of_kubectl() {
        for text in ["pods", "deployments.apps", "virtualservices.networking.istio.io"] {
            assert_eq!(text.parse::<GroupResource>().unwrap().to_string(), text);
        }
        for text in ["", ".apps", "Pods", "pods/status", "pods.", "apps/v1"] {
            assert!(text.parse::<GroupResource>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pruning_applies_to_every_version_of_its_resource_only() {
        let mut prunings = Prunings::default();
        *prunings.entry("deployments.apps".parse().unwrap()) = Pruning::none();
        for version in ["v1", "v1beta1"] {
            assert_eq!(
                prunings.of(&GroupVersionResource::new("apps", version, "deployments")),
                Pruning::none()
            );
        }
        for (group, resource) in [("", "deployments"), ("apps", "replicasets")] {
            assert_eq!(prunings.of(&GroupVersionResource::new(group, "v1", resource)), Pruning::default());
        }
    }
}
