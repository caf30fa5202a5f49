//! The columns of the built-in kinds, as kube-apiserver names them.

use super::Column;
use crate::resource::Resource;

/// Each kind with its columns. `*` marks a column of `-o wide`, `#` an integer, `?` a boolean. The first
/// column holds the name, unless `@` marks another one.
const COLUMNS: &[(&str, &str)] = &[
    ("ConfigMap", "Name|Data|Age"),
    ("Endpoints", "Name|Endpoints|Age"),
    ("Event", "Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*@"),
    ("Namespace", "Name|Status|Age"),
    (
        "Node",
        "Name|Status|Roles|Age|Version|Internal-IP*|External-IP*|OS-Image*|Kernel-Version*|Container-Runtime*",
    ),
    (
        "PersistentVolumeClaim",
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode*",
    ),
    (
        "PersistentVolume",
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|VolumeMode*",
    ),
    ("Pod", "Name|Ready|Status|Restarts|Age|IP*|Node*|Nominated Node*|Readiness Gates*"),
    ("PodTemplate", "Name|Containers|Images|Pod Labels"),
    ("ReplicationController", "Name|Desired#|Current#|Ready#|Age|Containers*|Images*|Selector*"),
    ("ResourceQuota", "Name|Request|Limit|Age"),
    ("Secret", "Name|Type|Data|Age"),
    ("ServiceAccount", "Name|Age"),
    ("Service", "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector*"),
    ("ControllerRevision", "Name|Controller|Revision|Age"),
    (
        "DaemonSet",
        "Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|Containers*|Images*|Selector*",
    ),
    ("Deployment", "Name|Ready|Up-to-date|Available|Age|Containers*|Images*|Selector*"),
    ("ReplicaSet", "Name|Desired#|Current#|Ready#|Age|Containers*|Images*|Selector*"),
    ("StatefulSet", "Name|Ready|Age|Containers*|Images*"),
    ("CronJob", "Name|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|Containers*|Images*|Selector*"),
    ("Job", "Name|Status|Completions|Duration|Age|Containers*|Images*|Selector*"),
    ("ClusterRoleBinding", "Name|Role|Age|Users*|Groups*|ServiceAccounts*"),
    ("RoleBinding", "Name|Role|Age|Users*|Groups*|ServiceAccounts*"),
    ("Lease", "Name|Holder|Age"),
    ("PodDisruptionBudget", "Name|Min Available|Max Unavailable|Allowed Disruptions#|Age"),
    ("IngressClass", "Name|Controller|Parameters|Age"),
    ("Ingress", "Name|Class|Hosts|Address|Ports|Age"),
    ("NetworkPolicy", "Name|Pod-Selector|Age"),
    ("HorizontalPodAutoscaler", "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age"),
    ("EndpointSlice", "Name|AddressType|Ports|Endpoints|Age"),
    ("StorageClass", "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"),
    ("PriorityClass", "Name|Value#|Global-Default?|Age|PreemptionPolicy"),
    ("CertificateSigningRequest", "Name|Age|SignerName|Requestor|RequestedDuration|Condition"),
];

pub(super) fn name_column() -> Column {
    column("Name", "string", "name")
}

pub(super) fn age_column(kind: &str) -> Column {
    column("Age", kind, "")
}

fn column(name: &str, kind: &str, format: &str) -> Column {
    let description = match name {
        "Name" => "Name must be unique within a namespace.",
        "Age" | "Created At" => "CreationTimestamp is the time at which this object was created.",
        _ => "",
    };
    Column {
        name: name.into(),
        kind: kind.into(),
        format: format.into(),
        description: description.into(),
        priority: 0,
    }
}

/// Returns the columns of a built-in kind.
pub(super) fn columns(resource: &Resource) -> Vec<Column> {
    let Some((_, columns)) = COLUMNS.iter().find(|(kind, _)| *kind == resource.kind) else {
        return vec![name_column(), column("Created At", "date", "")];
    };
    let parse = |(at, text): (usize, &str)| {
        let name = text.trim_end_matches(['*', '#', '?', '@']);
        let marks = &text[name.len()..];
        let kind = match marks {
            _ if marks.contains('#') => "integer",
            _ if marks.contains('?') => "boolean",
            _ => "string",
        };
        let is_name = marks.contains('@') || (at == 0 && name == "Name");
        let mut column = column(name, kind, if is_name { "name" } else { "" });
        column.priority = i64::from(marks.contains('*'));
        column
    };
    columns.split('|').enumerate().map(parse).collect()
}
