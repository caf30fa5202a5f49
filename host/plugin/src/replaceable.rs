//! The versions that `client.get` and `client.list` returned to an instance: `client.replace` accepts only
//! changed copies of them.
//!
//! Objects in the cache lack pruned fields. A plugin that wrote one back would delete these fields.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use crate::contract::{Error, GroupVersionResource, ObjectKey, ObjectRef, Row};

/// The number of remembered objects. The object that was fetched first is forgotten first.
const CAPACITY: usize = 1024;

/// The newest fetched version of each object.
#[derive(Debug, Default)]
pub(crate) struct Replaceable {
    versions: BTreeMap<Name, String>,
    order: VecDeque<Name>,
}

type Name = (String, String, String, String, String);

/// The part of an object that is read here.
#[derive(Deserialize)]
#[serde(expecting = "an object of Kubernetes")]
struct Head {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
}

// === impl Replaceable ===

impl Replaceable {
    /// Remembers a fetched object.
    pub(crate) fn fetched(&mut self, target: &GroupVersionResource, key: &ObjectKey, json: &str) {
        let Ok(head) = serde_json::from_str::<Head>(json) else {
            return;
        };
        self.remember(name(target, key), head.metadata.resource_version);
    }

    /// Remembers the objects of a page of a live list.
    pub(crate) fn listed(&mut self, target: &GroupVersionResource, rows: &[Row]) {
        for Row { object, .. } in rows {
            let ObjectRef { namespace, name: object_name, uid: _, resource_version } = object;
            let key = ObjectKey { namespace: namespace.clone(), name: object_name.clone() };
            self.remember(name(target, &key), resource_version.clone());
        }
    }

    fn remember(&mut self, name: Name, resource_version: String) {
        if self.versions.insert(name.clone(), resource_version).is_some() {
            // A page of a list is remembered in its order, so the object is usually near the front.
            if let Some(at) = self.order.iter().position(|other| *other == name) {
                self.order.remove(at);
            }
        }
        self.order.push_back(name);
        if self.order.len() > CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
        }
    }

    /// Checks that a text has the name and the version of a fetched object.
    pub(crate) fn check(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        json: &str,
    ) -> Result<(), Error> {
        let shown = crate::imports::show_key(target, key);
        let head: Head = serde_json::from_str(json)
            .map_err(|e| Error::Invalid(format!("replace {shown}: not an object with metadata: {e}")))?;
        let Metadata { namespace, name: object_name, resource_version } = head.metadata;
        if object_name != key.name || namespace != key.namespace {
            return Err(Error::Invalid(format!(
                "replace {shown}: the text is that of {namespace}/{object_name}"
            )));
        }
        match self.versions.get(&name(target, key)) {
            Some(fetched) if !fetched.is_empty() && *fetched == resource_version => Ok(()),
            Some(fetched) => Err(Error::Invalid(format!(
                "replace {shown}: the text has resourceVersion {resource_version:?}, client.get returned {fetched:?}"
            ))),
            None => Err(Error::Invalid(format!(
                "replace {shown}: this instance did not fetch it with client.get or client.list (or fetched {CAPACITY} others since); \
                 objects in the cache lack pruned fields and must not be written back"
            ))),
        }
    }
}

fn name(target: &GroupVersionResource, key: &ObjectKey) -> Name {
    let GroupVersionResource { group, version, plural } = target.clone();
    let ObjectKey { namespace, name } = key.clone();
    (group, version, plural, namespace, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_maps() -> GroupVersionResource {
        GroupVersionResource { group: String::new(), version: "v1".into(), plural: "configmaps".into() }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: "default".into(), name: name.into() }
    }

    fn text(name: &str, version: &str) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"default","name":"{name}","resourceVersion":"{version}"}},"data":{{}}}}"#
        )
    }

    fn refusal(replaceable: &Replaceable, name: &str, json: &str) -> String {
        match replaceable.check(&config_maps(), &key(name), json) {
            Err(Error::Invalid(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_the_version_fetched_last_may_be_replaced() {
        let mut replaceable = Replaceable::default();
        insta::assert_snapshot!(refusal(&replaceable, "a", &text("a", "5")), @"replace configmaps default/a: this instance did not fetch it with client.get or client.list (or fetched 1024 others since); objects in the cache lack pruned fields and must not be written back");
        replaceable.fetched(&config_maps(), &key("a"), &text("a", "5"));
        assert_eq!(replaceable.check(&config_maps(), &key("a"), &text("a", "5")), Ok(()));
        insta::assert_snapshot!(refusal(&replaceable, "a", &text("a", "4")), @r#"replace configmaps default/a: the text has resourceVersion "4", client.get returned "5""#);
        insta::assert_snapshot!(refusal(&replaceable, "a", &text("b", "5")), @"replace configmaps default/a: the text is that of default/b");
        insta::assert_snapshot!(refusal(&replaceable, "a", "[]"), @"replace configmaps default/a: not an object with metadata: invalid length 0, expected an object of Kubernetes at line 1 column 2");
    }

    #[test]
    fn the_number_of_remembered_objects_is_bounded() {
        let mut replaceable = Replaceable::default();
        for n in 0..=CAPACITY {
            let name = format!("n{n}");
            replaceable.fetched(&config_maps(), &key(&name), &text(&name, "1"));
        }
        assert_eq!(replaceable.versions.len(), CAPACITY);
        assert_eq!(replaceable.order.len(), CAPACITY);
        refusal(&replaceable, "n0", &text("n0", "1"));
        assert_eq!(replaceable.check(&config_maps(), &key("n1"), &text("n1", "1")), Ok(()));
    }
}
