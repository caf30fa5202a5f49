//! Authentication and authorization: tokens, Roles, impersonation, reviews.

use crate::client::{Client, MAPS, config_map, start};
use serde_json::{Value, json};

async fn grant(client: &Client, verbs: &[&str]) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"verbs": verbs, "apiGroups": [""], "resources": ["configmaps"]}]);
    client.create(&format!("{rbac}/roles"), &json!({"metadata": {"name": "r"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "worker", "namespace": "default"}],
    });
    client.create(&format!("{rbac}/rolebindings"), &binding).await;
}

#[tokio::test]
async fn requests_without_rights_are_refused() {
    let (cluster, client) = start().await;
    let anonymous = client.anonymous();
    let (code, refused) = anonymous.get(MAPS).await;
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the \
         namespace \"default\""
    );
    assert_eq!(anonymous.get("/version").await.0, 200);
    assert_eq!(anonymous.get("/readyz").await.0, 200);
    let (code, wrong) = client.with("authorization", "Bearer wrong").get(MAPS).await;
    assert_eq!((code, wrong["reason"].as_str()), (401, Some("Unauthorized")));
    let worker = Client::new(&cluster, &cluster.token_for("default", "worker"));
    assert_eq!(worker.get(MAPS).await.0, 403);
    grant(&client, &["list"]).await;
    assert_eq!(worker.get(MAPS).await.0, 200);
    assert_eq!(worker.post(MAPS, &config_map("a", "1")).await.0, 403);
    assert_eq!(worker.get("/api/v1/configmaps").await.0, 403);
}

#[tokio::test]
async fn an_apply_that_creates_needs_the_right_to_create() {
    let (cluster, client) = start().await;
    grant(&client, &["patch"]).await;
    client.create(MAPS, &config_map("there", "1")).await;
    let worker = Client::new(&cluster, &cluster.token_for("default", "worker"))
        .with("content-type", "application/apply-patch+yaml");
    let apply = async |name: &str| {
        let path = format!("{MAPS}/{name}?fieldManager=test");
        let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"other": "2"}}).to_string();
        let (code, _, body) = worker.whole(http::Method::PATCH, &path, &applied).await;
        (code, String::from_utf8_lossy(&body).into_owned())
    };
    assert_eq!(apply("there").await.0, 200);
    let (code, refused) = apply("new").await;
    assert_eq!(code, 403, "{refused}");
    assert!(refused.contains("cannot create resource"), "{refused}");
}

