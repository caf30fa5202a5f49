//! The `cache` import: reads of the shared cache, narrowed to what the plugin declared and its account may read.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oarlock_informer::{
    GroupVersionResource, Indexer, LabelSelector, Namespaces as Wanted, ObjectKey, PointerPattern,
    SharedInformer,
    indexer::{self, IndexSource},
    shared_informer::WaitError,
};
use oarlock_plugin::contract::{self, Content, Error, Index, Namespaces, Page, PageRequest, Projection, Row};

use super::{continue_token, rows::Columns};
use crate::{
    access::{self, Gate, Readable},
    account::Account,
    informers::Lease,
};

/// The most values that `index-values` answers.
const MOST_INDEX_VALUES: usize = 10_000;

/// One declared `read`, with the informer behind it.
pub struct Reader {
    /// What is read.
    pub target: GroupVersionResource,
    /// Where, as declared.
    pub namespaces: Namespaces,
    /// How much of each object, as declared.
    pub content: Content,
    /// Keeps the informer alive.
    pub lease: Lease,
}

/// The reads and indices that one generation of a plugin declared.
pub(super) struct Cache {
    account: Account,
    gate: Arc<Gate>,
    readers: BTreeMap<String, Reader>,
    /// By the plugin's name for them.
    indices: BTreeMap<String, DeclaredIndex>,
}

struct DeclaredIndex {
    lister: String,
    /// The name in the shared cache: it belongs to one generation of one plugin.
    name: String,
    source: IndexSource,
}

// === impl Cache ===

impl Cache {
    pub(super) fn new(
        owner: &str,
        account: Account,
        gate: Arc<Gate>,
        readers: BTreeMap<String, Reader>,
        indices: Vec<Index>,
    ) -> Result<Self, Error> {
        let mut declared = BTreeMap::new();
        for Index { name, lister, source } in indices {
            if !readers.contains_key(&lister) {
                return Err(Error::NotDeclared(format!(
                    "index {name} is over {lister}, which is no declared read"
                )));
            }
            let index = DeclaredIndex {
                lister,
                name: format!("{owner}/{name}"),
                source: index_source(&name, source)?,
            };
            if declared.insert(name.clone(), index).is_some() {
                return Err(Error::Invalid(format!("index {name} is declared twice")));
            }
        }
        Ok(Self { account, gate, readers, indices: declared })
    }

    /// Builds the indices of whatever is cached already, so that no call has to wait for it.
    pub(super) fn build_indices(&self) {
        for index in self.indices.values() {
            let informer = self.readers.get(&index.lister).and_then(|reader| reader.lease.informer());
            if let Some(informer) = informer {
                // An index that is there already is what is wanted.
                let _ = informer.indexer().add_index(index.name.clone(), index.source.clone());
            }
        }
    }

    pub(super) async fn get(
        &self,
        lister: &str,
        key: &contract::ObjectKey,
        projection: &Projection,
    ) -> Result<Row, Error> {
        let reader = self.reader(lister)?;
        let columns = Columns::parse(projection, reader.content)?;
        let contract::ObjectKey { namespace, name } = key;
        let wanted = self.narrow(lister, reader, &Namespaces::One(namespace.clone())).await?;
        let informer = synced(lister, reader)?;
        let object = Some(ObjectKey::new(namespace, name))
            .filter(|key| wanted.contains(key.namespace()))
            .and_then(|key| informer.indexer().get(&key));
        let object = object.ok_or_else(|| Error::NotFound(format!("{lister} has no {namespace}/{name}")))?;
        columns.row(&object)
    }

    pub(super) async fn list(
        &self,
        lister: &str,
        namespaces: &Namespaces,
        label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        let reader = self.reader(lister)?;
        let columns = Columns::parse(projection, reader.content)?;
        let selector: LabelSelector = label_selector
            .parse()
            .map_err(|error| Error::Invalid(format!("label selector {label_selector:?}: {error}")))?;
        let request = indexer::PageRequest {
            after: continue_token::parse(&page.continue_token)?,
            limit: limit(page),
            namespaces: self.narrow(lister, reader, namespaces).await?,
            selector,
        };
        columns.page(synced(lister, reader)?.indexer().list_page(&request))
    }

    pub(super) async fn by_index(
        &self,
        index: &str,
        value: &str,
        namespaces: &Namespaces,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        let (declared, reader) = self.index(index)?;
        let columns = Columns::parse(projection, reader.content)?;
        let request = indexer::PageRequest {
            after: continue_token::parse(&page.continue_token)?,
            limit: limit(page),
            namespaces: self.narrow(&declared.lister, reader, namespaces).await?,
            selector: LabelSelector::everything(),
        };
        let informer = synced(&declared.lister, reader)?;
        let indexer = indexed(&informer, declared);
        let found = indexer
            .by_index_page(&declared.name, value, &request)
            .map_err(|error| Error::Gone(format!("index {index}: {error}")))?;
        columns.page(found)
    }

