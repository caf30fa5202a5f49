//! The `cache` import: reads of the shared cache, narrowed to what the plugin declared and its account may read.

mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use oarlock_json::PointerPattern;
use oarlock_label_selector::LabelSelector;

use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    indexer::{self, IndexSource, Indexer},
    object::{Namespaces as Wanted, ObjectKey},
};
use oarlock_plugin::contract::{self, Content, Error, Index, Namespaces, Page, PageRequest, Projection, Row};

use super::{
    continue_token,
    own_versions::OwnVersions,
    pages,
    rows::Columns,
    slices::{LOOK, Slices},
};
use crate::{
    access::{Access, Denial, Gate},
    account::Account,
    informers::InformerHandle,
};

/// The most values that `index-values` answers.
const MOST_INDEX_VALUES: usize = 10_000;

/// How long these may be together.
const MOST_INDEX_VALUES_BYTES: usize = pages::PAGE_BYTES;

/// How many values are looked at under one hold of the cache's lock.
const VALUES_STEP: usize = 512;

/// One declared `read`, with the informer behind it.
pub struct Reader {
    /// What is read.
    pub target: GroupVersionResource,
    /// Where, as declared.
    pub namespaces: Namespaces,
    /// How much of each object, as declared.
    pub content: Content,
    /// Keeps the informer alive.
    pub handle: InformerHandle,
}

