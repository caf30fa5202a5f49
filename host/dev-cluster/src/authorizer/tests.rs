use super::*;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

fn stored() -> Vec<Value> {
    let mut objects = bootstrap_objects();
    objects.extend([
        json!({"kind": "Role", "metadata": {"namespace": "a", "name": "reader"}, "rules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]},
            {"verbs": ["update"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
            {"verbs": ["update"], "apiGroups": ["apps"], "resources": ["*/scale"]},
        ]}),
        json!({"kind": "RoleBinding", "metadata": {"namespace": "a", "name": "reads"},
            "roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "bob"}]}),
        json!({"kind": "ClusterRole", "metadata": {"name": "impersonates"}, "rules": [
            {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["bob"]},
        ]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "impersonates"},
            "roleRef": {"kind": "ClusterRole", "name": "impersonates"},
            "subjects": [{"kind": "User", "name": "host"}]}),
        json!({"kind": "RoleBinding", "metadata": {"namespace": "a", "name": "nothing"},
            "roleRef": {"kind": "ClusterRole", "name": "gone"}, "subjects": [{"kind": "User", "name": "eve"}]}),
    ]);
    objects
}

fn ask<'a>(verb: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Attributes<'a> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes { verb, resource, subresource, namespace, name, ..Attributes::default() }
}

#[test]
fn a_role_allows_its_rules_in_the_namespaces_of_its_bindings() {
    let authorizer = Authorizer::new(&stored());
    let bob = UserInfo::service_account("a", "bob");
    let may = |attributes| authorizer.authorize(&bob, &attributes).allowed;
    assert!(may(ask("list", "pods", "a", "")));
    assert!(may(ask("get", "pods/log", "a", "x")));
    assert!(!may(ask("list", "pods", "b", "")));
    assert!(!may(ask("list", "pods", "", "")));
    assert!(!may(ask("watch", "pods", "a", "")));
    assert!(!may(ask("get", "pods/exec", "a", "x")));
    assert!(may(ask("update", "configmaps", "a", "mine")));
    assert!(!may(ask("update", "configmaps", "a", "other")));
    assert!(may(Attributes { group: "apps", ..ask("update", "deployments/scale", "a", "x") }));
    assert_eq!(
        authorizer.authorize(&bob, &ask("get", "pods", "a", "x")).reason,
        r#"RBAC: allowed by RoleBinding "reads/a" of Role "reader" to ServiceAccount "bob/a""#
    );
}

#[test]
fn masters_are_allowed_everything_and_unknown_users_only_discovery() {
    let objects = stored();
    let authorizer = Authorizer::new(&objects);
    let admin = UserInfo::new("admin", [MASTERS]);
    assert!(authorizer.authorize(&admin, &ask("delete", "nodes", "", "n")).allowed);
    let path = |path| Attributes { verb: "get", path: Some(path), ..Attributes::default() };
    let someone = UserInfo::new("someone", Vec::<String>::new());
    assert!(authorizer.authorize(&someone, &path("/apis/apps/v1")).allowed);
    assert!(!authorizer.authorize(&someone, &path("/metrics")).allowed);
    assert!(authorizer.authorize(&UserInfo::anonymous(), &path("/readyz")).allowed);
    assert!(!authorizer.authorize(&UserInfo::anonymous(), &path("/apis")).allowed);
}

#[test]
fn a_denial_has_the_message_of_kube_apiserver() {
    let authorizer = Authorizer::new(&stored());
    let error = authorizer
        .require(&UserInfo::new("eve", Vec::<String>::new()), &ask("get", "pods/log", "a", "p"))
        .unwrap_err();
    assert_eq!(
        error.message,
        "pods \"p\" is forbidden: User \"eve\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"a\": \
         RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found"
    );
}

#[test]
fn impersonation_needs_the_right_and_adds_the_groups() {
    let authorizer = Authorizer::new(&stored());
    let host = UserInfo::new("host", Vec::<String>::new());
    let request = ask("list", "pods", "a", "");
    let headers = |user: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("impersonate-user", HeaderValue::from_str(user).unwrap());
        headers
    };
    let bob =
        impersonated(&authorizer, &host, &headers("system:serviceaccount:a:bob"), &request).unwrap().unwrap();
    assert_eq!(bob.groups, ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]);
    let refused =
        impersonated(&authorizer, &host, &headers("system:serviceaccount:a:eve"), &request).unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(impersonated(&authorizer, &host, &HeaderMap::new(), &request).unwrap(), None);
    let mut lonely = HeaderMap::new();
    lonely.insert("impersonate-group", HeaderValue::from_static("g"));
    assert_eq!(
        impersonated(&authorizer, &host, &lonely, &request).unwrap_err().message,
        r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name"#
    );
}

#[test]
fn reviews_answer_for_the_user_in_the_review() {
    let authorizer = Authorizer::new(&stored());
    let admin = UserInfo::new("admin", [MASTERS]);
    let review = |user: &str| {
        json!({"kind": "SubjectAccessReview", "spec": {"user": user,
            "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "a"}}})
    };
    let ask = |user| {
        answer(&authorizer, "subjectaccessreviews", "", review(user), &admin).unwrap()["status"].clone()
    };
    assert_eq!(ask("system:serviceaccount:a:bob")["allowed"], true);
    assert_eq!(ask("eve")["allowed"], false);
    let refused =
        answer(&authorizer, "subjectaccessreviews", "", json!({"spec": {"user": "a"}}), &admin).unwrap_err();
    assert_eq!(refused.code, 422);
}

#[test]
fn a_user_cannot_grant_rights_that_it_does_not_have() {
    let authorizer = Authorizer::new(&stored());
    let bob = UserInfo::service_account("a", "bob");
    let role = |verbs: &[&str]| json!({"metadata": {"name": "r"}, "rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}]});
    authorizer.check_escalation(&bob, "roles", "a", &role(&["get"])).unwrap();
    let error =
        authorizer.check_escalation(&bob, "roles", "a", &role(&["get", "delete", "watch"])).unwrap_err();
    assert!(
        error.message.ends_with(
            "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}"
        ),
        "{}",
        error.message
    );
}
