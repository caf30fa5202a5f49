//! kubectl as a client. The test is skipped if kubectl is not installed.

use oarlock_dev_cluster::{Config, DevCluster};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

struct Kubectl<'a> {
    kubeconfig: &'a Path,
}

impl Kubectl<'_> {
    async fn run(&self, arguments: &[&str], input: &str) -> String {
        let mut child = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(self.kubeconfig)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    async fn output(&self, arguments: &str) -> String {
        self.run(&arguments.split(' ').collect::<Vec<_>>(), "").await
    }
}

#[tokio::test]
async fn kubectl_reads_and_writes_objects() {
    if Command::new("kubectl").args(["version", "--client"]).output().await.is_err() {
        eprintln!("there is no kubectl here: nothing tested");
        return;
    }
    let cluster = DevCluster::start(Config::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, cluster.kubeconfig()).unwrap();
    let kubectl = Kubectl { kubeconfig: &path };

    assert_eq!(kubectl.output("create configmap a --from-literal=x=y").await, "configmap/a created\n");
    assert_eq!(kubectl.output("label configmap a l=v").await, "configmap/a labeled\n");
    let table = kubectl.output("get cm -l l=v --no-headers").await;
    assert!(table.starts_with("a     1     "), "{table}");
    assert!(kubectl.output("get cm a -o yaml").await.contains("\ndata:\n  x: \"y\"\n"));

    let manifest = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": image}]},
                },
            },
        })
        .to_string()
    };
    let apply = ["apply", "-f", "-"];
    assert_eq!(kubectl.run(&apply, &manifest("one")).await, "deployment.apps/d created\n");
    assert_eq!(kubectl.run(&apply, &manifest("two")).await, "deployment.apps/d configured\n");
    assert_eq!(kubectl.run(&apply, &manifest("two")).await, "deployment.apps/d unchanged\n");
    let image = "-o=jsonpath={.spec.template.spec.containers[*].image}";
    assert_eq!(kubectl.output(&format!("get deploy d {image}")).await, "two");

    for (kind, patch) in [
        ("strategic", r#"{"data":{"s":"1"}}"#),
        ("merge", r#"{"data":{"x":null}}"#),
        ("json", r#"[{"op":"add","path":"/data/j","value":"k"}]"#),
    ] {
        assert_eq!(
            kubectl.output(&format!("patch cm a --type={kind} -p {patch}")).await,
            "configmap/a patched\n"
        );
    }
    assert_eq!(kubectl.output("get cm a -o=jsonpath={.data}").await, r#"{"j":"k","s":"1"}"#);

    assert_eq!(kubectl.output("auth can-i list pods").await, "yes\n");
    assert!(kubectl.output("auth can-i list pods --as bob").await.starts_with("no"));
    assert!(kubectl.output("api-resources").await.contains("deployments"));
    let explained = kubectl.output("explain deployments.spec.replicas").await;
    assert!(explained.contains("FIELD: replicas <integer>"), "{explained}");
    assert!(explained.contains("Number of desired pods."), "{explained}");
    let explained = kubectl.output("explain pod.spec.containers").await;
    assert!(explained.contains("imagePullPolicy\t<string>"), "{explained}");
    assert_eq!(kubectl.output("delete cm a").await, "configmap \"a\" deleted\n");
    assert!(
        kubectl
            .output("get cm a")
            .await
            .starts_with("Error from server (NotFound): configmaps \"a\" not found")
    );
}
