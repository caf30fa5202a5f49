//! The `client` import: live reads and writes as the plugin's account.

use http::Method;
use oarlock_plugin::contract::{
    Error, GroupVersionResource, ObjectKey, PatchKind, Preconditions, Propagation, Written,
};
use serde_json::{Map, Value, json};

use super::head::Head;
use super::own_writes::Before;
use super::request::{Call, Requester};

const JSON: &str = "application/json";

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
        written(&what, &self.send(call).await?).await
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
        let body = self.add_to_metadata(&what, json, preconditions).await?;
        let query = [("fieldManager", &*self.plugin), ("force", if force { "true" } else { "false" })];
        let call = Call {
            query: &query,
            // JSON is YAML, and every API server accepts this content type.
            content_type: "application/apply-patch+yaml",
            what: &what,
            preconditions: any(preconditions),
            ..call(Method::PATCH, path, body.into_bytes())
        };
        written(&what, &self.send(call).await?).await
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
        let (content_type, body) = match kind {
            PatchKind::JsonPatch => {
                ("application/json-patch+json", self.add_to_operations(&what, body, preconditions)?)
            }
            PatchKind::MergePatch => {
                ("application/merge-patch+json", self.add_to_metadata(&what, body, preconditions).await?)
            }
            PatchKind::StrategicMergePatch => {
                let body = self.add_to_metadata(&what, body, preconditions).await?;
                ("application/strategic-merge-patch+json", body)
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
        written(&what, &self.send(call).await?).await
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
        written(&what, &self.send(call).await?).await
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
    /// Adds preconditions to the metadata of an object or a merge patch, where the API server reads them. It
    /// answers a wrong version with 409, and a wrong uid with 422, which the guest gets as a conflict.
    async fn add_to_metadata(
        &self,
        what: &str,
        json: String,
        preconditions: &Preconditions,
    ) -> Result<String, Error> {
        if !any(preconditions) {
            return Ok(json);
        }
        complete(what, preconditions)?;
        let _both = self.charge(2 * json.len())?;
        let changed = Head::of(&json).await.with(preconditions);
        changed.map_err(|why| Error::Invalid(format!("{what}: {why}")))
    }

    /// Adds preconditions to a JSON patch, as its last operations, so that no other operation can undo them.
    fn add_to_operations(
        &self,
        what: &str,
        mut body: String,
        preconditions: &Preconditions,
    ) -> Result<String, Error> {
        if !any(preconditions) {
            return Ok(body);
        }
        complete(what, preconditions)?;
        let operations = body.trim_ascii();
        let inner = operations.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let Some(inner) = inner else {
            return Err(Error::Invalid(format!("{what}: the text is not a JSON array")));
        };
        let mut is_first = inner.trim_ascii().is_empty();
        body.truncate(body.trim_ascii_end().len() - 1);
        for (name, value) in fields(preconditions) {
            let operation = json!({ "op": "replace", "path": format!("/metadata/{name}"), "value": value });
            body.push_str(if std::mem::take(&mut is_first) { "" } else { "," });
            body.push_str(&operation.to_string());
        }
        body.push(']');
        Ok(body)
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

async fn written(what: &str, body: &[u8]) -> Result<Written, Error> {
    let head = Head::of(str::from_utf8(body).unwrap_or_default()).await;
    if !head.is_object() {
        // The write succeeded, but its version is unknown.
        return Err(Error::Timeout(format!(
            "{what}: the write succeeded, but its response is not a JSON object"
        )));
    }
    Ok(Written { name: head.name(), uid: head.uid(), resource_version: head.resource_version() })
}

/// Returns the resourceVersion of an object's text; empty if it has none.
pub(super) async fn version_of(json: &str) -> String {
    Head::of(json).await.resource_version()
}

/// Returns the version that a write demands of its object, in its preconditions or in the text of the object.
pub(super) async fn version_before(text: &str, preconditions: &Preconditions) -> Before {
    Before::Version(match &preconditions.resource_version {
        Some(version) => version.clone(),
        None => version_of(text).await,
    })
}

/// Returns the name of an object's text; empty if it has none, so that the API server chooses one.
pub(super) async fn name_of(json: &str) -> String {
    Head::of(json).await.name()
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

#[cfg(test)]
mod tests;
