//! The access of a plugin whose writes are compared, and of its shadow, whose writes are withheld.

use std::sync::Arc;

use async_trait::async_trait;
use oarlock_plugin::contract::{
    Error, GroupVersionResource, Namespaces, ObjectKey, Page, PageRequest, PatchKind, Preconditions,
    Projection, Propagation, Written,
};
use oarlock_plugin::kube_access::{ClientAccess, EventsAccess, GuestEvent, KubeAccess, Selectors};
use serde_json::Value;

use super::Side;
use super::comparison::{Comparison, Target};

/// The requests and Events of an access, with the writes compared.
pub(super) struct Compared {
    client: Arc<dyn ClientAccess>,
    events: Arc<dyn EventsAccess>,
    side: Side,
    comparison: Arc<Comparison>,
}

// === impl Compared ===

impl Compared {
    /// Returns the access with its writes compared: withheld for a shadow.
    pub(super) fn wrap(access: KubeAccess, side: Side, comparison: Arc<Comparison>) -> KubeAccess {
        let KubeAccess { cache, client, work_queue, events } = access;
        let compared = Arc::new(Self { client, events, side, comparison });
        KubeAccess { cache, client: compared.clone(), work_queue, events: compared }
    }

    fn withholds(&self) -> bool {
        self.side == Side::Shadow
    }

    /// Returns a copy of a body, if the write is compared.
    fn copy(&self, body: &str) -> Option<String> {
        self.comparison.runs().then(|| body.to_owned())
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
        let json = self.client.get(target, key, "").await?;
        let object: Value = serde_json::from_str(&json).unwrap_or_default();
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Written {
            name: key.name.clone(),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
        })
    }

    /// Returns what a write of an object would have returned. An account that may write the object may lack
    /// the right to get it: then its write succeeds, although the host cannot know the object.
    async fn as_if_written(&self, target: &GroupVersionResource, key: &ObjectKey) -> Result<Written, Error> {
        match self.as_it_is(target, key).await {
            Err(Error::Forbidden(_)) => Ok(made_up(key)),
            other => other,
        }
    }

    /// Returns what a write that may create the object would have returned.
    async fn as_if_created(&self, target: &GroupVersionResource, key: &ObjectKey) -> Result<Written, Error> {
        match self.as_if_written(target, key).await {
            Err(Error::NotFound(_)) => Ok(made_up(key)),
            other => other,
        }
    }
}

/// Returns the answer to the write of an object that does not exist, or that the account may not get: it has
/// a made-up uid, and a resourceVersion that every cache has seen.
fn made_up(key: &ObjectKey) -> Written {
    Written {
        name: key.name.clone(),
        uid: "00000000-0000-4000-8000-000000000000".to_owned(),
        resource_version: "1".to_owned(),
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
impl ClientAccess for Compared {
    async fn get(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<String, Error> {
        self.client.get(target, key, subresource).await
    }

    async fn list(
        &self,
        target: &GroupVersionResource,
        namespaces: &Namespaces,
        selectors: Selectors<'_>,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.client.list(target, namespaces, selectors, projection, page).await
    }

    async fn create(
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
        let copy = self.copy(&json);
        let written = self.client.create(target, namespace, json).await?;
        if let Some(json) = &copy {
            self.wrote("create", target, namespace, &name, "", json);
        }
        Ok(written)
    }

    async fn apply(
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
        let copy = self.copy(&json);
        let written = self.client.apply(target, key, subresource, json, force, preconditions).await?;
        if let Some(json) = &copy {
            self.wrote("apply", target, &key.namespace, &key.name, subresource, json);
        }
        Ok(written)
    }

    async fn patch(
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
            return self.as_if_written(target, key).await;
        }
        let copy = self.copy(&body);
        let written = self.client.patch(target, key, subresource, kind, body, preconditions).await?;
        if let Some(body) = &copy {
            self.wrote("patch", target, &key.namespace, &key.name, subresource, body);
        }
        Ok(written)
    }

    async fn replace(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
    ) -> Result<Written, Error> {
        if self.withholds() {
            self.wrote("replace", target, &key.namespace, &key.name, subresource, &json);
            return self.as_if_written(target, key).await;
        }
        let copy = self.copy(&json);
        let written = self.client.replace(target, key, subresource, json).await?;
        if let Some(json) = &copy {
            self.wrote("replace", target, &key.namespace, &key.name, subresource, json);
        }
        Ok(written)
    }

    async fn delete(
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
        self.client.delete(target, key, propagation, grace_period_seconds, preconditions).await?;
        self.wrote("delete", target, &key.namespace, &key.name, "", &body);
        Ok(())
    }
}

impl EventsAccess for Compared {
    fn emit(&self, event: GuestEvent) -> Result<(), Error> {
        if self.withholds() { Ok(()) } else { self.events.emit(event) }
    }
}

#[cfg(test)]
mod tests;
