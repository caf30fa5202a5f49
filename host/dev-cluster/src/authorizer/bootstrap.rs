//! The ClusterRoles and bindings of a new cluster, without those that only controllers use.

use serde_json::{Value, json};

/// Returns cluster-admin, discovery and self-reviews for authenticated users, and health checks for all
/// users.
pub(crate) fn objects() -> Vec<Value> {
    let every = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]);
    let discovery = json!([{"verbs": ["get"], "nonResourceURLs": [
        "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version",
        "/version/",
    ]}]);
    let basic = json!([
        {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
         "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    ]);
    let public = json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]}]);
    let authenticated: &[&str] = &["system:authenticated"];
    let everybody: &[&str] = &["system:authenticated", "system:unauthenticated"];
    [
        ("cluster-admin", every, &["system:masters"][..]),
        ("system:discovery", discovery, authenticated),
        ("system:basic-user", basic, authenticated),
        ("system:public-info-viewer", public, everybody),
    ]
    .into_iter()
    .flat_map(|(name, rules, groups)| [role(name, rules), binding(name, groups)])
    .collect()
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

fn role(name: &str, rules: Value) -> Value {
    json!({
        "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": metadata(name), "rules": rules,
    })
}

fn binding(name: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> = groups
        .iter()
        .map(|group| json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group}))
        .collect();
    json!({
        "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": metadata(name), "subjects": subjects,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    })
}
