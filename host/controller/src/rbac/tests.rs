use oarlock_plugin::contract::{Content, Enqueue, GroupVersionResource, Read, Request, Subscription};

use super::*;

fn target(group: &str, plural: &str) -> GroupVersionResource {
    GroupVersionResource { group: group.to_owned(), version: "v1".to_owned(), plural: plural.to_owned() }
}

fn subscription(group: &str, plural: &str, namespaces: Namespaces) -> Subscription {
    Subscription {
        name: plural.to_owned(),
        target: target(group, plural),
        namespaces,
        label_selector: String::new(),
        conditions: Vec::new(),
        fields: Vec::new(),
        content: Content::Full,
        resync_seconds: 0,
        enqueue: Enqueue::Nothing,
        ignore_own_writes: false,
    }
}

fn read(plural: &str, namespaces: Namespaces) -> Read {
    Read {
        name: plural.to_owned(),
        target: target("", plural),
        namespaces,
        content: Content::Full,
        wakes: false,
    }
}

fn write(group: &str, plural: &str, subresource: &str, namespaces: Namespaces, verbs: &[&str]) -> Request {
    Request {
        target: target(group, plural),
        namespaces,
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        subresource: subresource.to_owned(),
    }
}

fn one(namespace: &str) -> Namespaces {
    Namespaces::One(namespace.to_owned())
}

fn mirror() -> Needs {
    Needs {
        plugin: "mirror".to_owned(),
        account: "oarlock-plugins/mirror".parse().unwrap(),
        description: Description {
            name: "mirror".to_owned(),
            version: "0.1.0".to_owned(),
            subscriptions: vec![
                subscription("", "configmaps", Namespaces::All),
                subscription("", "secrets", Namespaces::All),
            ],
            reads: vec![read("namespaces", Namespaces::All), read("configmaps", one("kube-system"))],
            indices: Vec::new(),
            schedules: vec![],
            requests: vec![
                write("", "configmaps", "", Namespaces::All, &["delete", "create", "patch"]),
                write("", "secrets", "", Namespaces::All, &["create", "patch", "delete"]),
            ],
            stateless: false,
        },
        emits_events: true,
    }
}

fn narrow() -> Needs {
    Needs {
        plugin: "narrow".to_owned(),
        account: "oarlock-plugins/narrow".parse().unwrap(),
        description: Description {
            name: "narrow".to_owned(),
            subscriptions: vec![subscription("apps", "deployments", one("team-a"))],
            reads: Vec::new(),
            schedules: vec![],
            requests: vec![
                write("apps", "deployments", "status", one("team-a"), &["patch"]),
                write("", "configmaps", "", one("team-b"), &["update"]),
            ],
            ..mirror().description
        },
        emits_events: false,
    }
}

