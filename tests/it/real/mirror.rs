//! `mirror` runs as its own account: the API server allows what its Role allows, and nothing else.

use kube::config::Kubeconfig;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane;
use oarlock_tests::host_process::{HostProcess, checkout};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_mirror_writes_what_its_role_allows_and_no_more() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    for namespace in ["team-a", "team-b"] {
        cluster
            .request("POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": namespace}})))
            .await?;
    }
    let plugins = [checkout().join("plugins/mirror")];
    let kubeconfig = cluster.provision(&plugins).await?;
    let mut host = cluster.run(&kubeconfig, &plugins)?;

    create(&cluster, "configmaps", "settings", json!({"colour": "blue"})).await?;
    create(&cluster, "secrets", "registry", json!({"token": "c2VjcmV0"})).await?;
    for namespace in ["team-a", "team-b"] {
        until(&cluster, namespace, "configmaps/settings", |copy| copy["data"]["colour"] == "blue").await?;
        until(&cluster, namespace, "secrets/registry", |copy| copy["data"]["token"] == "c2VjcmV0").await?;
    }
    // The API server names the writer.
    let copy = cluster.request("GET", "/api/v1/namespaces/team-a/configmaps/settings", None).await?;
    assert_eq!(copy["metadata"]["managedFields"][0]["manager"], "mirror");

    // Without the right to create Secrets, mirror still copies ConfigMaps; the refusal of the Secret is
    // logged.
    forbid_writing_secrets(&cluster).await?;
    create(&cluster, "secrets", "late", json!({"token": "bGF0ZQ=="})).await?;
    create(&cluster, "configmaps", "late", json!({"still": "works"})).await?;
    until(&cluster, "team-a", "configmaps/late", |copy| copy["data"]["still"] == "works").await?;
    wait_for_refusal(&mut host).await?;
    let refused = cluster.request("GET", "/api/v1/namespaces/team-a/secrets/late", None).await;
    assert!(refused.is_err(), "the Secret must not have been copied");
    Ok(())
}

async fn create(cluster: &Cluster, resource: &str, name: &str, data: Value) -> anyhow::Result<Value> {
    let metadata = json!({"name": name, "annotations": {"oarlock.dev/mirror-to": "team-a,team-b"}});
    let path = format!("/api/v1/namespaces/default/{resource}");
    cluster.request("POST", &path, Some(&json!({"metadata": metadata, "data": data}))).await
}

async fn until(
    cluster: &Cluster,
    namespace: &str,
    object: &str,
    done: impl Fn(&Value) -> bool,
) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/{object}");
    wait_until(&path, async || {
        let answer = cluster.request("GET", &path, None).await;
        if answer.as_ref().is_ok_and(&done) { Ok(()) } else { Err(answer) }
    })
    .await
}

/// Removes the verb `create` for Secrets from every ClusterRole of mirror.
async fn forbid_writing_secrets(cluster: &Cluster) -> anyhow::Result<()> {
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let list = cluster.request("GET", roles, None).await?;
    let mut changed = 0;
    for role in list["items"].as_array().into_iter().flatten() {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        if !name.contains("mirror") {
            continue;
        }
        let mut rules = Vec::new();
        for rule in role["rules"].as_array().into_iter().flatten() {
            let (mut others, mut secrets) = (rule.clone(), rule.clone());
            if let Some(resources) = others["resources"].as_array_mut() {
                resources.retain(|resource| resource != "secrets");
            }
            if let Some(verbs) = secrets["verbs"].as_array_mut() {
                verbs.retain(|verb| verb != "create");
            }
            let is_for_secrets = others["resources"] != rule["resources"];
            if is_for_secrets && secrets["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty()) {
                secrets["resources"] = json!(["secrets"]);
                rules.push(secrets);
            }
            if others["resources"].as_array().is_some_and(|resources| !resources.is_empty()) {
                rules.push(others);
            }
            changed += usize::from(is_for_secrets);
        }
        cluster.request("PATCH", &format!("{roles}/{name}"), Some(&json!({"rules": rules}))).await?;
    }
    assert!(changed > 0, "some ClusterRole of mirror allows to create Secrets");
    Ok(())
}

async fn wait_for_refusal(host: &mut HostProcess) -> anyhow::Result<()> {
    host.wait_for("the refusal", |printed| {
        let text =
            |line: &&Value| line.to_string().contains("forbidden") && line.to_string().contains("late");
        printed.lines.iter().map(AsRef::as_ref).find(text).map(|_| ())
    })
    .await
}
