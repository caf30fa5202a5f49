//! The versions that passed their probation, in the statuses of objects, and fetching them again: a host that
//! keeps no version of a plugin, such as one in a fresh Pod, can go back to them, too.

use std::collections::BTreeSet;
use std::sync::Arc;

use oarlock_component_source::CachedComponent;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::controller::PluginResources;
use super::definitions::PluginKey;
use super::resolve::{Resolved, Subject};
use super::status_writer::View;
use super::statuses;
use super::types::{GoodVersion, PluginSpec, PluginStatus};
use crate::config::PluginFile;
use crate::state_folder::VersionId;

/// The most versions that a status names.
const MAX_VERSIONS: usize = 2;

/// The longest spec that a status has.
const LONGEST_SPEC: usize = 64 << 10;

/// Asks for versions that the statuses of objects name. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct GoodVersions {
    requests: mpsc::Sender<Request>,
}

/// A version that was fetched again.
pub(crate) struct StatedVersion {
    pub(crate) file: PluginFile,
    /// The version that the component stated.
    pub(crate) version: String,
    /// The component, which the cache keeps while this value lives.
    pub(crate) component: CachedComponent,
}

/// One request, and where its answer goes.
pub(crate) struct Request {
    plugin: Arc<str>,
    /// The ids of the versions that are not wanted.
    unwanted: BTreeSet<String>,
    reply: oneshot::Sender<Result<Option<StatedVersion>, String>>,
}

// === impl GoodVersions ===

impl GoodVersions {
    /// Returns the two ends of the channel for requests.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (requests, receiver) = mpsc::channel(16);
        (Self { requests }, receiver)
    }

    /// Fetches the newest version that the status of a plugin's object names and that is wanted. Returns none
    /// if there is no such version, and why the newest of them cannot be had.
    pub(crate) async fn fetch(
        &self,
        plugin: &Arc<str>,
        unwanted: BTreeSet<String>,
    ) -> Result<Option<StatedVersion>, String> {
        let (reply, answer) = oneshot::channel();
        let request = Request { plugin: plugin.clone(), unwanted, reply };
        // A host that runs no objects, or that ends, drops the receiver.
        if self.requests.send(request).await.is_err() {
            return Ok(None);
        }
        answer.await.unwrap_or(Ok(None))
    }
}

// === impl PluginResources ===

impl PluginResources {
    /// Answers a request.
    pub(super) async fn answer(&self, request: Request) {
        let Request { plugin, unwanted, reply } = request;
        // The plugin may have been unloaded.
        let _ = reply.send(self.fetch_good(&plugin, &unwanted).await);
    }

    async fn fetch_good(
        &self,
        plugin: &str,
        unwanted: &BTreeSet<String>,
    ) -> Result<Option<StatedVersion>, String> {
        let key = self.records.lock().keys().find(|it| it.host_name() == plugin).cloned();
        let Some((key, object)) = key.and_then(|key| Some((key.clone(), self.object(&key)?))) else {
            return Ok(None);
        };
        let status = statuses::read(&object.json()).unwrap_or_default();
        let _turn = self.turns.acquire(&key.namespace).await;
        let mut why_not = None;
        for version in status.good_versions.into_iter().rev().filter(|it| !unwanted.contains(&it.id)) {
            let name = format!("version {} ({})", version.version, version.digest);
            match self.fetch_one(&key, &object.uid(), version).await {
                // What its spec refers to may have changed since.
                Ok(found) if unwanted.contains(&id_of(&found.component, &found.file).to_string()) => {}
                Ok(found) => return Ok(Some(found)),
                Err(error) => _ = why_not.get_or_insert(format!("{name}: {error}")),
            }
        }
        why_not.map_or(Ok(None), Err)
    }

    async fn fetch_one(
        &self,
        key: &PluginKey,
        uid: &str,
        version: GoodVersion,
    ) -> Result<StatedVersion, String> {
        let GoodVersion { version, digest, spec, .. } = version;
        let spec = spec.ok_or("its spec is too long for the status")?;
        let spec: PluginSpec = serde_json::from_value(Value::Object(spec))
            .map_err(|error| format!("its spec cannot be read: {error}"))?;
        let subject = Subject { key, uid, spec: &spec };
        let resolved = self.resolver().resolve(&subject, &mut None).await.map_err(|it| it.message)?;
        let Resolved { file, component, .. } = resolved;
        if component.digest().to_string() != digest {
            return Err(format!("its source has another component now, {}", component.digest()));
        }
        Ok(StatedVersion { file, version, component })
    }
}

/// Returns the versions that a status names after the newest version passed its probation; none if it did
/// not. `spec` returns the spec that this version was made of.
pub(super) fn after(
    before: &PluginStatus,
    view: &View<'_>,
    spec: impl FnOnce() -> Option<Map<String, Value>>,
) -> Option<Vec<GoodVersion>> {
    let (id, version, digest) = passed(view)?;
    let mut versions = before.good_versions.clone();
    if versions.last().is_some_and(|it| it.id == id) {
        return Some(versions);
    }
    let spec = spec()?;
    let rolled_back = view.loaded.and_then(|it| it.rolled_back.as_deref()).unwrap_or_default();
    versions.retain(|it| it.id != id && rolled_back.iter().all(|entry| entry.id != it.id));
    let surplus = (versions.len() + 1).saturating_sub(MAX_VERSIONS);
    versions.drain(..surplus);
    let resolved = view.resolution.as_ref().ok().and_then(|it| it.resolved.as_deref());
    let spec = Some(pinned(spec, resolved)).filter(|it| json!(it).to_string().len() <= LONGEST_SPEC);
    versions.push(GoodVersion { id, version, digest, spec });
    Some(versions)
}

/// Returns the id, the version and the digest of the newest version, if it serves and passed its probation.
fn passed(view: &View<'_>) -> Option<(String, String, String)> {
    let (resolved, loaded) = (view.resolution.as_ref().ok()?, view.loaded?);
    let serving = loaded.generations.iter().find(|it| it.number == loaded.generation)?;
    let component = &resolved.component;
    let is_newest = !view.is_in_progress()
        && loaded.refused.is_none()
        && loaded.digest.as_ref().is_some_and(|it| *it == component.digest().to_hex());
    (is_newest && serving.passed_probation).then(|| {
        let id = id_of(component, &resolved.file).to_string();
        (id, loaded.version.clone().unwrap_or_default(), component.digest().to_string())
    })
}

fn id_of(component: &CachedComponent, file: &PluginFile) -> VersionId {
    VersionId::of_hex(&component.digest().to_hex(), file)
}

/// Returns a spec whose tag names the manifest that it named when it was resolved. A shadow is no part of a
/// version.
fn pinned(mut spec: Map<String, Value>, resolved: Option<&str>) -> Map<String, Value> {
    spec.remove("shadow");
    let reference = spec.get_mut("source").and_then(|it| it.pointer_mut("/oci/reference"));
    if let (Some(Value::String(reference)), Some(digest)) = (reference, resolved)
        && !reference.contains('@')
    {
        reference.push('@');
        reference.push_str(digest);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_of_a_version_names_its_manifest_and_has_no_shadow() {
        let source = |reference: &str| json!({"oci": {"reference": reference}});
        let spec = json!({"source": source("r/a:1"), "shadow": {"source": source("r/a:2")}});
        let Value::Object(spec) = spec else { unreachable!() };
        let pinned = pinned(spec, Some("sha256:ab"));
        assert_eq!(json!(pinned), json!({"source": source("r/a:1@sha256:ab")}));
    }
}
