//! The `client` import: live reads and writes as the plugin's account.

use http::Method;
use oarlock_plugin::contract::{
    Error, GroupVersionResource, ObjectKey, PatchKind, Preconditions, Propagation, Written,
};
use oarlock_plugin::guest::host_bytes::Charge;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::own_writes::Before;
use super::request::{Call, Requester};

const JSON: &str = "application/json";

/// The memory of a JSON tree as a multiple of its text, about.
const TREE: usize = 10;

/// The fields of a response that are read after a write.
#[derive(Deserialize, Default)]
struct Answer {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
}

// === impl Requester ===

impl Requester {
    pub(super) async fn get(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<String, Error> {
        let path = self.object_path(target, key, subresource).await?;
        let what = describe("get", target, key);
        let body = self.send(Call { what: &what, ..call(Method::GET, path, Vec::new()) }).await?;
        String::from_utf8(body).map_err(|_| Error::Unavailable(format!("{what}: the response is not text")))
    }

    pub(super) async fn create(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
        json: String,
    ) -> Result<Written, Error> {
        let path = self.collection_path(target, namespace).await?;
        let key = ObjectKey { namespace: namespace.to_owned(), name: String::new() };
        let what = describe("create", target, &key);
        let query = [("fieldManager", &*self.plugin)];
        let call = Call { query: &query, what: &what, ..call(Method::POST, path, json.into_bytes()) };
        written(&what, &self.send(call).await?)
    }

    pub(super) async fn apply(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
        force: bool,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        let path = self.object_path(target, key, subresource).await?;
        let what = describe("apply", target, key);
        let _tree = self.charge_tree(&json, preconditions)?;
        let body = into_metadata(&what, json, preconditions)?;
        let query = [("fieldManager", &*self.plugin), ("force", if force { "true" } else { "false" })];
        let call = Call {
            query: &query,
            // JSON is YAML, and every API server accepts this content type.
            content_type: "application/apply-patch+yaml",
            what: &what,
            preconditions: any(preconditions),
            ..call(Method::PATCH, path, body.into_bytes())
        };
        written(&what, &self.send(call).await?)
    }

    pub(super) async fn patch(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        kind: PatchKind,
        body: String,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        let path = self.object_path(target, key, subresource).await?;
        let what = describe("patch", target, key);
        let _tree = self.charge_tree(&body, preconditions)?;
        let (content_type, body) = match kind {
            PatchKind::JsonPatch => {
                ("application/json-patch+json", into_operations(&what, body, preconditions)?)
            }
            PatchKind::MergePatch => {
                ("application/merge-patch+json", into_metadata(&what, body, preconditions)?)
            }
            PatchKind::StrategicMergePatch => {
                ("application/strategic-merge-patch+json", into_metadata(&what, body, preconditions)?)
            }
        };
        let query = [("fieldManager", &*self.plugin)];
        let call = Call {
            query: &query,
            content_type,
            what: &what,
            preconditions: any(preconditions),
            ..call(Method::PATCH, path, body.into_bytes())
        };
        written(&what, &self.send(call).await?)
    }

    pub(super) async fn replace(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
    ) -> Result<Written, Error> {
        let path = self.object_path(target, key, subresource).await?;
        let what = describe("replace", target, key);
        let query = [("fieldManager", &*self.plugin)];
        let call = Call { query: &query, what: &what, ..call(Method::PUT, path, json.into_bytes()) };
        written(&what, &self.send(call).await?)
    }

    pub(super) async fn delete(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        propagation: Propagation,
        grace_period_seconds: Option<u32>,
        preconditions: &Preconditions,
    ) -> Result<(), Error> {
        let path = self.object_path(target, key, "").await?;
        let what = describe("delete", target, key);
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy });
        if let Some(seconds) = grace_period_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if any(preconditions) {
            complete(&what, preconditions)?;
            options["preconditions"] = Value::Object(fields(preconditions));
        }
        let body = options.to_string().into_bytes();
        self.send(Call { what: &what, ..call(Method::DELETE, path, body) }).await?;
        Ok(())
    }
}

impl Requester {
    /// Charges the JSON tree of a body with preconditions: about ten times its text.
    fn charge_tree(&self, body: &str, preconditions: &Preconditions) -> Result<Option<Charge>, Error> {
        any(preconditions).then(|| self.charge(body.len().saturating_mul(TREE))).transpose()
    }
}

