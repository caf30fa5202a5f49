//! The errors of an apply.

use super::field_set::{Path, display};
use crate::model::Model;
use crate::status::{Cause, StatusError};
use serde_json::Value;

pub(super) enum Failure {
    Conflicts(Vec<Conflict>),
    /// The live object does not match its type.
    Unmergeable(String),
}

pub(super) struct Conflict {
    pub owner: String,
    pub path: Path,
}

/// 500 for an object that does not match its type.
pub(super) fn untypable(model: &Model, applied: &Value, faults: &[String]) -> StatusError {
    let metadata =
        |key: &str| applied.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default();
    let group_version = match model.kind().group.as_str() {
        "" => format!("/{}", model.api_version()),
        _ => model.api_version().to_owned(),
    };
    let message = match faults {
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    StatusError::untranslated(format!(
        "failed to create typed patch object ({}/{}; {group_version}, Kind={}): {message}",
        metadata("namespace"),
        metadata("name"),
        model.kind().kind
    ))
}

// === impl StatusError ===

impl From<Failure> for StatusError {
    fn from(failure: Failure) -> Self {
        let conflicts = match failure {
            Failure::Conflicts(conflicts) => conflicts,
            Failure::Unmergeable(why) => return Self::untranslated(format!("failed to merge config: {why}")),
        };
        let message = match conflicts.as_slice() {
            [one] => {
                format!("Apply failed with 1 conflict: conflict with {}: {}", one.owner, display(&one.path))
            }
            several => {
                let mut lines: Vec<String> = Vec::new();
                for (index, conflict) in several.iter().enumerate() {
                    if index == 0 || several[index - 1].owner != conflict.owner {
                        lines.push(format!("conflicts with {}:", conflict.owner));
                    }
                    lines.push(format!("- {}", display(&conflict.path)));
                }
                format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
            }
        };
        let causes = conflicts
            .iter()
            .map(|conflict| {
                Cause::new(
                    "FieldManagerConflict",
                    display(&conflict.path),
                    format!("conflict with {}", conflict.owner),
                )
            })
            .collect();
        Self { code: 409, reason: "Conflict", ..Self::unprocessable(message) }.with_causes(causes)
    }
}
