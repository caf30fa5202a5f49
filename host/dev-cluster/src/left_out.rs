//! Groups and subresources of a real cluster that this server does not have. Requests for them get an error
//! that names the alternative.

use crate::resource::Resource;
use crate::status::StatusError;

/// Each group with the reason why it is missing.
const GROUPS: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "it calls no webhooks and evaluates no admission policies"),
    ("apiregistration.k8s.io", "it forwards no requests to other API servers"),
    ("flowcontrol.apiserver.k8s.io", "it does not queue requests"),
    ("internal.apiserver.k8s.io", "it has no storage versions"),
    ("node.k8s.io", "no kubelet runs Pods, so RuntimeClasses have no effect"),
    ("resource.k8s.io", "it allocates no devices"),
    ("storagemigration.k8s.io", "it migrates no storage"),
];

/// The subresources that a kubelet or another server answers on a real cluster.
const SUBRESOURCES: &[(&str, &[&str])] = &[
    ("pods", &["attach", "exec", "log", "portforward", "proxy", "resize"]),
    ("nodes", &["proxy"]),
    ("services", &["proxy"]),
];

/// Returns the error for a group of a real cluster; `None` for any other group.
pub(crate) fn group(name: &str) -> Option<StatusError> {
    let (_, why) = GROUPS.iter().find(|(group, _)| *group == name)?;
    let mut error = StatusError::resource_not_served();
    error.message = format!(
        "the embedded API server does not serve {name}: {why}; use a real API server (kind, or cargo xtask control-plane) \
         for it"
    );
    Some(error)
}

/// Returns the error for a subresource: 405 if a real cluster has it, 404 otherwise.
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
