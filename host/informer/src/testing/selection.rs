//! The selectors of a list or a watch of the fake.

use oarlock_json::JsonPointer;
use oarlock_label_selector::LabelSelector;

use crate::list_watch::WatchEvent;
use crate::object::Object;

/// Selects by labels, and by the two fields that every resource supports: `metadata.name` and
/// `metadata.namespace`.
pub(super) struct Selection {
    labels: LabelSelector,
    fields: Vec<FieldRequirement>,
}

struct FieldRequirement {
    field: String,
    value: String,
    is_equal: bool,
}

// === impl Selection ===

impl Selection {
    pub(super) fn new(labels: &LabelSelector, fields: &str) -> Self {
        let fields = fields.split(',').filter(|text| !text.is_empty()).map(FieldRequirement::parse);
        Self { labels: labels.clone(), fields: fields.collect() }
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        self.labels.matches(&object.labels())
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }

    /// Returns the event that a watch with this selection gets: an object that matches now is added, and one
    /// that does not match any more is deleted in its last selected state.
    pub(super) fn seen(&self, event: &WatchEvent, old: Option<&Object>) -> Option<WatchEvent> {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = event
        else {
            return Some(event.clone());
        };
        let is_deleted = matches!(event, WatchEvent::Deleted(_));
        let matched = old.is_some_and(|old| self.matches(old));
        match (matched, !is_deleted && self.matches(object)) {
            (true, true) => Some(WatchEvent::Modified(object.clone())),
            (false, true) => Some(WatchEvent::Added(object.clone())),
            (true, false) if is_deleted => Some(WatchEvent::Deleted(object.clone())),
            (true, false) => old.map(|old| WatchEvent::Deleted(as_of(old, object))),
            (false, false) => None,
        }
    }
}

/// Returns the last selected state at the version of the change, as API servers send it.
fn as_of(old: &Object, object: &Object) -> Object {
    let version = JsonPointer::from(["metadata", "resourceVersion"]);
    old.with(&version, &*object.resource_version()).unwrap_or_else(|error| panic!("{error}"))
}

// === impl FieldRequirement ===

impl FieldRequirement {
    fn parse(text: &str) -> Self {
        let parsed = text
            .split_once("!=")
            .map(|parts| (parts, false))
            .or_else(|| text.split_once("==").map(|parts| (parts, true)))
            .or_else(|| text.split_once('=').map(|parts| (parts, true)));
        let ((field, value), is_equal) = parsed.unwrap_or_else(|| panic!("not a field selector: {text:?}"));
        Self { field: field.to_owned(), value: value.to_owned(), is_equal }
    }

    fn matches(&self, object: &Object) -> bool {
        let actual = match &*self.field {
            "metadata.name" => object.key().name(),
            "metadata.namespace" => object.key().namespace(),
            other => panic!("the fake does not support the field selector {other}"),
        };
        (actual == self.value) == self.is_equal
    }
}
