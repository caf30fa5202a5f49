//! What a real cluster has and this server leaves out: refused by name, with what to do about it.

use crate::resource::Resource;
use crate::status::StatusError;

/// Group, and what it would take.
const GROUPS: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "it calls no webhooks and evaluates no admission policies"),
    ("apiregistration.k8s.io", "it forwards no requests to other API servers"),
    ("flowcontrol.apiserver.k8s.io", "it puts requests into no queues"),
    ("internal.apiserver.k8s.io", "it has no storage versions"),
    ("node.k8s.io", "no kubelet runs Pods, so there is no use for RuntimeClasses"),
    ("resource.k8s.io", "it allocates no devices"),
    ("storagemigration.k8s.io", "it migrates no storage"),
];

/// Resource, and the subresources of it that somebody else answers on a real cluster.
const SUBRESOURCES: &[(&str, &[&str])] = &[
    ("pods", &["attach", "exec", "log", "portforward", "proxy", "resize"]),
    ("nodes", &["proxy"]),
    ("services", &["proxy"]),
];

/// Refuses a group that a real cluster has; `None` for any other.
pub(crate) fn group(name: &str) -> Option<StatusError> {
    let (_, why) = GROUPS.iter().find(|(group, _)| *group == name)?;
    let mut error = StatusError::resource_not_served();
    error.message = format!(
        "the embedded API server does not serve {name}: {why}; use a real API server (kind, or cargo xtask control-plane) \
         for what needs it"
    );
    Some(error)
}

/// Refuses a subresource: by name if a real cluster has it, as one that does not exist otherwise.
pub(crate) fn subresource(resource: &Resource, subresource: &str, verb: &str) -> StatusError {
    let known =
        SUBRESOURCES.iter().find(|(plural, _)| *plural == resource.plural && resource.group.is_empty());
    if known.is_some_and(|(_, all)| all.contains(&subresource)) {
        let mut named = resource.group_resource();
        named.resource = format!("{}/{subresource}", named.resource);
        return StatusError::method_not_supported(&named, verb);
    }
    StatusError::resource_not_served()
}
