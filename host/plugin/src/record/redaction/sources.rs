//! Which calls and imports of a plugin are about Secrets.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::json_text::{Place, place_of};
use crate::{
    contract::{Description, GroupVersionResource, IndexSource},
    record::Import,
};

/// The declarations of a plugin that are about Secrets.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The declared fields of subscriptions to Secrets, by the subscription's name.
    subscriptions: BTreeMap<String, Arc<[String]>>,
    listers: Vec<String>,
    /// The place of the value, by the index's name.
    indices: BTreeMap<String, Option<Place>>,
    /// The configuration of the plugin is of a Secret.
    is_config_secret: bool,
}

/// A call or an import about Secrets.
#[derive(Debug, Clone, Default)]
pub(in crate::record) struct Subject {
    /// The pointers of the declared fields.
    pub(super) fields: Arc<[String]>,
    /// The place of the values of an index, if it holds values of Secrets.
    pub(super) index: Option<Place>,
}

// === impl Sources ===

impl Sources {
    pub(crate) fn of(description: &Description, is_config_secret: bool) -> Self {
        let subscriptions = description.subscriptions.iter().filter(|it| is_secrets(&it.target));
        let listers: Vec<_> =
            description.reads.iter().filter(|it| is_secrets(&it.target)).map(|it| it.name.clone()).collect();
        let indices = description.indices.iter().filter(|it| listers.contains(&it.lister));
        Self {
            subscriptions: subscriptions.map(|it| (it.name.clone(), it.fields.as_slice().into())).collect(),
            indices: indices
                .map(|it| {
                    let place = match &it.source {
                        IndexSource::Pointer(pointer) => place_of(pointer),
                        _ => None,
                    };
                    (it.name.clone(), place)
                })
                .collect(),
            listers,
            is_config_secret,
        }
    }

    /// Returns whether any call or import may be about a Secret, apart from those that
    /// [name the resource](targets_secrets).
    pub(in crate::record) fn are_any(&self) -> bool {
        !self.subscriptions.is_empty() || !self.listers.is_empty() || self.is_config_secret
    }

    /// Returns the subject of a call with this argument, if it is a Secret.
    pub(in crate::record) fn of_call(&self, argument: &Value) -> Option<Subject> {
        let fields = self.subscriptions.get(argument.get("subscription")?.as_str()?)?;
        Some(Subject { fields: fields.clone(), index: None })
    }

    /// Returns whether the answer of an import is of the configuration, and that is of a Secret.
    pub(super) fn is_secret_config(&self, import: &Import) -> bool {
        self.is_config_secret && import.function.starts_with("config.")
    }

    /// Returns the subject of an import in a call about `call`, if it is a Secret.
    pub(in crate::record) fn of_import(&self, import: &Import, call: Option<&Subject>) -> Option<Subject> {
        let Import { function, arguments, .. } = import;
        if function.starts_with("event.") {
            return call.cloned();
        }
        if arguments.get("target").is_some() {
            return targets_secrets(import).then(Subject::default);
        }
        if let Some(index) = arguments.get("index").and_then(Value::as_str) {
            let index = *self.indices.get(index)?;
            return Some(Subject { index, ..Subject::default() });
        }
        let lister = arguments.get("lister")?.as_str()?;
        self.listers.iter().any(|it| it == lister).then(Subject::default)
    }
}

/// Returns whether an import names Secrets as its resource.
pub(crate) fn targets_secrets(import: &Import) -> bool {
    let Some(target) = import.arguments.get("target") else { return false };
    let is = |name: &str, text: &str| target.get(name).and_then(Value::as_str) == Some(text);
    is("plural", "secrets") && is("group", "")
}

/// Returns whether an import writes an object.
pub(in crate::record) fn is_write(import: &Import) -> bool {
    let has = |name: &str| import.arguments.get(name).is_some();
    import.function.starts_with("client.") && (has("json") || has("body"))
}

/// Returns the pointers of the fields that an import asks for: `pointer`, `pointers`, or a projection.
pub(super) fn field_names(arguments: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(pointer) = arguments.get("pointer").and_then(text) {
        return vec![pointer];
    }
    let several = arguments.get("pointers").or_else(|| arguments.get("projection")?.get("Fields"));
    several.and_then(Value::as_array).into_iter().flatten().filter_map(text).collect()
}

fn is_secrets(target: &GroupVersionResource) -> bool {
    target.group.is_empty() && target.plural == "secrets"
}
