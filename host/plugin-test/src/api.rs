//! The requests of a case: as the administrator, to the embedded API server.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope};
use kube::{Api, Client};
use serde_json::{Value, json};

/// The field manager of everything that a case applies.
const MANAGER: &str = "case";

/// Sends a case's requests.
pub(crate) struct CaseApi {
    client: Client,
    /// What discovery said about kinds.
    kinds: BTreeMap<(String, String), (ApiResource, ApiCapabilities)>,
    /// The namespaces that exist.
    namespaces: BTreeSet<String>,
}

// === impl CaseApi ===

impl CaseApi {
    pub(crate) fn new(client: Client) -> Self {
        let namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];
        Self { client, kinds: BTreeMap::new(), namespaces: namespaces.map(str::to_owned).into() }
    }

    /// Creates or replaces an object, and its status.
    pub(crate) async fn apply(&mut self, object: &Value) -> Result<()> {
        self.make_namespace(object).await?;
        let (api, has_status) = self.api(object).await?;
        let params = PatchParams::apply(MANAGER).force();
        let name = text(object, "/metadata/name");
        let applied = api.patch(name, &params, &Patch::Apply(object)).await.map_err(plain);
        applied.with_context(|| format!("cannot apply {}", shown(object)))?;
        if has_status && object.get("status").is_some() {
            let applied = api.patch_status(name, &params, &Patch::Apply(object)).await.map_err(plain);
            applied.with_context(|| format!("cannot apply the status of {}", shown(object)))?;
        }
        if text(object, "/kind") == "Namespace" {
            self.namespaces.insert(name.to_owned());
        }
        Ok(())
    }

    /// Changes an object by a JSON merge patch, which has the form of an object.
    pub(crate) async fn patch(&mut self, patch: &Value) -> Result<()> {
        let (api, has_status) = self.api(patch).await?;
        let name = text(patch, "/metadata/name");
        let mut rest = patch.clone();
        let status = rest.as_object_mut().filter(|_| has_status).and_then(|it| it.remove("status"));
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let context = || format!("cannot patch {}", shown(patch));
        // A patch of the status alone is one change.
        if status.is_none() || has_changes(&rest) {
            api.patch(name, &params, &Patch::Merge(&rest)).await.map_err(plain).with_context(context)?;
        }
        if let Some(status) = status {
            let status = json!({ "status": status });
            api.patch_status(name, &params, &Patch::Merge(&status))
                .await
                .map_err(plain)
                .with_context(context)?;
        }
        Ok(())
    }

    pub(crate) async fn delete(&mut self, object: &Value) -> Result<()> {
        let (api, _) = self.api(object).await?;
        let deleted =
            api.delete(text(object, "/metadata/name"), &DeleteParams::background()).await.map_err(plain);
        deleted.with_context(|| format!("cannot delete {}", shown(object)))?;
        if text(object, "/kind") == "Namespace" {
            self.namespaces.remove(text(object, "/metadata/name"));
        }
        Ok(())
    }

    /// Returns the current object of this kind and name; null if there is none.
    pub(crate) async fn get(&mut self, object: &Value) -> Result<Value> {
        let (api, _) = self.api(object).await?;
        let found = api.get_opt(text(object, "/metadata/name")).await.map_err(plain);
        let found = found.with_context(|| format!("cannot read {}", shown(object)))?;
        found.map_or(Ok(Value::Null), |found| Ok(serde_json::to_value(found)?))
    }

    /// Creates the namespace of an object, unless it exists.
    async fn make_namespace(&mut self, object: &Value) -> Result<()> {
        let namespace = text(object, "/metadata/namespace");
        if namespace.is_empty() || self.namespaces.contains(namespace) {
            return Ok(());
        }
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        Box::pin(self.apply(&made)).await
    }

    /// Returns the API of an object's kind and namespace, and whether the kind has a status of its own.
    async fn api(&mut self, object: &Value) -> Result<(Api<DynamicObject>, bool)> {
        let kind = (text(object, "/apiVersion").to_owned(), text(object, "/kind").to_owned());
        let (resource, capabilities) = match self.kinds.get(&kind) {
            Some(known) => known.clone(),
            None => {
                let (group, version) = kind.0.rsplit_once('/').unwrap_or(("", &kind.0));
                let gvk = GroupVersionKind::gvk(group, version, &kind.1);
                let found = kube::discovery::pinned_kind(&self.client, &gvk).await;
                let found = found.map_err(|error| not_served(object, error))?;
                self.kinds.insert(kind, found.clone());
                found
            }
        };
        let namespace = text(object, "/metadata/namespace");
        let api = match (capabilities.scope.clone(), namespace) {
            (Scope::Cluster, "") => Api::all_with(self.client.clone(), &resource),
            (Scope::Cluster, _) => bail!("{} has a namespace, but its kind is cluster-scoped", shown(object)),
            (Scope::Namespaced, "") => Api::namespaced_with(self.client.clone(), "default", &resource),
            (Scope::Namespaced, _) => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        let has_status = capabilities.subresources.iter().any(|(it, _)| it.plural == "status");
        Ok((api, has_status))
    }
}

/// Returns an error with the server's message alone.
fn plain(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::anyhow!(status.message),
        error => error.into(),
    }
}

/// Returns the error of an object of whose kind discovery knows nothing.
fn not_served(object: &Value, error: kube::Error) -> anyhow::Error {
    let is_absent = match &error {
        // The text of this one is the debug output of a Rust type.
        kube::Error::Discovery(_) => true,
        kube::Error::Api(status) => status.code == 404,
        _ => false,
    };
    let error = match is_absent {
        true => anyhow::anyhow!("{} {}", text(object, "/apiVersion"), text(object, "/kind")),
        false => plain(error),
    };
    error.context(format!("{} is of a kind that the API server does not serve", shown(object)))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether a patch says more than which object it is for.
fn has_changes(patch: &Value) -> bool {
    let named = |object: &Value, keys: &[&str]| {
        object.as_object().is_some_and(|it| it.keys().any(|key| !keys.contains(&key.as_str())))
    };
    named(patch, &["apiVersion", "kind", "metadata"]) || named(&patch["metadata"], &["name", "namespace"])
}

fn shown(object: &Value) -> String {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    match text(object, "/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use oarlock_dev_cluster::{Config, InProcess};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_not_served_is_named_as_in_a_manifest() {
        let server = InProcess::start(Config::default()).unwrap();
        let mut api = CaseApi::new(Client::new(server.as_admin(), "default"));
        let mut refused = async |api_version: &str, kind: &str| {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            format!("{:#}", api.get(&object).await.unwrap_err())
        };
        let part = "is of a kind that the API server does not serve";
        assert_eq!(
            refused("apps/v1", "Deploymint").await,
            format!("Deploymint a {part}: apps/v1 Deploymint")
        );
        assert_eq!(
            refused("a.example.com/v1", "Boat").await,
            format!("Boat a {part}: a.example.com/v1 Boat")
        );
        assert_eq!(refused("v1", "Podd").await, format!("Podd a {part}: v1 Podd"));
        server.shut_down().await;
    }
}
