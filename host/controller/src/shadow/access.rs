//! The access of a plugin whose writes are compared, and of its shadow, whose writes are withheld.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_plugin::contract::{
    Error, GroupVersionResource, Namespaces, ObjectKey, Page, PageRequest, PatchKind, Preconditions,
    Projection, Propagation, Row, WorkKey, Written,
};
use oarlock_plugin::kube_access::{GuestEvent, KubeAccess, Selectors};
use serde_json::Value;

use super::Side;
use super::comparison::{Comparison, Target};

/// An access with its writes compared.
pub(super) struct Compared {
    inner: Arc<dyn KubeAccess>,
    side: Side,
    comparison: Arc<Comparison>,
}

// === impl Compared ===

impl Compared {
    pub(super) fn new(inner: Arc<dyn KubeAccess>, side: Side, comparison: Arc<Comparison>) -> Self {
        Self { inner, side, comparison }
    }

    fn withholds(&self) -> bool {
        self.side == Side::Shadow
    }

    fn wrote(
        &self,
        verb: &'static str,
        target: &GroupVersionResource,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &str,
    ) {
        let group = if target.group.is_empty() { String::new() } else { format!(".{}", target.group) };
        let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        let plural = &target.plural;
        let object = match namespace {
            "" => format!("{plural}{group}{part} {name}"),
            namespace => format!("{plural}{group}{part} {namespace}/{name}"),
        };
        self.comparison.wrote(self.side, Target { verb, object }, body);
    }

    /// Returns what a write of an existing object would have returned: the object as it is.
    async fn as_it_is(&self, target: &GroupVersionResource, key: &ObjectKey) -> Result<Written, Error> {
        let json = self.inner.client_get(target, key, "").await?;
        let object: Value = serde_json::from_str(&json).unwrap_or_default();
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Written {
            name: key.name.clone(),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
        })
    }

    /// Returns what a write that may create the object would have returned. A new object has a made-up uid,
    /// and a resourceVersion that every cache has seen.
    async fn as_if_created(&self, target: &GroupVersionResource, key: &ObjectKey) -> Result<Written, Error> {
        match self.as_it_is(target, key).await {
            Err(Error::NotFound(_)) => Ok(Written {
                name: key.name.clone(),
                uid: "00000000-0000-4000-8000-000000000000".to_owned(),
                resource_version: "1".to_owned(),
            }),
            other => other,
        }
    }
}

/// Returns the name of a new object: for `generateName`, what the API server could have made of it.
fn name_in(json: &str) -> String {
    let object: Value = serde_json::from_str(json).unwrap_or_default();
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    match (text("/metadata/name"), text("/metadata/generateName")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}00000"),
        (None, None) => String::new(),
    }
}

#[async_trait]
impl KubeAccess for Compared {
    fn run_begins(&self, key: &WorkKey) -> Option<Arc<dyn KubeAccess>> {
        let Self { inner, side, comparison } = self;
        let run = inner.run_begins(key)?;
        Some(Arc::new(Self { inner: run, side: *side, comparison: comparison.clone() }))
    }

    fn run_succeeded(&self) {
        self.inner.run_succeeded();
    }

    async fn cache_get(&self, lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error> {
        self.inner.cache_get(lister, key, projection).await
    }

    async fn cache_list(
        &self,
        lister: &str,
        namespaces: &Namespaces,
        label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.inner.cache_list(lister, namespaces, label_selector, projection, page).await
    }

    async fn cache_by_index(
        &self,
        index: &str,
        value: &str,
        namespaces: &Namespaces,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.inner.cache_by_index(index, value, namespaces, projection, page).await
    }

    async fn cache_index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        self.inner.cache_index_values(index).await
    }

    async fn cache_has_synced(&self, lister: &str) -> Result<bool, Error> {
        self.inner.cache_has_synced(lister).await
    }

    async fn cache_wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        self.inner.cache_wait_until_seen(lister, resource_version, timeout).await
    }

    async fn client_get(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<String, Error> {
        self.inner.client_get(target, key, subresource).await
    }

    async fn client_list(
        &self,
        target: &GroupVersionResource,
        namespaces: &Namespaces,
        selectors: Selectors<'_>,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.inner.client_list(target, namespaces, selectors, projection, page).await
    }

    async fn client_create(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
        json: String,
    ) -> Result<Written, Error> {
        let name = name_in(&json);
        if self.withholds() {
            self.wrote("create", target, namespace, &name, "", &json);
            let key = ObjectKey { namespace: namespace.to_owned(), name };
            return self.as_if_created(target, &key).await;
        }
        let written = self.inner.client_create(target, namespace, json.clone()).await?;
        self.wrote("create", target, namespace, &name, "", &json);
        Ok(written)
    }

    async fn client_apply(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
        force: bool,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        if self.withholds() {
            self.wrote("apply", target, &key.namespace, &key.name, subresource, &json);
            return self.as_if_created(target, key).await;
        }
        let written =
            self.inner.client_apply(target, key, subresource, json.clone(), force, preconditions).await?;
        self.wrote("apply", target, &key.namespace, &key.name, subresource, &json);
        Ok(written)
    }

    async fn client_patch(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        kind: PatchKind,
        body: String,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        if self.withholds() {
            self.wrote("patch", target, &key.namespace, &key.name, subresource, &body);
            return self.as_it_is(target, key).await;
        }
        let written =
            self.inner.client_patch(target, key, subresource, kind, body.clone(), preconditions).await?;
        self.wrote("patch", target, &key.namespace, &key.name, subresource, &body);
        Ok(written)
    }

    async fn client_replace(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
    ) -> Result<Written, Error> {
        if self.withholds() {
            self.wrote("replace", target, &key.namespace, &key.name, subresource, &json);
            return self.as_it_is(target, key).await;
        }
        let written = self.inner.client_replace(target, key, subresource, json.clone()).await?;
        self.wrote("replace", target, &key.namespace, &key.name, subresource, &json);
        Ok(written)
    }

    async fn client_delete(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        propagation: Propagation,
        grace_period_seconds: Option<u32>,
        preconditions: &Preconditions,
    ) -> Result<(), Error> {
        let body = format!(r#"{{"propagation":"{propagation:?}","grace":"{grace_period_seconds:?}"}}"#);
        if self.withholds() {
            self.wrote("delete", target, &key.namespace, &key.name, "", &body);
            return Ok(());
        }
        self.inner.client_delete(target, key, propagation, grace_period_seconds, preconditions).await?;
        self.wrote("delete", target, &key.namespace, &key.name, "", &body);
        Ok(())
    }

    fn queue_add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), Error> {
        self.inner.queue_add(key, delay)
    }

    fn event_emit(&self, event: GuestEvent) -> Result<(), Error> {
        if self.withholds() { Ok(()) } else { self.inner.event_emit(event) }
    }
}
