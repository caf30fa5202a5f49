//! The resources that the server serves now: the built-in ones, and those of the CustomResourceDefinitions.

use crate::builtin;
use crate::custom;
use crate::resource::Resource;
use crate::status::GroupResource;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;

/// The current catalog. A change of a definition replaces it.
#[derive(Debug)]
pub(crate) struct Catalog {
    served: watch::Sender<Arc<Served>>,
}

/// One immutable catalog.
#[derive(Debug)]
pub(crate) struct Served {
    resources: Vec<Arc<Resource>>,
    by_name: HashMap<(String, String, String), Arc<Resource>>,
}

/// One group version of the catalog.
pub(crate) struct GroupVersion<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resources: Vec<&'a Arc<Resource>>,
}

/// Groups whose resources are not stored: the server answers a POST at once (access reviews, token reviews).
pub(crate) const REVIEW_GROUPS: &[&str] = &["authentication.k8s.io", "authorization.k8s.io"];

// === impl Catalog ===

impl Catalog {
    pub(crate) fn new() -> Self {
        Self { served: watch::Sender::new(Arc::new(Served::new(&[]))) }
    }

    pub(crate) fn served(&self) -> Arc<Served> {
        self.served.borrow().clone()
    }

    /// Returns a receiver that is notified of each new catalog.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Served>> {
        self.served.subscribe()
    }

    /// Replaces the catalog by one with these definitions.
    pub(crate) fn replace(&self, definitions: &[Value]) {
        self.served.send_replace(Arc::new(Served::new(definitions)));
    }
}

// === impl Served ===

impl Served {
    fn new(definitions: &[Value]) -> Self {
        let custom = definitions.iter().flat_map(custom::resources);
        let resources: Vec<Arc<Resource>> =
            builtin::resources().into_iter().chain(custom).map(Arc::new).collect();
        let by_name = resources
            .iter()
            .map(|r| ((r.group.clone(), r.version.clone(), r.plural.clone()), r.clone()))
            .collect();
        Self { resources, by_name }
    }

    pub(crate) fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_name.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Returns a built-in resource.
    pub(crate) fn builtin(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.find(group, "v1", plural).filter(|resource| resource.custom.is_none())
    }

    /// Returns one resource for each storage of namespaced objects.
    pub(crate) fn namespaced_storages(&self) -> Vec<&Arc<Resource>> {
        let mut seen: Vec<&GroupResource> = Vec::new();
        let mut found = Vec::new();
        for resource in self.resources.iter().filter(|resource| resource.namespaced) {
            if !seen.contains(&&resource.storage) {
                seen.push(&resource.storage);
                found.push(resource);
            }
        }
        found
    }

    /// Returns the group versions in the order of discovery.
    pub(crate) fn group_versions(&self) -> Vec<GroupVersion<'_>> {
        let mut found: Vec<GroupVersion<'_>> = Vec::new();
        for resource in &self.resources {
            match found.iter_mut().find(|gv| gv.group == resource.group && gv.version == resource.version) {
                Some(gv) => gv.resources.push(resource),
                None => found.push(GroupVersion {
                    group: &resource.group,
                    version: &resource.version,
                    resources: vec![resource],
                }),
            }
        }
        for group in REVIEW_GROUPS {
            found.push(GroupVersion { group, version: "v1", resources: Vec::new() });
        }
        found
    }

    /// Returns whether a request for an unknown resource of this group is answered with a Status rather than
    /// a bare 404.
    pub(crate) fn is_builtin_group(&self, group: &str) -> bool {
        REVIEW_GROUPS.contains(&group)
            || self.resources.iter().any(|r| r.group == group && r.custom.is_none())
    }
}
