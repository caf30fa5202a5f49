//! Fakes: access to a few ConfigMaps, objects of events, and a log that stores its lines.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use oarlock_plugin::{
    contract::{
        Error, GroupVersionResource, Level, Namespaces, ObjectKey, ObjectRef, Page, PageRequest, PatchKind,
        Preconditions, Projection, Propagation, Row, WorkKey, Written,
    },
    guest::{LogLine, LogSink},
    kube_access::{
        CacheAccess, ClientAccess, EventObject, EventsAccess, GuestEvent, Selectors, WorkQueueAccess,
    },
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Access with one lister, `configmaps`.
#[derive(Default)]
pub(super) struct FakeKube {
    objects: Mutex<BTreeMap<(String, String), Arc<Value>>>,
    pub(super) n_gets: AtomicUsize,
    pub(super) queued: Mutex<Vec<(WorkKey, Option<Duration>)>>,
}

/// One object of an event.
pub(super) struct FakeObject {
    pub(super) object: Arc<Value>,
    pub(super) n_fields: Arc<AtomicUsize>,
}

/// A log that stores its lines.
#[derive(Default)]
pub(super) struct Lines(pub(super) Mutex<Vec<Line>>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) message: String,
    pub(super) pairs: Vec<(String, String)>,
}

pub(super) fn config_map(namespace: &str, name: &str, resource_version: u32) -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": format!("uid-of-{namespace}-{name}"),
            "resourceVersion": resource_version.to_string(),
            "creationTimestamp": "2026-11-20T08:00:00Z",
            "labels": { "app": "hello", "oarlock.dev/of": "tests" },
            "annotations": { "note": "a \"quoted\" text, ünïcödé" },
        },
        "data": { "greeting": format!("hello {resource_version}"), "other": "x".repeat(200) },
    }))
}

pub(super) fn object_ref(object: &Value) -> ObjectRef {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    ObjectRef {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    }
}

pub(super) fn at(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).map(ToString::to_string)
}

// === impl FakeKube ===

impl FakeKube {
    pub(super) fn put(&self, object: &Arc<Value>) {
        let ObjectRef { namespace, name, .. } = object_ref(object);
        self.objects.lock().insert((namespace, name), Arc::clone(object));
    }

    pub(super) fn remove(&self, object: &Value) {
        let ObjectRef { namespace, name, .. } = object_ref(object);
        self.objects.lock().remove(&(namespace, name));
    }
}

fn declared(lister: &str) -> Result<(), Error> {
    match lister {
        "configmaps" => Ok(()),
        _ => Err(Error::NotDeclared(format!("lister {lister:?}"))),
    }
}

fn row(object: &Value, projection: &Projection) -> Row {
    let (fields, json) = match projection {
        Projection::Keys => (vec![], None),
        Projection::Fields(pointers) => (pointers.iter().map(|pointer| at(object, pointer)).collect(), None),
        Projection::Json => (vec![], Some(object.to_string())),
    };
    Row { object: object_ref(object), fields, json }
}

#[async_trait]
impl CacheAccess for FakeKube {
    async fn get(&self, lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error> {
        declared(lister)?;
        self.n_gets.fetch_add(1, Ordering::Relaxed);
        let objects = self.objects.lock();
        let object = objects
            .get(&(key.namespace.clone(), key.name.clone()))
            .ok_or_else(|| Error::NotFound(format!("configmaps {}/{}", key.namespace, key.name)))?;
        Ok(row(object, projection))
    }

    async fn list(
        &self,
        lister: &str,
        _namespaces: &Namespaces,
        _label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        declared(lister)?;
        let rows =
            self.objects.lock().values().take(page.limit as usize).map(|o| row(o, projection)).collect();
        Ok(Page { rows, continue_token: String::new() })
    }

    async fn by_index(
        &self,
        index: &str,
        _: &str,
        _: &Namespaces,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(Error::NotDeclared(format!("index {index:?}")))
    }

    async fn index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        Err(Error::NotDeclared(format!("index {index:?}")))
    }

    async fn has_synced(&self, lister: &str) -> Result<bool, Error> {
        declared(lister).map(|()| true)
    }

    /// Never returns, not even at the timeout.
    async fn wait_until_seen(&self, lister: &str, _: &str, _: Duration) -> Result<(), Error> {
        declared(lister)?;
        std::future::pending().await
    }
}

#[async_trait]
impl ClientAccess for FakeKube {
    async fn get(&self, _: &GroupVersionResource, key: &ObjectKey, _: &str) -> Result<String, Error> {
        Ok(config_map(&key.namespace, &key.name, 7).to_string())
    }

    async fn list(
        &self,
        target: &GroupVersionResource,
        _: &Namespaces,
        _: Selectors<'_>,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(Error::Forbidden(format!("list {}", target.plural)))
    }

    async fn create(&self, _: &GroupVersionResource, _: &str, _: String) -> Result<Written, Error> {
        Err(Error::Suspended("create".into()))
    }

    async fn apply(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: String,
        _: bool,
        _: &Preconditions,
    ) -> Result<Written, Error> {
        Err(Error::Suspended("apply".into()))
    }

    async fn patch(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: PatchKind,
        _: String,
        _: &Preconditions,
    ) -> Result<Written, Error> {
        Err(Error::Suspended("patch".into()))
    }

    async fn replace(
        &self,
        _: &GroupVersionResource,
        key: &ObjectKey,
        _: &str,
        _: String,
    ) -> Result<Written, Error> {
        Ok(Written { name: key.name.clone(), uid: "u".into(), resource_version: "8".into() })
    }

    async fn delete(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: Propagation,
        _: Option<u32>,
        _: &Preconditions,
    ) -> Result<(), Error> {
        Err(Error::Suspended("delete".into()))
    }
}

impl WorkQueueAccess for FakeKube {
    fn add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), Error> {
        self.queued.lock().push((key, delay));
        Ok(())
    }
}

impl EventsAccess for FakeKube {
    fn emit(&self, _: GuestEvent) -> Result<(), Error> {
        Ok(())
    }
}

// === impl FakeObject ===

impl FakeObject {
    pub(super) fn new(object: &Arc<Value>) -> Arc<Self> {
        Arc::new(Self { object: Arc::clone(object), n_fields: Arc::default() })
    }
}

impl EventObject for FakeObject {
    fn field(&self, pointer: &str) -> Result<Option<String>, Error> {
        self.n_fields.fetch_add(1, Ordering::Relaxed);
        Ok(at(&self.object, pointer))
    }

    fn fields(&self, pointers: &[String]) -> Result<Vec<Option<String>>, Error> {
        self.n_fields.fetch_add(pointers.len(), Ordering::Relaxed);
        Ok(pointers.iter().map(|pointer| at(&self.object, pointer)).collect())
    }

    fn json(&self) -> Result<String, Error> {
        Ok(self.object.to_string())
    }
}

// === impl Lines ===

impl LogSink for Lines {
    fn enabled(&self, _: &str, level: Level) -> bool {
        level >= Level::Info
    }

    fn write(&self, line: LogLine<'_>) {
        let message = line.message.to_owned();
        let pairs =
            line.pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.lock().push(Line { message, pairs });
    }
}
