//! The versions that `client.get` and `client.list` returned to an instance: `client.replace` accepts only
//! changed copies of them.
//!
//! Objects in the cache lack pruned fields. A plugin that wrote one back would delete these fields.

use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;

use oarlock_json::{Finding, JsonPointer, PointerSet};

use crate::contract::{Error, GroupVersionResource, ObjectKey, ObjectRef, Row};

/// The number of remembered objects. The object that was fetched first is forgotten first.
const CAPACITY: usize = 1024;

/// The bytes of a text that are read before other tasks run, in about a millisecond.
const SLICE: usize = 512 << 10;

/// The longest name or version that is read. Those of Kubernetes are shorter.
const LONGEST: usize = 2 << 10;

/// The places of the values in [`POINTERS`].
const OBJECT: usize = 0;
const METADATA: usize = 1;
const NAMESPACE: usize = 2;
const NAME: usize = 3;
const RESOURCE_VERSION: usize = 4;

static POINTERS: LazyLock<PointerSet> = LazyLock::new(|| {
    PointerSet::new(&[
        JsonPointer::from([]),
        JsonPointer::from(["metadata"]),
        JsonPointer::from(["metadata", "namespace"]),
        JsonPointer::from(["metadata", "name"]),
        JsonPointer::from(["metadata", "resourceVersion"]),
    ])
});

/// The newest fetched version of each object.
#[derive(Debug, Default)]
pub(crate) struct Replaceable {
    versions: BTreeMap<Name, String>,
    order: VecDeque<Name>,
}

type Name = (String, String, String, String, String);

/// The version of an object that `client.replace` accepts; `None` if the object was not fetched.
#[derive(Debug)]
pub(crate) struct Accepted(Option<String>);

/// The part of an object's text that is read here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    namespace: String,
    name: String,
    resource_version: String,
}

// === impl Head ===

impl Head {
    /// Reads the metadata of an object, in slices; `None` if the text is not an object with metadata, or a
    /// key of that is repeated.
    pub(crate) async fn of(text: &str) -> Option<Self> {
        let mut finding = Finding::new(&POINTERS, text);
        while !finding.advance(SLICE) {
            tokio::task::yield_now().await;
        }
        let found = finding.finish();
        let object = found.get(OBJECT).filter(|it| it.len() == text.trim_ascii().len());
        if found.has_repeated() || !object?.starts_with('{') || !found.get(METADATA)?.starts_with('{') {
            return None;
        }
        let string = |place: usize| -> String {
            let value = found.get(place).filter(|value| value.len() <= LONGEST);
            value.and_then(|value| serde_json::from_str(value).ok()).unwrap_or_default()
        };
        Some(Self {
            namespace: string(NAMESPACE),
            name: string(NAME),
            resource_version: string(RESOURCE_VERSION),
        })
    }
}

// === impl Replaceable ===

impl Replaceable {
    /// Remembers a fetched object.
    pub(crate) fn fetched(&mut self, target: &GroupVersionResource, key: &ObjectKey, head: Head) {
        self.remember(name(target, key), head.resource_version);
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

    /// Returns the version of an object that may be replaced.
    pub(crate) fn accepted(&self, target: &GroupVersionResource, key: &ObjectKey) -> Accepted {
        Accepted(self.versions.get(&name(target, key)).cloned())
    }
}

// === impl Accepted ===

impl Accepted {
    /// Checks that a text has the name and the version of a fetched object.
    pub(crate) async fn check(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        json: &str,
    ) -> Result<(), Error> {
        let refused =
            |why: String| Error::Invalid(format!("replace {}: {why}", crate::imports::show_key(target, key)));
        let Some(Head { namespace, name, resource_version }) = Head::of(json).await else {
            return Err(refused("not an object with metadata".to_owned()));
        };
        if name != key.name || namespace != key.namespace {
            return Err(refused(format!("the text is that of {namespace}/{name}")));
        }
        match &self.0 {
            Some(fetched) if !fetched.is_empty() && *fetched == resource_version => Ok(()),
            Some(fetched) => Err(refused(format!(
                "the text has resourceVersion {resource_version:?}, client.get returned {fetched:?}"
            ))),
            None => Err(refused(format!(
                "this instance did not fetch it with client.get or client.list (or fetched {CAPACITY} others since); \
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

    async fn check(replaceable: &Replaceable, name: &str, json: &str) -> Result<(), Error> {
        replaceable.accepted(&config_maps(), &key(name)).check(&config_maps(), &key(name), json).await
    }

    async fn refusal(replaceable: &Replaceable, name: &str, json: &str) -> String {
        match check(replaceable, name, json).await {
            Err(Error::Invalid(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    async fn fetch(replaceable: &mut Replaceable, name: &str, version: &str) {
        let head = Head::of(&text(name, version)).await.unwrap();
        replaceable.fetched(&config_maps(), &key(name), head);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_version_fetched_last_may_be_replaced() {
        let mut replaceable = Replaceable::default();
        insta::assert_snapshot!(refusal(&replaceable, "a", &text("a", "5")).await, @"replace configmaps default/a: this instance did not fetch it with client.get or client.list (or fetched 1024 others since); objects in the cache lack pruned fields and must not be written back");
        fetch(&mut replaceable, "a", "5").await;
        assert_eq!(check(&replaceable, "a", &text("a", "5")).await, Ok(()));
        insta::assert_snapshot!(refusal(&replaceable, "a", &text("a", "4")).await, @r#"replace configmaps default/a: the text has resourceVersion "4", client.get returned "5""#);
        insta::assert_snapshot!(refusal(&replaceable, "a", &text("b", "5")).await, @"replace configmaps default/a: the text is that of default/b");
        for json in ["", "[]", "{", "{}", r#"{"metadata":[]}"#, r#"{"metadata":{}"#, r#"{"metadata":{}}x"#] {
            let refusal = refusal(&replaceable, "a", json).await;
            assert_eq!(refusal, "replace configmaps default/a: not an object with metadata", "{json}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_objects_is_bounded() {
        let mut replaceable = Replaceable::default();
        for n in 0..=CAPACITY {
            fetch(&mut replaceable, &format!("n{n}"), "1").await;
        }
        assert_eq!(replaceable.versions.len(), CAPACITY);
        assert_eq!(replaceable.order.len(), CAPACITY);
        refusal(&replaceable, "n0", &text("n0", "1")).await;
        assert_eq!(check(&replaceable, "n1", &text("n1", "1")).await, Ok(()));
    }

    /// Other tasks run while the metadata of a long text is read.
    #[tokio::test(start_paused = true)]
    async fn promise_4_the_metadata_of_a_long_text_is_read_in_slices() {
        let labels: Vec<_> = (0..200_000).map(|n| format!("\"l{n}\":0")).collect();
        let text = format!(r#"{{"metadata":{{"a":{{}},{},"name":"n"}}}}"#, labels.join(","));
        let mut head = std::pin::pin!(Head::of(&text));
        let mut n_slices = 1;
        let head = loop {
            match futures::poll!(&mut head) {
                std::task::Poll::Ready(head) => break head,
                std::task::Poll::Pending => n_slices += 1,
            }
        };
        assert_eq!(head.unwrap().name, "n");
        assert!(n_slices >= text.len() / SLICE, "{n_slices} slices of {} bytes", text.len());
    }
}
