//! The reads of a plugin with listers that wake: registers what each run of `reconcile` reads through them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_plugin::contract::{Error, Namespaces, ObjectKey, Page, PageRequest, Projection, Row, WorkKey};
use oarlock_plugin::kube_access::CacheAccess;

use crate::dispatch::{Read, ReadSets, Run, WakingLister};

/// Reads of the cache that are registered. Outside of a run it registers nothing.
pub(crate) struct Waking {
    inner: Arc<dyn CacheAccess>,
    listers: Arc<[WakingLister]>,
    sets: ReadSets,
    generation: u64,
    run: Option<Run>,
}

// === impl Waking ===

impl Waking {
    pub(crate) fn new(
        inner: Arc<dyn CacheAccess>,
        listers: Arc<[WakingLister]>,
        sets: ReadSets,
        generation: u64,
    ) -> Self {
        Self { inner, listers, sets, generation, run: None }
    }

    /// Registers a read through a lister, if the lister wakes. `limit-exceeded` if there is no room for it.
    fn reads(&self, lister: &str, read: impl FnOnce() -> Option<Read>) -> Result<(), Error> {
        if let Some(run) = &self.run
            && self.listers.iter().any(|it| *it.name == *lister)
            && let Some(read) = read()
        {
            return run.reads(lister, read);
        }
        Ok(())
    }

    /// Registers a read through an index, if its lister wakes. `limit-exceeded` if there is no room for it.
    fn reads_index(&self, index: &str, read: impl FnOnce(Arc<str>) -> Read) -> Result<(), Error> {
        let Some(run) = &self.run else { return Ok(()) };
        let of_lister = |it: &WakingLister| {
            it.indices
                .iter()
                .find(|(name, _)| **name == *index)
                .map(|(name, _)| (it.name.clone(), name.clone()))
        };
        if let Some((lister, index)) = self.listers.iter().find_map(of_lister) {
            run.reads(&lister, read(index))?;
        }
        Ok(())
    }

    fn found(&self, has_found: bool) {
        if has_found && let Some(run) = &self.run {
            run.found();
        }
    }

    fn found_rows(&self, page: &Result<Page, Error>) {
        self.found(page.as_ref().is_ok_and(|page| !page.rows.is_empty()));
    }
}

fn namespace_of(namespaces: &Namespaces) -> Option<Box<str>> {
    match namespaces {
        Namespaces::All => None,
        Namespaces::One(namespace) => Some(namespace.as_str().into()),
    }
}

#[async_trait]
impl CacheAccess for Waking {
    fn run_begins(&self, key: &WorkKey) -> Option<Arc<dyn CacheAccess>> {
        let Self { inner, listers, sets, generation, run: _ } = self;
        let run = sets.begin(key.clone().into(), *generation);
        Some(Arc::new(Self {
            inner: inner.clone(),
            listers: listers.clone(),
            sets: sets.clone(),
            generation: *generation,
            run: Some(run),
        }))
    }

    fn run_succeeded(&self) {
        if let Some(run) = &self.run {
            run.succeeded();
        }
    }

    async fn get(&self, lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error> {
        self.reads(lister, || {
            Some(Read::Object(oarlock_informer::object::ObjectKey::new(&key.namespace, &key.name)))
        })?;
        let row = self.inner.get(lister, key, projection).await;
        self.found(row.is_ok());
        row
    }

    async fn list(
        &self,
        lister: &str,
        namespaces: &Namespaces,
        label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.reads(lister, || {
            // A read with a malformed selector fails, whatever changes.
            let selector = label_selector.parse().ok()?;
            Some(Read::Selector {
                namespace: namespace_of(namespaces),
                selector,
                n_bytes: label_selector.len(),
            })
        })?;
        let found = self.inner.list(lister, namespaces, label_selector, projection, page).await;
        self.found_rows(&found);
        found
    }

    async fn by_index(
        &self,
        index: &str,
        value: &str,
        namespaces: &Namespaces,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.reads_index(index, |index| Read::Value {
            namespace: namespace_of(namespaces),
            index,
            value: value.into(),
        })?;
        let found = self.inner.by_index(index, value, namespaces, projection, page).await;
        self.found_rows(&found);
        found
    }

    async fn index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        self.reads_index(index, |index| Read::Values { index })?;
        let values = self.inner.index_values(index).await;
        self.found(values.as_ref().is_ok_and(|values| !values.is_empty()));
        values
    }

    async fn has_synced(&self, lister: &str) -> Result<bool, Error> {
        self.inner.has_synced(lister).await
    }

    async fn wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        self.inner.wait_until_seen(lister, resource_version, timeout).await
    }
}
