//! The versions that the API server answered to this plugin, so that it can wait for its own writes and for
//! nothing else.
//!
//! A version is counted up with every change of a resource, in any namespace. A plugin that could
//! ask whether the cache has seen an arbitrary one would learn of changes in namespaces that it may not read.

use std::collections::VecDeque;

use oarlock_informer::GroupVersionResource as Resource;
use oarlock_plugin::contract::GroupVersionResource;
use parking_lot::Mutex;

/// How many versions are remembered; the oldest is forgotten first.
const CAPACITY: usize = 1_024;

/// Longest version that is remembered. Those of the API server are numbers of 64 bits.
const LONGEST: usize = 64;

/// The newest versions that were answered. At most some 600 KB.
#[derive(Default)]
pub(super) struct OwnVersions {
    versions: Mutex<VecDeque<Own>>,
}

struct Own {
    group: Box<str>,
    plural: Box<str>,
    version: Box<str>,
}

// === impl OwnVersions ===

impl OwnVersions {
    /// Remembers a version that a request of this plugin was answered with.
    pub(super) fn answered(&self, target: &GroupVersionResource, version: &str) {
        if version.is_empty() || version.len() > LONGEST || self.has(&target.group, &target.plural, version) {
            return;
        }
        let mut versions = self.versions.lock();
        if versions.len() >= CAPACITY {
            versions.pop_front();
        }
        let GroupVersionResource { group, version: _, plural } = target;
        versions.push_back(Own {
            group: group.as_str().into(),
            plural: plural.as_str().into(),
            version: version.into(),
        });
    }

    /// Whether this version of the resource, in whatever version of its API, was answered to this plugin.
    pub(super) fn contains(&self, resource: &Resource, version: &str) -> bool {
        self.has(&resource.group, &resource.resource, version)
    }

    fn has(&self, group: &str, plural: &str, version: &str) -> bool {
        // The newest is asked for most.
        let versions = self.versions.lock();
        versions
            .iter()
            .rev()
            .any(|it| *it.version == *version && *it.plural == *plural && *it.group == *group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_versions_of_each_resource_are_remembered_and_no_more() {
        let target = |version: &str, plural: &str| GroupVersionResource {
            group: "apps".into(),
            version: version.into(),
            plural: plural.into(),
        };
        let own = OwnVersions::default();
        own.answered(&target("v1", "deployments"), "7");
        own.answered(&target("v1", "deployments"), "");
        own.answered(&target("v1", "deployments"), &"9".repeat(1 << 20));
        let deployments = Resource::new("apps", "v1beta1", "deployments");
        assert!(own.contains(&deployments, "7"));
        assert!(!own.contains(&deployments, "8") && !own.contains(&deployments, ""));
        assert!(!own.contains(&Resource::new("apps", "v1", "statefulsets"), "7"));
        for version in 0..5_000 {
            own.answered(&target("v1", "statefulsets"), &version.to_string());
        }
        assert_eq!(own.versions.lock().len(), CAPACITY);
        assert!(!own.contains(&deployments, "7"));
        assert!(own.contains(&Resource::new("apps", "v1", "statefulsets"), "4999"));
    }
}