#[tokio::test]
async fn a_token_request_returns_a_token() {
    let (cluster, client) = start().await;
    client
        .create("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "worker"}}))
        .await;
    let path = "/api/v1/namespaces/default/serviceaccounts/worker/token";
    let answer = client.create(path, &json!({"spec": {"expirationSeconds": 7200}})).await;
    assert_eq!(answer["spec"]["expirationSeconds"], 7200);
    let worker = Client::new(&cluster, answer["status"]["token"].as_str().unwrap());
    let me = worker.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
    assert_eq!(me["status"]["userInfo"]["username"], "system:serviceaccount:default:worker");
    assert_eq!(client.post(&path.replace("worker", "none"), &json!({})).await.0, 404);
}

#[tokio::test]
async fn a_token_becomes_invalid_with_its_account() {
    let (cluster, client) = start().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client.create(accounts, &json!({"metadata": {"name": "worker"}})).await;
    let path = format!("{accounts}/worker/token");
    let (code, refused) = client.post(&path, &json!({"spec": {"expirationSeconds": 60}})).await;
    assert_eq!(code, 422, "{refused}");
    let answer = client.create(&path, &json!({})).await;
    assert_eq!(answer["spec"]["audiences"], json!(["https://kubernetes.default.svc"]));
    let worker = Client::new(&cluster, answer["status"]["token"].as_str().unwrap());
    assert_eq!(worker.get(MAPS).await.0, 403);
    client.delete(&format!("{accounts}/worker")).await;
    assert_eq!(worker.get(MAPS).await.0, 401);
    // A recreated account with this name is another account.
    client.create(accounts, &json!({"metadata": {"name": "worker"}})).await;
    assert_eq!(worker.get(MAPS).await.0, 401);
}

#[tokio::test]
async fn a_bound_token_becomes_invalid_with_its_pod() {
    let (cluster, client) = start().await;
    client
        .create("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "worker"}}))
        .await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, account: &str| {
        let spec = json!({"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    client.create(pods, &pod("mine", "worker")).await;
    client.create(pods, &pod("others", "default")).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/worker/token";
    let bound =
        |name: &str| json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name}}});
    assert_eq!(client.post(path, &bound("none")).await.0, 404);
    assert_eq!(client.post(path, &bound("others")).await.0, 400);
    let answer = client.create(path, &bound("mine")).await;
    let worker = Client::new(&cluster, answer["status"]["token"].as_str().unwrap());
    assert_eq!(worker.get(MAPS).await.0, 403);
    client.delete(&format!("{pods}/mine")).await;
    assert_eq!(worker.get(MAPS).await.0, 401);
}

#[tokio::test]
async fn a_token_is_valid_for_its_audiences_only() {
    let (cluster, client) = start().await;
    client
        .create("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "worker"}}))
        .await;
    let path = "/api/v1/namespaces/default/serviceaccounts/worker/token";
    let answer = client.create(path, &json!({"spec": {"audiences": ["vault", "other"]}})).await;
    let token = answer["status"]["token"].as_str().unwrap();
    assert_eq!(Client::new(&cluster, token).get(MAPS).await.0, 401);
    let review = async |audiences: Value| {
        let spec = json!({"token": token, "audiences": audiences});
        client.create("/apis/authentication.k8s.io/v1/tokenreviews", &json!({"spec": spec})).await["status"]
            .clone()
    };
    assert_ne!(review(json!([])).await["authenticated"], true);
    let status = review(json!(["vault", "third"])).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:worker");
}

#[tokio::test]
async fn an_impersonated_account_has_its_groups() {
    let (cluster, client) = start().await;
    let worker = client.with("impersonate-user", "system:serviceaccount:default:worker");
    let me = worker.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
    assert_eq!(
        me["status"]["userInfo"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert_eq!(worker.get(MAPS).await.0, 403);
    grant(&client, &["list"]).await;
    assert_eq!(worker.get(MAPS).await.0, 200);
    // The account itself has no right to impersonate.
    let worker = Client::new(&cluster, &cluster.token_for("default", "worker"));
    let (code, refused) = worker.with("impersonate-user", "bob").get(MAPS).await;
    assert_eq!(code, 403, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("cannot impersonate"), "{refused}");
}

#[tokio::test]
async fn an_access_review_returns_whether_a_request_would_be_allowed() {
    let (_cluster, client) = start().await;
    grant(&client, &["list"]).await;
    let review = |verb: &str| {
        json!({"spec": {
            "user": "system:serviceaccount:default:worker",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": "default"},
        }})
    };
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let allowed = |answer: Value| answer["status"]["allowed"].as_bool();
    assert_eq!(allowed(client.create(path, &review("list")).await), Some(true));
    assert_eq!(allowed(client.create(path, &review("delete")).await), Some(false));
    assert_eq!(client.get(path).await.0, 405);
}

#[tokio::test]
async fn a_right_to_one_name_suffices_to_list_it() {
    let (_cluster, client) = start().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules =
        json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}]);
    client.create(&format!("{rbac}/roles"), &json!({"metadata": {"name": "one"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
        "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    client.create(&format!("{rbac}/rolebindings"), &binding).await;
    let bob = client.with("impersonate-user", "bob");
    assert_eq!(bob.get(&format!("{MAPS}?fieldSelector=metadata.name%3Da")).await.0, 200);
    assert_eq!(bob.get(&format!("{MAPS}?fieldSelector=metadata.name%3Db")).await.0, 403);
    assert_eq!(bob.get(MAPS).await.0, 403);
}
