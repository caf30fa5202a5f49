//! The table of built-in resources: those that controllers use, and CustomResourceDefinitions. A resource
//! that is not in this table is not served.

use crate::event_view;
use crate::model::Model;
use crate::resource::{ALL_VERBS, NAMESPACE_VERBS, Resource};
use crate::status::GroupResource;

const RBAC: &str = "rbac.authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const POD_FIELDS: &str = "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork \
                          status.phase status.podIP status.nominatedNodeName";
const EVENT_FIELDS: &str = "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid \
                            involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath \
                            reason reportingComponent source type";

/// Group, plural, kind, flags, short names, field selectors.
///
/// Flags: `n` namespaced, `s` status subresource, `a` category `all`, `c` PUT creates a missing object, `m`
/// an update must carry a resourceVersion, `d` a delete returns the object.
const TABLE: &[(&str, &str, &str, &str, &str, &str)] = &[
    ("", "configmaps", "ConfigMap", "n", "cm", ""),
    ("", "endpoints", "Endpoints", "nc", "ep", ""),
    ("", "events", "Event", "nc", "ev", EVENT_FIELDS),
    ("", "limitranges", "LimitRange", "nc", "limits", ""),
    ("", "namespaces", "Namespace", "s", "ns", "status.phase"),
    ("", "nodes", "Node", "s", "no", "spec.unschedulable"),
    ("", "persistentvolumeclaims", "PersistentVolumeClaim", "nsd", "pvc", ""),
    ("", "persistentvolumes", "PersistentVolume", "sd", "pv", ""),
    ("", "pods", "Pod", "nsad", "po", POD_FIELDS),
    ("", "podtemplates", "PodTemplate", "nd", "", ""),
    ("", "replicationcontrollers", "ReplicationController", "nsa", "rc", "status.replicas"),
    ("", "resourcequotas", "ResourceQuota", "nsd", "quota", ""),
    ("", "secrets", "Secret", "n", "", "type"),
    ("", "serviceaccounts", "ServiceAccount", "nd", "sa", ""),
    ("", "services", "Service", "nsacd", "svc", "spec.clusterIP spec.type"),
    ("apps", "controllerrevisions", "ControllerRevision", "n", "", ""),
    ("apps", "daemonsets", "DaemonSet", "nsa", "ds", ""),
    ("apps", "deployments", "Deployment", "nsa", "deploy", ""),
    ("apps", "replicasets", "ReplicaSet", "nsa", "rs", "status.replicas"),
    ("apps", "statefulsets", "StatefulSet", "nsa", "sts", "status.successful"),
    ("batch", "cronjobs", "CronJob", "nsa", "cj", "status.successful"),
    ("batch", "jobs", "Job", "nsa", "", "status.successful"),
    (RBAC, "clusterrolebindings", "ClusterRoleBinding", "c", "", ""),
    (RBAC, "clusterroles", "ClusterRole", "c", "", ""),
    (RBAC, "rolebindings", "RoleBinding", "nc", "", ""),
    (RBAC, "roles", "Role", "nc", "", ""),
    ("coordination.k8s.io", "leases", "Lease", "ncm", "", ""),
    ("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "nsa", "hpa", ""),
    (CERTIFICATES, "certificatesigningrequests", "CertificateSigningRequest", "s", "csr", "spec.signerName"),
    ("discovery.k8s.io", "endpointslices", "EndpointSlice", "n", "", ""),
    ("scheduling.k8s.io", "priorityclasses", "PriorityClass", "", "pc", ""),
    ("storage.k8s.io", "storageclasses", "StorageClass", "d", "sc", ""),
    ("events.k8s.io", "events", "Event", "nc", "ev", EVENT_FIELDS),
    ("policy", "poddisruptionbudgets", "PodDisruptionBudget", "nsm", "pdb", ""),
    ("networking.k8s.io", "ingressclasses", "IngressClass", "", "", ""),
    ("networking.k8s.io", "ingresses", "Ingress", "ns", "ing", ""),
    ("networking.k8s.io", "networkpolicies", "NetworkPolicy", "n", "netpol", ""),
    ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "sm", "crd crds", ""),
];

/// Returns every built-in resource, each in its only version.
pub(crate) fn resources() -> Vec<Resource> {
    TABLE.iter().filter_map(row).collect()
}

fn row(
    &(group, plural, kind, flags, short_names, fields): &(&str, &str, &str, &str, &str, &str),
) -> Option<Resource> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let flag = |letter: char| flags.contains(letter);
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    let is_new_event = group == "events.k8s.io";
    let categories = match (flag('a'), plural) {
        (true, _) => vec!["all".to_owned()],
        (_, "customresourcedefinitions") => vec!["api-extensions".to_owned()],
        _ => Vec::new(),
    };
    Some(Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        namespaced: flag('n'),
        short_names: words(short_names),
        categories,
        has_status: flag('s'),
        unconditional_update: !flag('m'),
        create_on_update: flag('c'),
        returns_deleted: flag('d'),
        selectable: words(fields),
        verbs: if plural == "namespaces" { NAMESPACE_VERBS } else { ALL_VERBS },
        storage: GroupResource::new(if is_new_event { "" } else { group }, plural),
        storage_api_version: match group {
            "" | "events.k8s.io" => "v1".into(),
            group => format!("{group}/{version}"),
        },
        model: Model::builtin(group, version, kind)?,
        custom: None,
        view: is_new_event.then_some(event_view::VIEW),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_matches_its_model() {
        assert_eq!(resources().len(), TABLE.len());
        for resource in resources() {
            assert_eq!(resource.model.has_status(), resource.has_status, "{}", resource.plural);
        }
    }
}