    pub(super) async fn index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        let (declared, reader) = self.index(index)?;
        let wanted = self.narrow(&declared.lister, reader, &Namespaces::All).await?;
        let informer = synced(&declared.lister, reader)?;
        let values = indexed(&informer, declared).index_values(&declared.name, &wanted);
        if values.len() > MOST_INDEX_VALUES {
            return Err(Error::LimitExceeded(format!(
                "index {index} has more than {MOST_INDEX_VALUES} values"
            )));
        }
        Ok(values)
    }

    pub(super) fn has_synced(&self, lister: &str) -> Result<bool, Error> {
        let reader = self.reader(lister)?;
        Ok(reader.lease.informer().is_some_and(|informer| informer.has_synced()))
    }

    pub(super) async fn wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        let reader = self.reader(lister)?;
        // Versions tell when something changes, which is for those to know who may read something of it.
        self.narrow(lister, reader, &Namespaces::All).await?;
        let informer = synced(lister, reader)?;
        match tokio::time::timeout(timeout, informer.wait_until_seen(resource_version)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(WaitError::NotComparable(error))) => Err(Error::Invalid(error.to_string())),
            Ok(Err(error @ (WaitError::Stopped | WaitError::WentBack { .. }))) => {
                Err(Error::Gone(format!("{lister}: {error}")))
            }
            Err(_) => {
                Err(Error::Timeout(format!("{lister} has not seen resourceVersion {resource_version} yet")))
            }
        }
    }

    fn reader(&self, lister: &str) -> Result<&Reader, Error> {
        self.readers
            .get(lister)
            .ok_or_else(|| Error::NotDeclared(format!("`describe` declares no read named {lister:?}")))
    }

    fn index(&self, index: &str) -> Result<(&DeclaredIndex, &Reader), Error> {
        let declared = self
            .indices
            .get(index)
            .ok_or_else(|| Error::NotDeclared(format!("`describe` declares no index named {index:?}")))?;
        Ok((declared, self.reader(&declared.lister)?))
    }

    /// Returns where to look: what is asked for, as far as it was declared and the account may read it.
    async fn narrow(&self, lister: &str, reader: &Reader, namespaces: &Namespaces) -> Result<Wanted, Error> {
        let asked = match (&reader.namespaces, namespaces) {
            (Namespaces::All, asked) => asked,
            (declared, Namespaces::All) => declared,
            (Namespaces::One(declared), Namespaces::One(asked)) if declared == asked => namespaces,
            (Namespaces::One(declared), Namespaces::One(asked)) => {
                return Err(Error::NotDeclared(format!(
                    "`describe` declares {lister} for namespace {declared}, not for {asked:?}"
                )));
            }
        };
        let readable = self.gate.readable(&self.account, &reader.target, asked).await.map_err(closed)?;
        if readable.is_nowhere() {
            let place = match asked {
                Namespaces::All => "any namespace".to_owned(),
                Namespaces::One(namespace) => format!("namespace {namespace:?}"),
            };
            return Err(Error::Forbidden(format!(
                "ServiceAccount {} may not list and watch {} in {place}",
                self.account, reader.target
            )));
        }
        Ok(match readable {
            Readable::All => Wanted::All,
            Readable::Only(namespaces) => Wanted::Only(namespaces),
        })
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for index in self.indices.values() {
            let informer = self.readers.get(&index.lister).and_then(|reader| reader.lease.informer());
            if let Some(informer) = informer {
                informer.indexer().remove_index(&index.name);
            }
        }
    }
}

fn synced(lister: &str, reader: &Reader) -> Result<SharedInformer, Error> {
    reader
        .lease
        .informer()
        .filter(SharedInformer::has_synced)
        .ok_or_else(|| Error::NotSynced(format!("{lister} ({}) has not synced", reader.target)))
}

/// Returns the cache with the index in it. An informer that was made anew, since its resource was gone for a while, has none yet.
fn indexed(informer: &SharedInformer, index: &DeclaredIndex) -> Indexer {
    let indexer = informer.indexer().clone();
    if !indexer.has_index(&index.name) {
        let _ = indexer.add_index(index.name.clone(), index.source.clone());
    }
    indexer
}

fn index_source(name: &str, source: contract::IndexSource) -> Result<IndexSource, Error> {
    Ok(match source {
        contract::IndexSource::Label(label) => IndexSource::Label(label),
        contract::IndexSource::OwnerUid => IndexSource::OwnerUid,
        contract::IndexSource::Pointer(pointer) => {
            let pattern: PointerPattern = pointer
                .parse()
                .map_err(|error| Error::Invalid(format!("index {name}: {pointer:?}: {error}")))?;
            IndexSource::Pointer(pattern)
        }
    })
}

fn limit(page: &PageRequest) -> usize {
    usize::try_from(page.limit).unwrap_or(usize::MAX)
}

fn closed(error: access::Error) -> Error {
    Error::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests;