fn call(method: Method, path: String, body: Vec<u8>) -> Call<'static> {
    Call { method, path, query: &[], content_type: JSON, body, what: "", preconditions: false }
}

fn describe(verb: &str, target: &GroupVersionResource, key: &ObjectKey) -> String {
    let GroupVersionResource { plural, .. } = target;
    match (key.namespace.as_str(), key.name.as_str()) {
        ("", "") => format!("{verb} {plural}"),
        ("", name) => format!("{verb} {plural} {name}"),
        (namespace, "") => format!("{verb} {plural} in {namespace}"),
        (namespace, name) => format!("{verb} {plural} {namespace}/{name}"),
    }
}

fn written(what: &str, body: &[u8]) -> Result<Written, Error> {
    let Answer { metadata } = serde_json::from_slice(body).map_err(|error| {
        // The write succeeded, but its version is unknown.
        Error::Timeout(format!("{what}: the write succeeded, but its response cannot be parsed: {error}"))
    })?;
    let Metadata { name, uid, resource_version } = metadata;
    Ok(Written { name, uid, resource_version })
}

/// Returns the resourceVersion of an object's text; empty if it has none.
pub(super) fn version_of(json: &str) -> String {
    serde_json::from_str::<Answer>(json).unwrap_or_default().metadata.resource_version
}

/// Returns the version that a write demands of its object, in its preconditions or in the text of the object.
pub(super) fn version_before(text: &str, preconditions: &Preconditions) -> Before {
    Before::Version(preconditions.resource_version.clone().unwrap_or_else(|| version_of(text)))
}

/// Returns the name of an object's text; empty if it has none, so that the API server chooses one.
pub(super) fn name_of(json: &str) -> String {
    serde_json::from_str::<Answer>(json).unwrap_or_default().metadata.name
}

fn any(preconditions: &Preconditions) -> bool {
    preconditions.uid.is_some() || preconditions.resource_version.is_some()
}

/// Refuses empty preconditions, which the API server would ignore.
fn complete(what: &str, preconditions: &Preconditions) -> Result<(), Error> {
    let Preconditions { uid, resource_version } = preconditions;
    if [uid, resource_version].into_iter().flatten().any(String::is_empty) {
        return Err(Error::Invalid(format!("{what}: a precondition is empty")));
    }
    Ok(())
}

fn fields(preconditions: &Preconditions) -> Map<String, Value> {
    let Preconditions { uid, resource_version } = preconditions;
    let fields = [("uid", uid), ("resourceVersion", resource_version)];
    fields.into_iter().filter_map(|(name, it)| Some((name.to_owned(), Value::from(it.clone()?)))).collect()
}

/// Adds preconditions to the metadata of an object or a merge patch, where the API server reads them. It
/// answers a wrong version with 409, and a wrong uid with 422, which the guest gets as a conflict.
fn into_metadata(what: &str, json: String, preconditions: &Preconditions) -> Result<String, Error> {
    if !any(preconditions) {
        return Ok(json);
    }
    complete(what, preconditions)?;
    let invalid = |why: &str| Error::Invalid(format!("{what}: {why}"));
    let mut object: Value = serde_json::from_str(&json).map_err(|error| invalid(&error.to_string()))?;
    let Some(object_fields) = object.as_object_mut() else {
        return Err(invalid("the text is not a JSON object"));
    };
    let metadata = object_fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(invalid("metadata is not a JSON object"));
    };
    metadata.extend(fields(preconditions));
    Ok(object.to_string())
}

/// Adds preconditions to a JSON patch, as its last operations, so that no other operation can undo them.
fn into_operations(what: &str, body: String, preconditions: &Preconditions) -> Result<String, Error> {
    if !any(preconditions) {
        return Ok(body);
    }
    complete(what, preconditions)?;
    let mut operations: Vec<Value> =
        serde_json::from_str(&body).map_err(|error| Error::Invalid(format!("{what}: {error}")))?;
    for (name, value) in fields(preconditions) {
        operations.push(json!({ "op": "replace", "path": format!("/metadata/{name}"), "value": value }));
    }
    Ok(Value::from(operations).to_string())
}

#[cfg(test)]
mod tests;
