//! An API server under test, real or embedded, with an administrator's client.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use kube::Client;
use kube::config::Kubeconfig;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::host_process::{HostProcess, binary};

/// The account that the host runs as.
pub const HOST_ACCOUNT: (&str, &str) = ("oarlock-system", "oarlock");

/// An administrator's client of an API server, and a folder for files of tests.
pub struct Cluster {
    /// The administrator's client.
    pub client: Client,
    kubeconfig: Kubeconfig,
    folder: TempDir,
}

// === impl Cluster ===

impl Cluster {
    /// Connects with an administrator's kubeconfig.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be used.
    pub async fn connect(kubeconfig: Kubeconfig) -> anyhow::Result<Self> {
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &Default::default()).await?;
        // A test that measures an outage must not wait for the client's own back-off.
        config.default_retry = false;
        let client = Client::try_from(config)?;
        Ok(Self { client, kubeconfig, folder: tempfile::tempdir()? })
    }

    /// Returns a path in a folder that is removed with this value.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a request. A patch is a merge patch.
    ///
    /// # Errors
    ///
    /// Those of the API server.
    pub async fn request(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        request(&self.client, method, path, body).await
    }

    /// Makes a request as another user, who has the group of all users and no other.
    ///
    /// # Errors
    ///
    /// Those of the API server.
    pub async fn request_as(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let headers = [("content-type", content_type(method)), ("impersonate-user", user)];
        send(&self.client, method, path, &headers, body).await
    }

    /// Applies objects, as `kubectl apply --server-side` does. A field that a kind does not have is an error.
    ///
    /// # Errors
    ///
    /// The first error of the API server.
    pub async fn apply(&self, yaml: &str) -> anyhow::Result<()> {
        for object in objects(yaml)? {
            self.apply_object(&object, "").await?;
        }
        Ok(())
    }

    /// Has the API server check objects as [`Cluster::apply`] does, without storing them.
    ///
    /// # Errors
    ///
    /// The first error of the API server.
    pub async fn dry_run(&self, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            self.apply_object(object, "&dryRun=All").await?;
        }
        Ok(())
    }

    /// Deletes an object, as `kubectl delete` does.
    ///
    /// # Errors
    ///
    /// Those of the API server.
    pub async fn delete(&self, object: &Value) -> anyhow::Result<()> {
        self.request("DELETE", &path_of(object)?, None).await?;
        Ok(())
    }

    async fn apply_object(&self, object: &Value, parameters: &str) -> anyhow::Result<()> {
        let path = path_of(object)?;
        let path = format!("{path}?fieldManager=tests&force=true&fieldValidation=Strict{parameters}");
        let headers = [("content-type", "application/apply-patch+yaml")];
        send(&self.client, "PATCH", &path, &headers, Some(object)).await?;
        Ok(())
    }

    /// Applies the rights that `oarlock rbac` prints for the host and these plugins. Returns a kubeconfig of
    /// the host's account.
    ///
    /// # Errors
    ///
    /// When `oarlock rbac` fails, or the API server refuses its output.
    pub async fn provision(&self, plugins: &[PathBuf]) -> anyhow::Result<PathBuf> {
        let (namespace, name) = HOST_ACCOUNT;
        let mut rbac = Command::new(binary("oarlock")?);
        let printed = rbac.args(["rbac", "--leader-elect"]).args(plugins).output().await?;
        ensure!(printed.status.success(), "oarlock rbac: {}", String::from_utf8_lossy(&printed.stderr));
        let namespaces = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        self.apply(&namespaces.to_string()).await?;
        self.apply(&String::from_utf8(printed.stdout)?).await?;
        self.kubeconfig_for(namespace, name).await
    }

    /// Writes a kubeconfig with a token of a ServiceAccount.
    ///
    /// # Errors
    ///
    /// When the API server issues no token.
    pub async fn kubeconfig_for(&self, namespace: &str, name: &str) -> anyhow::Result<PathBuf> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let answer = self.request("POST", &path, Some(&request)).await?;
        let token = answer["status"]["token"].as_str().context("the answer to a TokenRequest has a token")?;
        let mut kubeconfig = serde_json::to_value(&self.kubeconfig)?;
        for user in kubeconfig["users"].as_array_mut().context("a kubeconfig has users")? {
            user["user"] = json!({"token": token});
        }
        let file = self.path(&format!("{namespace}-{name}.kubeconfig"));
        std::fs::write(&file, serde_json::to_vec(&kubeconfig)?)?;
        Ok(file)
    }

    /// Starts `oarlock run` with a kubeconfig and plugins.
    ///
    /// # Errors
    ///
    /// When the binary is missing.
    pub fn run(&self, kubeconfig: &Path, plugins: &[PathBuf]) -> anyhow::Result<HostProcess> {
        let mut arguments = vec!["run".into(), "--kubeconfig".into(), kubeconfig.as_os_str().to_owned()];
        for plugin in plugins {
            arguments.extend(["--plugins".into(), plugin.as_os_str().to_owned()]);
        }
        HostProcess::start(arguments)
    }

    /// Starts `oarlock run --leader-elect` with a kubeconfig and plugins. The Lease expires after a few
    /// seconds.
    ///
    /// # Errors
    ///
    /// When the binary is missing.
    pub fn run_candidate(&self, kubeconfig: &Path, plugins: &[PathBuf]) -> anyhow::Result<HostProcess> {
        let mut arguments = vec!["run".into(), "--kubeconfig".into(), kubeconfig.as_os_str().to_owned()];
        for plugin in plugins {
            arguments.extend(["--plugins".into(), plugin.as_os_str().to_owned()]);
        }
        arguments.extend(election_arguments());
        HostProcess::start(arguments)
    }
}

