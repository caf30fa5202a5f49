//! JSON patch, merge patch and strategic merge patch.
//!
//! Server-side apply is `managed_fields::apply`. Callers decode the patched object again (`decoded`), since a
//! patch can produce any JSON.

mod json;
mod strategic;

use crate::model::{Decoded, FieldValidation, Model};
use crate::status::{Cause, GroupKind, StatusError};
use serde_json::Value;

/// The kinds of `PATCH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

// === impl PatchKind ===

impl PatchKind {
    /// Returns the kind for a `Content-Type`. Custom resources have no strategic merge patch.
    pub(crate) fn from_content_type(content_type: &str, custom: bool) -> Result<Self, StatusError> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        match media_type {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if !custom => Ok(Self::Strategic),
            APPLY => Ok(Self::Apply),
            _ if custom => Err(StatusError::unsupported_media_type(&[JSON, MERGE, APPLY])),
            _ => {
                let mut error = StatusError::unsupported_media_type(&[JSON, MERGE, STRATEGIC, APPLY]);
                error.message = "415: Unsupported Media Type".into();
                error.details = Some(Box::default());
                Err(error)
            }
        }
    }
}

/// Returns a patched copy of an object, for all kinds but apply.
pub(crate) fn patched(
    kind: PatchKind,
    model: &Model,
    current: &Value,
    body: &[u8],
) -> Result<Value, StatusError> {
    match kind {
        PatchKind::Json => json::apply(current, body),
        PatchKind::Merge => {
            let patch: Value = serde_json::from_slice(body).map_err(|error| undecodable(&error))?;
            if !patch.is_object() {
                let got = if patch.is_array() { "array" } else { "value" };
                return Err(StatusError::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {got} into Go value of type map[string]interface {{}}"
                )));
            }
            let mut object = current.clone();
            json_patch::merge(&mut object, &patch);
            Ok(object)
        }
        PatchKind::Strategic => {
            let patch: Value =
                serde_json::from_slice(body).map_err(|error| StatusError::bad_request(error.to_string()))?;
            strategic::apply(model.root(), current, patch)
        }
        PatchKind::Apply => Err(StatusError::internal("an apply cannot be applied as a patch")),
    }
}

/// Decodes a patched object. An object that cannot be decoded is a 422 that names the patch.
pub(crate) fn decoded(
    model: &Model,
    patched: Value,
    fields: FieldValidation,
) -> Result<Decoded, StatusError> {
    let text = patched.to_string();
    model.decode_or(patched, fields, |why| {
        let message = format!("Invalid value: {text:?}: {why}");
        let mut error = StatusError::invalid(
            &GroupKind::new("", ""),
            "",
            vec![Cause::new("FieldValueInvalid", "patch", message)],
        );
        if let Some(details) = &mut error.details {
            details.kind = String::new();
        }
        error
    })
}

fn undecodable(error: &serde_json::Error) -> StatusError {
    StatusError::bad_request(format!("error decoding patch: {error}"))
}

/// 422 for a patch that does not apply. As in kube-apiserver, the message gives no reason.
fn does_not_apply() -> StatusError {
    let mut error =
        StatusError::unprocessable("the server rejected our request due to an error in our request");
    error.details = Some(Box::default());
    error
}

#[cfg(test)]
mod tests;
