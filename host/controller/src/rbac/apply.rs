//! Applies a manifest to an API server. `oarlock dev` uses it for its own.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Item, Manifest, metadata};

/// The field manager of everything applied here.
const FIELD_MANAGER: &str = "oarlock";

/// The API server refused an object.
#[derive(Debug, thiserror::Error)]
#[error("cannot apply {kind} {name}")]
pub struct ApplyError {
    kind: String,
    name: String,
    source: kube::Error,
}

// === impl Manifest ===

impl Manifest {
    /// Applies every object by server-side apply, namespaces first, as the user of `client`.
    ///
    /// Stops at the first error. It is safe to apply again.
    pub async fn apply(&self, client: &kube::Client) -> Result<(), ApplyError> {
        for name in self.namespaces() {
            let namespace = Namespace { metadata: metadata(&name, None), ..Namespace::default() };
            apply(Api::all(client.clone()), &namespace).await?;
        }
        for item in self.items() {
            let namespace = item.metadata().namespace.as_deref().unwrap_or_default();
            match item {
                Item::ServiceAccount(it) => apply(Api::namespaced(client.clone(), namespace), it).await?,
                Item::ClusterRole(it) => apply(Api::all(client.clone()), it).await?,
                Item::ClusterRoleBinding(it) => apply(Api::all(client.clone()), it).await?,
                Item::Role(it) => apply(Api::namespaced(client.clone(), namespace), it).await?,
                Item::RoleBinding(it) => apply(Api::namespaced(client.clone(), namespace), it).await?,
            }
        }
        Ok(())
    }
}

async fn apply<K>(api: Api<K>, object: &K) -> Result<(), ApplyError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = object.meta().name.clone().unwrap_or_default();
    api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object))
        .await
        .map_err(|source| ApplyError { kind: K::kind(&()).into_owned(), name, source })?;
    Ok(())
}
