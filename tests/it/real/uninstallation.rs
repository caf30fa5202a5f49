//! The uninstallation on a real API server: of the chart with Helm, and of the printed manifests.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use kube::config::Kubeconfig;
use oarlock_built_guests::component;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane;
use oarlock_tests::host_process::{binary, checkout};
use oarlock_tests::manifests::{IMAGE, printed};
use oarlock_tests::tool::{self, output};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/oarlock-system/deployments/oarlock";
const BUDGET: &str = "/apis/policy/v1/namespaces/oarlock-system/poddisruptionbudgets/oarlock";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases";
/// What `helm uninstall` leaves beside the namespace.
const LEFT_BY_HELM: [&str; 3] = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/plugins.oarlock.dev",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterplugins.oarlock.dev",
    "/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/oarlock",
];

#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_and_uninstalls_the_chart() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("kubeconfig"), control_plane.kubeconfig())?;
    let chart = checkout().join("deploy/helm/oarlock");
    let chart = chart.to_str().context("the path of the checkout is text")?;

    let image = format!("image.repository={IMAGE}");
    helm(folder.path(), &["install", "oarlock", chart, "--create-namespace", "--set", &image])?;
    let deployment = cluster.request("GET", DEPLOYMENT, None).await?;
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(image_of(&deployment), format!("{IMAGE}:{}", env!("CARGO_PKG_VERSION")));
    cluster.request("GET", BUDGET, None).await?;
    wait_for_the_installation(&cluster).await?;

    let changed = "image.tag=next,replicas=3,podDisruptionBudget.enabled=false";
    helm(folder.path(), &["upgrade", "oarlock", chart, "--set", &image, "--set", changed])?;
    let deployment = cluster.request("GET", DEPLOYMENT, None).await?;
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(image_of(&deployment), format!("{IMAGE}:next"));
    let budget = cluster.request("GET", BUDGET, None).await;
    assert!(budget.is_err(), "{budget:?}");

    // As the host that leads does.
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "oarlock"},
        "spec": {"holderIdentity": "oarlock-0", "leaseDurationSeconds": 15},
    });
    cluster.request("POST", LEASES, Some(&lease)).await?;

    // The commands for the chart in docs/installing.md.
    helm(folder.path(), &["uninstall", "oarlock"])?;
    wait_until("only the definitions, the Lease and the namespace", async || {
        let left = objects_of_oarlock(&cluster).await?;
        let expected = [
            "CustomResourceDefinition /clusterplugins.oarlock.dev",
            "CustomResourceDefinition /plugins.oarlock.dev",
            "Lease oarlock-system/oarlock",
            "Namespace /oarlock-system",
        ];
        ensure!(left == expected, "{left:?}");
        Ok(())
    })
    .await?;
    for path in LEFT_BY_HELM {
        cluster.request("DELETE", path, None).await?;
    }
    wait_for_the_namespace_alone(&cluster).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_manifests_and_the_opt_ins_of_namespaces_leave_nothing() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    let mut objects = printed("oarlock-system")?;
    // A namespace is made before what is in it.
    objects.sort_by_key(|it| it["kind"] != "Namespace");
    for object in &objects {
        cluster.apply(&object.to_string()).await?;
    }
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    cluster.apply(&team.to_string()).await?;
    cluster.apply(&output(Command::new(binary("oarlock")?).args(["rbac", "--namespace", "team-a"]))?).await?;
    cluster.apply(&rights_of_a_plugin(&cluster)?).await?;
    let installed = wait_for_the_installation(&cluster).await?;
    for expected in [
        "ClusterRole /oarlock-plugin-hello",
        "ClusterRoleBinding /oarlock-plugin-hello",
        "RoleBinding team-a/oarlock-impersonator",
        "ServiceAccount team-a/hello",
    ] {
        assert!(installed.iter().any(|it| it == expected), "{expected}: {installed:?}");
    }

    uninstall(&cluster).await
}

/// Returns what `oarlock rbac` prints for a plugin with an account in the namespace team-a.
fn rights_of_a_plugin(cluster: &Cluster) -> anyhow::Result<String> {
    let folder = cluster.path("hello");
    fs::create_dir(&folder)?;
    let file = json!({
        "name": "hello",
        "component": component("hello-rust"),
        "serviceAccount": {"namespace": "team-a", "name": "hello"},
    });
    fs::write(folder.join("plugin.yaml"), file.to_string())?;
    output(Command::new(binary("oarlock")?).arg("rbac").arg(folder))
}