#[test]
fn a_plugins_account_gets_its_declared_rights_in_its_declared_namespaces() {
    let manifest = for_plugins(&[mirror(), narrow()]).unwrap();
    insta::assert_snapshot!(manifest.to_yaml().unwrap(), @"
    # The namespaces of the objects below. Existing ones are not changed. Leave this part out of `kubectl delete`:
    # deleting a namespace deletes everything in it.
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: oarlock-plugins
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: team-a
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: team-b

    # The plugin mirror, which acts as the ServiceAccount oarlock-plugins/mirror.
    # WARNING: reading secrets in all namespaces: with the token in a Secret, the account can act as that ServiceAccount.
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: mirror
      namespace: oarlock-plugins
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-plugin-mirror
    rules:
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
      - patch
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
      - list
      - watch
    - apiGroups:
      - ''
      resources:
      - configmaps
      - secrets
      verbs:
      - get
      - list
      - watch
      - create
      - patch
      - delete
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-plugin-mirror
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: ClusterRole
      name: oarlock-plugin-mirror
    subjects:
    - kind: ServiceAccount
      name: mirror
      namespace: oarlock-plugins

    # The plugin narrow, which acts as the ServiceAccount oarlock-plugins/narrow.
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: narrow
      namespace: oarlock-plugins
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-plugin-narrow
      namespace: team-a
    rules:
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - get
      - list
      - watch
    - apiGroups:
      - apps
      resources:
      - deployments/status
      verbs:
      - patch
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-plugin-narrow
      namespace: team-a
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: oarlock-plugin-narrow
    subjects:
    - kind: ServiceAccount
      name: narrow
      namespace: oarlock-plugins
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-plugin-narrow
      namespace: team-b
    rules:
    - apiGroups:
      - ''
      resources:
      - configmaps
      verbs:
      - update
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-plugin-narrow
      namespace: team-b
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: oarlock-plugin-narrow
    subjects:
    - kind: ServiceAccount
      name: narrow
      namespace: oarlock-plugins
    ");
}

#[test]
fn the_host_may_watch_review_access_and_impersonate_named_accounts() {
    let host = "oarlock-system/oarlock".parse().unwrap();
    let manifest = for_host(&host, &[mirror(), narrow()]).unwrap();
    let yaml = manifest.to_yaml().unwrap();
    assert!(!yaml.contains('*'));
    insta::assert_snapshot!(yaml, @"
    # The namespaces of the objects below. Existing ones are not changed. Leave this part out of `kubectl delete`:
    # deleting a namespace deletes everything in it.
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: oarlock-plugins
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: oarlock-system

    # The host itself, which runs as the ServiceAccount oarlock-system/oarlock.
    # WARNING: the host lists and watches deployments.apps in all namespaces, although the plugins name only team-a: one watch serves all plugins, and each plugin reads only what its own account may read.
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock
      namespace: oarlock-system
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-host
    rules:
    - apiGroups:
      - ''
      resources:
      - configmaps
      - namespaces
      - secrets
      verbs:
      - list
      - watch
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
      - watch
    - apiGroups:
      - authorization.k8s.io
      resources:
      - subjectaccessreviews
      verbs:
      - create
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-host
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: ClusterRole
      name: oarlock-host
    subjects:
    - kind: ServiceAccount
      name: oarlock
      namespace: oarlock-system
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-host
      namespace: oarlock-plugins
    rules:
    - apiGroups:
      - ''
      resourceNames:
      - mirror
      - narrow
      resources:
      - serviceaccounts
      verbs:
      - get
      - impersonate
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-host
      namespace: oarlock-plugins
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: oarlock-host
    subjects:
    - kind: ServiceAccount
      name: oarlock
      namespace: oarlock-system
    ");
}

#[test]
fn two_plugins_can_share_an_account() {
    let mut other = narrow();
    other.account = mirror().account;
    let yaml = for_plugins(&[mirror(), other]).unwrap().to_yaml().unwrap();
    assert_eq!(yaml.matches("kind: ServiceAccount\nmetadata").count(), 1);
}

#[test]
fn a_declared_wildcard_is_an_error() {
    let mut needs = mirror();
    needs.description.requests[0].verbs = vec!["*".to_owned()];
    insta::assert_snapshot!(for_plugins(&[needs]).unwrap_err(), @"plugin mirror declares `*` as verb. Rights are granted by name only. Fix: name each verb that the plugin needs");
    let mut needs = mirror();
    needs.description.reads[0].target.plural = "*".to_owned();
    insta::assert_snapshot!(for_host(&narrow().account, &[needs]).unwrap_err(), @"plugin mirror declares `*` as resource. Rights are granted by name only. Fix: name each resource that the plugin needs");
}

#[test]
fn a_candidate_may_hold_one_lease_and_record_events() {
    let manifest = for_election(&"oarlock-system/oarlock".parse().unwrap(), "leases", "oarlock");
    insta::assert_snapshot!(manifest.to_yaml().unwrap(), @"
    # The namespaces of the objects below. Existing ones are not changed. Leave this part out of `kubectl delete`:
    # deleting a namespace deletes everything in it.
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: leases

    # The host as a candidate for the Lease leases/oarlock.
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-election
      namespace: leases
    rules:
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
      - patch
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    - apiGroups:
      - coordination.k8s.io
      resourceNames:
      - oarlock
      resources:
      - leases
      verbs:
      - get
      - update
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      labels:
        app.kubernetes.io/managed-by: oarlock
      name: oarlock-election
      namespace: leases
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: oarlock-election
    subjects:
    - kind: ServiceAccount
      name: oarlock
      namespace: oarlock-system
    ");
}

#[test]
fn dangerous_rights_have_warnings() {
    let mut needs = narrow();
    let everywhere = Namespaces::All;
    needs.description.requests = vec![
        write("rbac.authorization.k8s.io", "roles", "", one("team-a"), &["create", "escalate", "bind"]),
        write("", "serviceaccounts", "", everywhere.clone(), &["impersonate"]),
        write("", "serviceaccounts", "token", one("kube-system"), &["create"]),
        write("", "configmaps", "", everywhere, &["create"]),
    ];
    let manifest = for_plugins(&[needs.clone(), mirror()]).unwrap();
    insta::assert_snapshot!(manifest.warnings().join("\n"), @"
    `bind` of roles in the namespace team-a: the account can bind roles whose rights it does not have, also to itself
    `create` of serviceaccounts/token in the namespace kube-system: the account can get tokens of the ServiceAccounts there
    `escalate` of roles in the namespace team-a: the account can write roles with rights that it does not have itself, up to all rights
    `impersonate` of serviceaccounts in all namespaces: the account can act as other users and accounts, with all their rights
    reading secrets in all namespaces: with the token in a Secret, the account can act as that ServiceAccount
    ");
    let yaml = manifest.to_yaml().unwrap();
    assert_eq!(
        yaml.lines().filter(|line| line.starts_with("# WARNING: ")).count(),
        manifest.warnings().len()
    );
    // The host gets a wider right than the plugins name.
    let host = "oarlock-system/oarlock".parse().unwrap();
    insta::assert_snapshot!(for_host(&host, &[narrow(), mirror()]).unwrap().warnings().join("\n"), @"the host lists and watches deployments.apps in all namespaces, although the plugins name only team-a: one watch serves all plugins, and each plugin reads only what its own account may read");
    let mut everywhere = narrow();
    everywhere.description.subscriptions[0].namespaces = Namespaces::All;
    assert!(for_host(&host, &[narrow(), everywhere]).unwrap().warnings().is_empty());
}

#[test]
fn a_manifest_leaves_out_namespaces_that_every_cluster_has() {
    let mut needs = narrow();
    needs.account = "default/narrow".parse().unwrap();
    let yaml = for_plugins(&[needs]).unwrap().to_yaml().unwrap();
    let documents: Vec<serde_norway::Value> = serde_norway::Deserializer::from_str(&yaml)
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect();
    let namespaces: Vec<_> = documents
        .iter()
        .filter(|it| it["kind"] == "Namespace")
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(namespaces, ["team-a", "team-b"]);
}