/// The reads and indices that one generation of a plugin declared.
pub(super) struct Cache {
    account: Account,
    gate: Arc<Gate>,
    readers: BTreeMap<String, Reader>,
    /// By the plugin's name for them.
    indices: BTreeMap<String, DeclaredIndex>,
    /// The versions that the API server answered to this plugin.
    pub(super) own_versions: OwnVersions,
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
        Ok(Self { account, gate, readers, indices: declared, own_versions: OwnVersions::default() })
    }

    /// Builds the indices of whatever is cached already, so that no call has to wait for it.
    pub(super) async fn build_indices(&self) {
        for index in self.indices.values() {
            let informer = self.readers.get(&index.lister).and_then(|reader| reader.handle.informer());
            if let Some(informer) = informer {
                // An index that is there already is what is wanted.
                let _ =
                    informer.indexer().add_index_in_slices(index.name.clone(), index.source.clone()).await;
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
        let object = wanted
            .contains(namespace)
            .then(|| ObjectKey::new(namespace, name))
            .and_then(|key| informer.indexer().get(&key));
        let object = object.ok_or_else(|| Error::NotFound(format!("{lister} has no {namespace}/{name}")))?;
        columns.row(&object, &mut Slices::begin()).await
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
        let request = self.page_request(lister, reader, namespaces, selector, page).await?;
        let indexer = synced(lister, reader)?.indexer().clone();
        let step = |request: &_, looks| Ok(indexer.list_step(request, looks));
        pages::fill(&columns, &mut Slices::begin(), request, step).await
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
        let everything = LabelSelector::everything();
        let request = self.page_request(&declared.lister, reader, namespaces, everything, page).await?;
        let mut slices = Slices::begin();
        let indexer = self.indexed(declared, reader, &request.namespaces, &mut slices).await?;
        let step = |request: &_, looks| {
            indexer
                .by_index_step(&declared.name, value, request, looks)
                .map_err(|error| index_error(index, &error))
        };
        pages::fill(&columns, &mut slices, request, step).await
    }

    pub(super) async fn index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        let (declared, reader) = self.index(index)?;
        let wanted = self.narrow(&declared.lister, reader, &Namespaces::All).await?;
        let mut slices = Slices::begin();
        let indexer = self.indexed(declared, reader, &wanted, &mut slices).await?;
        let too_many = |what: String| Error::LimitExceeded(format!("index {index} has {what}"));
        let mut found = BTreeSet::new();
        let mut cursor = None;
        loop {
            indexer
                .index_values_step(&declared.name, &wanted, VALUES_STEP, &mut cursor, &mut found)
                .map_err(|error| index_error(index, &error))?;
            if found.len() > MOST_INDEX_VALUES {
                return Err(too_many(format!("more than {MOST_INDEX_VALUES} values")));
            }
            if cursor.is_none() {
                break;
            }
            slices.worked(VALUES_STEP * LOOK / 4).await;
        }
        let mut values = Vec::with_capacity(found.len());
        let mut length = 0;
        for value in found {
            let Some(value) = indexer.whole_value(&declared.name, &wanted, &value) else { continue };
            length += value.len();
            if length > MOST_INDEX_VALUES_BYTES {
                return Err(too_many(format!(
                    "values of more than {MOST_INDEX_VALUES_BYTES} bytes together"
                )));
            }
            slices.worked(LOOK / 4 + value.len()).await;
            values.push(value);
        }
        values.sort_unstable();
        Ok(values)
    }

    pub(super) fn has_synced(&self, lister: &str) -> Result<bool, Error> {
        let reader = self.reader(lister)?;
        Ok(reader.handle.informer().is_some_and(|informer| informer.has_synced()))
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
        match self.access(reader, asked).await {
            Access::Allowed(namespaces) => Ok(namespaces),
            Access::Forbidden(denial @ Denial::NotGranted { .. }) => {
                Err(Error::Forbidden(denial.to_string()))
            }
            Access::Forbidden(denial) => Err(Error::Unavailable(denial.to_string())),
            Access::Unknown(reason) => Err(Error::Unavailable(reason)),
        }
    }

    /// Returns in which of the namespaces the account may read. A read that is declared for all namespaces
    /// never asks Kubernetes about one that the guest names: it is among the readable ones or it is not,
    /// whether or not it exists.
    async fn access(&self, reader: &Reader, asked: &Namespaces) -> Access {
        let (account, target) = (&self.account, &reader.target);
        match (&reader.namespaces, asked) {
            (Namespaces::All, Namespaces::One(namespace)) => {
                self.gate.access_in(account, target, namespace).await
            }
            _ => self.gate.access(account, target, asked).await,
        }
    }

    /// Reads what a guest asks for as a page.
    async fn page_request(
        &self,
        lister: &str,
        reader: &Reader,
        namespaces: &Namespaces,
        selector: LabelSelector,
        page: &PageRequest,
    ) -> Result<indexer::PageRequest, Error> {
        let start = continue_token::parse(&page.continue_token)?;
        let (after, namespaces) = start.within(self.narrow(lister, reader, namespaces).await?);
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        Ok(indexer::PageRequest { after, limit, namespaces, selector })
    }

    /// Returns the cache with the index in it, ready for readers of these namespaces. An informer that was
    /// made anew, since its resource was gone for a while, has none yet.
    async fn indexed(
        &self,
        index: &DeclaredIndex,
        reader: &Reader,
        namespaces: &Wanted,
        slices: &mut Slices,
    ) -> Result<Indexer, Error> {
        let indexer = synced(&index.lister, reader)?.indexer().clone();
        if !indexer.has_index(&index.name) {
            let _ = indexer.add_index_in_slices(index.name.clone(), index.source.clone()).await;
        }
        while !indexer
            .split_step(&index.name, namespaces)
            .map_err(|error| Error::Gone(format!("index {}: {error}", index.name)))?
        {
            slices.worked(VALUES_STEP * LOOK).await;
        }
        Ok(indexer)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for index in self.indices.values() {
            let informer = self.readers.get(&index.lister).and_then(|reader| reader.handle.informer());
            if let Some(informer) = informer {
                informer.indexer().remove_index(&index.name);
            }
        }
    }
}

fn synced(lister: &str, reader: &Reader) -> Result<SharedInformer, Error> {
    reader
        .handle
        .informer()
        .filter(SharedInformer::has_synced)
        .ok_or_else(|| Error::NotSynced(format!("{lister} ({}) has not synced", reader.target)))
}

/// What a read through an index answers when it cannot.
fn index_error(index: &str, error: &indexer::Error) -> Error {
    match error {
        indexer::Error::Incomplete { namespace, left_out, .. } => Error::LimitExceeded(format!(
            "index {index} lacks {left_out} objects of namespace {namespace:?}, which are beyond its limits; \
             list the namespace instead, or read other namespaces one by one"
        )),
        error => Error::Gone(format!("index {index}: {error}")),
    }
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

#[cfg(test)]
mod tests;