/// Uninstalls the printed manifests, and what `oarlock rbac` printed, as docs/installing.md says. Nothing is
/// left.
pub(super) async fn uninstall(cluster: &Cluster) -> anyhow::Result<()> {
    for object in printed("oarlock-system")? {
        cluster.delete(&object).await?;
    }
    // kubectl delete rolebindings,roles,… --all-namespaces --selector …
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (group, resource) in [
        (rbac, "rolebindings"),
        (rbac, "roles"),
        (rbac, "clusterrolebindings"),
        (rbac, "clusterroles"),
        ("/api/v1", "serviceaccounts"),
    ] {
        let selected = format!("{group}/{resource}?labelSelector=app.kubernetes.io%2Fmanaged-by%3Doarlock");
        let list = cluster.request("GET", &selected, None).await?;
        for object in list["items"].as_array().context("a list has items")? {
            let name = text(&object["metadata"]["name"]);
            let path = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("{group}/namespaces/{namespace}/{resource}/{name}"),
                None => format!("{group}/{resource}/{name}"),
            };
            cluster.request("DELETE", &path, None).await?;
        }
    }
    wait_for_the_namespace_alone(cluster).await
}

async fn wait_for_the_namespace_alone(cluster: &Cluster) -> anyhow::Result<()> {
    wait_until("only the namespace", async || {
        let left = objects_of_oarlock(cluster).await?;
        // The controller that finishes the deletion of a namespace is not part of the API server.
        ensure!(left == ["Namespace /oarlock-system"], "{left:?}");
        Ok(())
    })
    .await
}

/// Waits until the definitions are served, and returns what is installed.
async fn wait_for_the_installation(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    wait_until("the installation", async || {
        let installed = objects_of_oarlock(cluster).await?;
        ensure!(installed.len() > 20, "{installed:?}");
        Ok(installed)
    })
    .await
}

/// Runs Helm with nothing of the user's.
fn helm(folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let mut helm = Command::new(tool::path("helm")?);
    helm.env("HOME", folder).env("KUBECONFIG", folder.join("kubeconfig"));
    output(helm.args(arguments).args(["--namespace", "oarlock-system"]))?;
    Ok(())
}

fn image_of(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

/// Returns the objects of all kinds that have a name or a label of the installation, or are of its kinds.
async fn objects_of_oarlock(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for group_version in group_versions(cluster).await? {
        let resources = cluster.request("GET", &group_version, None).await?;
        for resource in resources["resources"].as_array().context("a group has resources")? {
            let can =
                |verb: &str| resource["verbs"].as_array().is_some_and(|it| it.iter().any(|it| it == verb));
            if !can("list") || !can("delete") {
                continue;
            }
            let (name, kind) = (text(&resource["name"]), text(&resource["kind"]));
            // Kubernetes removes Events after an hour.
            if kind == "Event" {
                continue;
            }
            let list = cluster.request("GET", &format!("{group_version}/{name}"), None).await?;
            for object in list["items"].as_array().context("a list has items")? {
                let metadata = &object["metadata"];
                let id = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
                let labels = &metadata["labels"];
                // The API server makes the APIService of a definition.
                let is_automatic = !labels["kube-aggregator.kubernetes.io/automanaged"].is_null();
                let is_ours = id.contains("oarlock")
                    || labels["app.kubernetes.io/name"] == "oarlock"
                    || labels["app.kubernetes.io/managed-by"] == "oarlock"
                    || metadata["annotations"]["meta.helm.sh/release-name"] == "oarlock"
                    || group_version.starts_with("/apis/oarlock.dev/");
                if is_ours && !is_automatic {
                    found.push(format!("{kind} {id}"));
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the paths of the preferred version of each API group.
async fn group_versions(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let groups = cluster.request("GET", "/apis", None).await?;
    let groups = groups["groups"].as_array().context("the API server has groups")?;
    let preferred =
        groups.iter().map(|it| format!("/apis/{}", text(&it["preferredVersion"]["groupVersion"])));
    Ok(std::iter::once("/api/v1".to_owned()).chain(preferred).collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