/// Makes a request. A patch is a merge patch.
pub(crate) async fn request(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<Value> {
    send(client, method, path, &[("content-type", content_type(method))], body).await
}

fn content_type(method: &str) -> &'static str {
    if method == "PATCH" { "application/merge-patch+json" } else { "application/json" }
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> anyhow::Result<Value> {
    let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let text = client.request_text(request.body(body)?).await;
    Ok(serde_json::from_str(&text.with_context(|| format!("{method} {path}"))?)?)
}

/// Returns the arguments of a host that takes part in an election with a short Lease.
#[must_use]
pub fn election_arguments() -> Vec<OsString> {
    let times = [
        ("--leader-elect-resource-namespace", HOST_ACCOUNT.0),
        ("--leader-elect-lease-duration", "4s"),
        ("--leader-elect-renew-deadline", "3s"),
        ("--leader-elect-retry-period", "500ms"),
    ];
    let times = times.into_iter().flat_map(|(flag, value)| [flag, value]);
    std::iter::once("--leader-elect").chain(times).map(OsString::from).collect()
}

/// Returns the objects of a stream of YAML documents.
///
/// # Errors
///
/// When a document is no YAML.
pub fn objects(yaml: &str) -> anyhow::Result<Vec<Value>> {
    let documents = serde_norway::Deserializer::from_str(yaml).map(Value::deserialize);
    let objects: Result<Vec<_>, _> = documents.collect();
    Ok(objects?.into_iter().filter(|object| !object.is_null()).collect())
}

/// Returns the path of an object. Supports the kinds that tests apply.
fn path_of(object: &Value) -> anyhow::Result<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let resource = match kind {
        "ClusterPlugin" => "clusterplugins",
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "ConfigMap" => "configmaps",
        "CustomResourceDefinition" => "customresourcedefinitions",
        "Deployment" => "deployments",
        "Namespace" => "namespaces",
        "NetworkPolicy" => "networkpolicies",
        "Plugin" => "plugins",
        "Pod" => "pods",
        "PodDisruptionBudget" => "poddisruptionbudgets",
        "Role" => "roles",
        "RoleBinding" => "rolebindings",
        "Service" => "services",
        "ServiceAccount" => "serviceaccounts",
        "PodMonitor" => "podmonitors",
        "PrometheusRule" => "prometheusrules",
        "ServiceMonitor" => "servicemonitors",
        "ValidatingAdmissionPolicy" => "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding" => "validatingadmissionpolicybindings",
        _ => bail!("tests do not apply a {kind}"),
    };
    let version = object["apiVersion"].as_str().context("an object has an apiVersion")?;
    let group = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let name = object["metadata"]["name"].as_str().context("an object has a name")?;
    Ok(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{resource}/{name}"),
        None => format!("{group}/{resource}/{name}"),
    })
}
