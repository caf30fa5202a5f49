//! Scratch objects of one example: the ConfigMaps with its label. There are none before and after a run.

#![allow(dead_code, reason = "each example uses a part of it")]

use std::collections::BTreeMap;
use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use kube::{Client, Config};
use oarlock_informer::{
    GroupVersionResource, Object,
    list_watch::{
        api::{self, ApiListWatch},
        transport,
    },
};
use oarlock_label_selector::LabelSelector;

/// The result of an example.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The ConfigMaps with the label `walk-through=EXAMPLE`.
pub(crate) struct Scratch {
    client: Client,
    example: &'static str,
}

impl Scratch {
    /// Connects as `kubectl` does (`KUBECONFIG`, else `~/.kube/config`), and deletes the objects of an
    /// earlier run.
    pub(crate) async fn create(example: &'static str) -> Result<Self> {
        let scratch = Self { client: transport::client(Config::infer().await?)?, example };
        scratch.clear().await?;
        Ok(scratch)
    }

    /// Returns the client. It does not retry, and detects dead connections.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the selector of the objects of this example.
    pub(crate) fn selector(&self) -> Result<LabelSelector> {
        Ok(format!("walk-through={}", self.example).parse()?)
    }

    /// Returns the list-watch of these objects.
    pub(crate) fn list_watch(&self) -> Result<ApiListWatch> {
        let label_selector = self.selector()?;
        let config = api::Config { label_selector, ..api::Config::new(config_maps(), None) };
        Ok(ApiListWatch::new(self.client(), config))
    }

    /// Creates or updates a ConfigMap in namespace `default`; returns its new version.
    pub(crate) async fn put(&self, name: &str, greeting: &str) -> Result<String> {
        self.put_in("default", name, greeting).await
    }

    /// Creates or updates a ConfigMap; returns its new version.
    pub(crate) async fn put_in(&self, namespace: &str, name: &str, greeting: &str) -> Result<String> {
        let labels = BTreeMap::from([("walk-through".to_owned(), self.example.to_owned())]);
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let data = BTreeMap::from([("greeting".to_owned(), greeting.to_owned())]);
        let config_map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
        let parameters = PatchParams::apply("walk-through").force();
        let written = self.api(namespace).patch(name, &parameters, &Patch::Apply(&config_map)).await?;
        Ok(written.metadata.resource_version.unwrap_or_default())
    }

    /// Deletes a ConfigMap of namespace `default`.
    pub(crate) async fn delete(&self, name: &str) -> Result {
        self.api("default").delete(name, &Default::default()).await?;
        Ok(())
    }

    /// Deletes all objects of this example.
    pub(crate) async fn clear(&self) -> Result {
        let selector = self.selector()?.to_string();
        let all: Api<ConfigMap> = Api::all(self.client());
        for found in all.list(&kube::api::ListParams::default().labels(&selector)).await? {
            let (namespace, name) =
                (found.metadata.namespace.unwrap_or_default(), found.metadata.name.unwrap_or_default());
            self.api(&namespace).delete(&name, &Default::default()).await?;
        }
        Ok(())
    }

    fn api(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client(), namespace)
    }
}

/// Returns the resource.
pub(crate) fn config_maps() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "configmaps")
}

/// Returns the name and the greeting of a ConfigMap.
pub(crate) fn show(object: &Object) -> String {
    let greeting = "/data/greeting".parse().ok().and_then(|pointer| object.pointer(&pointer));
    format!("{} {}", object.key().name(), greeting.unwrap_or_default())
}
