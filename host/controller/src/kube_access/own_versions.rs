//! The resourceVersions that the API server returned to this plugin, so that it can wait for its own writes
//! only.
//!
//! A resourceVersion grows with every change of a resource, in any namespace. A plugin that could wait for
//! any version would learn about changes in namespaces that it may not read.

use std::collections::VecDeque;

use oarlock_informer::GroupVersionResource as Resource;
use oarlock_plugin::contract::GroupVersionResource;
use parking_lot::Mutex;

/// The number of recorded versions; the oldest is dropped first.
const CAPACITY: usize = 1_024;

/// The longest recorded version. Those of the API server are 64-bit numbers.
const LONGEST: usize = 64;

/// The newest returned versions: at most about 600 KB.
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
    /// Records a version that a response to this plugin contained.
    pub(super) fn record(&self, target: &GroupVersionResource, version: &str) {
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

    /// Returns whether this version of the resource was returned to this plugin, in any version of its API.
    pub(super) fn contains(&self, resource: &Resource, version: &str) -> bool {
        self.has(&resource.group, &resource.resource, version)
    }

    fn has(&self, group: &str, plural: &str, version: &str) -> bool {
        // Most callers ask for the newest.
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
        own.record(&target("v1", "deployments"), "7");
        own.record(&target("v1", "deployments"), "");
        own.record(&target("v1", "deployments"), &"9".repeat(1 << 20));
        let deployments = Resource::new("apps", "v1beta1", "deployments");
        assert!(own.contains(&deployments, "7"));
        assert!(!own.contains(&deployments, "8") && !own.contains(&deployments, ""));
        assert!(!own.contains(&Resource::new("apps", "v1", "statefulsets"), "7"));
        for version in 0..5_000 {
            own.record(&target("v1", "statefulsets"), &version.to_string());
        }
        assert_eq!(own.versions.lock().len(), CAPACITY);
        assert!(!own.contains(&deployments, "7"));
        assert!(own.contains(&Resource::new("apps", "v1", "statefulsets"), "4999"));
    }
}
