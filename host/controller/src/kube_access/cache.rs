//! The `cache` import: reads of the shared cache, within the declared reads and the rights of the account.

mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use oarlock_json::PointerPattern;
use oarlock_label_selector::LabelSelector;
use parking_lot::Mutex;

use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    indexer::{self, IndexSource, Indexer},
    object::Namespaces as Wanted,
};
use oarlock_plugin::contract::{self, Content, Error, Index, Namespaces, Page, PageRequest, Projection, Row};

use super::{
    continue_token,
    own_versions::OwnVersions,
    pages,
    rows::Columns,
    slices::{OBJECT, Slices},
};
use crate::{
    access::{Access, Denial, Gate},
    identity::{Identity, IdentityState},
    informers::InformerHandle,
};

/// The largest number of values that `index-values` returns.
const MOST_INDEX_VALUES: usize = 10_000;

/// The largest sum of their lengths.
const MOST_INDEX_VALUES_BYTES: usize = pages::PAGE_BYTES;

/// How often a value's text is compared, about, when it is sorted among the others.
const COMPARISONS: usize = 14;

/// The longest pointers, together, of columns that are kept for the next read.
const KEPT_POINTERS_BYTES: usize = 512;

/// The number of values that are read under one lock of the cache.
const VALUES_STEP: usize = 512;

/// One declared read, with its informer.
pub(crate) struct Reader {
    /// The resource.
    pub(crate) target: GroupVersionResource,
    /// The declared namespaces.
    pub(crate) namespaces: Namespaces,
    /// The declared content.
    pub(crate) content: Content,
    /// The handle that keeps the informer running.
    pub(crate) handle: InformerHandle,
}

/// The declared reads, by the plugin's names for them. In boxes, since a map has room for more than it holds.
pub(crate) type Readers = HashMap<String, Box<Reader>>;

/// The declared reads and indices of one generation of a plugin.
pub(super) struct Cache {
    identity: Identity,
    gate: Arc<Gate>,
    readers: Readers,
    /// By the plugin's own names.
    indices: BTreeMap<String, DeclaredIndex>,
    /// The versions that the API server returned to this plugin.
    pub(super) own_versions: OwnVersions,
    /// The columns that `get` parsed last, if they are short.
    last_columns: Mutex<Option<(Projection, Content, Arc<Columns>)>>,
}

struct DeclaredIndex {
    lister: String,
    /// The name of the index in the shared cache, which contains plugin and generation.
    name: String,
    source: IndexSource,
}

/// Returns whether a projection is so short that its columns are kept.
fn is_short(projection: &Projection) -> bool {
    match projection {
        Projection::Fields(pointers) => {
            pointers.iter().map(String::len).sum::<usize>() <= KEPT_POINTERS_BYTES
        }
        Projection::Keys | Projection::Json => true,
    }
}

// === impl Cache ===

impl Cache {
    pub(super) fn new(
        owner: &str,
        identity: Identity,
        gate: Arc<Gate>,
        readers: Readers,
        indices: Vec<Index>,
    ) -> Result<Self, Error> {
        let mut declared = BTreeMap::new();
        for Index { name, lister, source } in indices {
            if !readers.contains_key(&lister) {
                return Err(Error::NotDeclared(format!(
                    "index {name} uses {lister}, which is not a declared read"
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
        Ok(Self {
            identity,
            gate,
            readers,
            indices: declared,
            own_versions: OwnVersions::default(),
            last_columns: Mutex::default(),
        })
    }

    /// Builds the indices of the caches that exist already, so that no call has to wait for it.
    pub(super) async fn build_indices(&self) {
        for index in self.indices.values() {
            let informer = self.readers.get(&index.lister).and_then(|reader| reader.handle.informer());
            if let Some(informer) = informer {
                // An error means that the index exists already.
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
        let columns = self.columns(projection, reader.content)?;
        let contract::ObjectKey { namespace, name } = key;
        let may_read = self.is_known_to_allow(reader, namespace)
            || self.narrow(lister, reader, &Namespaces::One(namespace.clone())).await?.contains(namespace);
        let informer = synced(lister, reader)?;
        let object = if may_read { informer.indexer().get_named(namespace, name) } else { None };
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
        let step = |request: &_, most| Ok(indexer.list_step(request, most));
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
        let step = |request: &_, most| {
            indexer
                .by_index_step(&declared.name, value, request, most)
                .map_err(|error| index_error(index, &error))
        };
        pages::fill(&columns, &mut slices, request, step).await
    }

    pub(super) async fn index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        let (declared, reader) = self.index(index)?;
        let wanted = self.narrow(&declared.lister, reader, &Namespaces::All).await?;
        let mut slices = Slices::begin();
        let indexer = self.indexed(declared, reader, &wanted, &mut slices).await?;
        let too_many = |excess: String| Error::LimitExceeded(format!("index {index} has {excess}"));
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
            slices.worked(VALUES_STEP * OBJECT / 4).await;
        }
        // Sorted value by value: a sort of all at the end would take several milliseconds at once.
        let mut values = BTreeSet::new();
        let mut length = 0;
        for value in found {
            let Some(value) = indexer.whole_value(&declared.name, &wanted, &value) else { continue };
            length += value.len();
            if length > MOST_INDEX_VALUES_BYTES {
                return Err(too_many(format!(
                    "values of more than {MOST_INDEX_VALUES_BYTES} bytes together"
                )));
            }
            slices.worked(OBJECT / 4 + COMPARISONS * value.len()).await;
            values.insert(value);
        }
        Ok(values.into_iter().collect())
    }

    pub(super) fn has_synced(&self, lister: &str) -> Result<bool, Error> {
        let reader = self.reader(lister)?;
        Ok(reader.handle.informer().is_some_and(|informer| informer.has_synced()))
    }

    /// Returns the columns of a projection. A guest asks for the same ones again and again.
    fn columns(&self, projection: &Projection, content: Content) -> Result<Arc<Columns>, Error> {
        let mut last = self.last_columns.lock();
        if let Some((last_projection, last_content, columns)) = &*last
            && *last_content == content
            && last_projection == projection
        {
            return Ok(columns.clone());
        }
        let columns = Arc::new(Columns::parse(projection, content)?);
        if is_short(projection) {
            *last = Some((projection.clone(), content, columns.clone()));
        }
        Ok(columns)
    }

    /// Returns whether the account may read one namespace of a lister, by what the gate knows already.
    fn is_known_to_allow(&self, reader: &Reader, namespace: &str) -> bool {
        matches!(reader.namespaces, Namespaces::All)
            && self.identity.state() == IdentityState::Present
            && self.gate.is_known_to_allow(self.identity.account(), &reader.target, namespace)
    }

    fn reader(&self, lister: &str) -> Result<&Reader, Error> {
        self.readers
            .get(lister)
            .map(|reader| &**reader)
            .ok_or_else(|| Error::NotDeclared(format!("`describe` declares no read named {lister:?}")))
    }

    fn index(&self, index: &str) -> Result<(&DeclaredIndex, &Reader), Error> {
        let declared = self
            .indices
            .get(index)
            .ok_or_else(|| Error::NotDeclared(format!("`describe` declares no index named {index:?}")))?;
        Ok((declared, self.reader(&declared.lister)?))
    }

    /// Returns the namespaces of a read: the requested ones, as far as they are declared and the account may
    /// read them.
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
        // The gate knows accounts by name only.
        if let Some(denial) = self.identity.denial() {
            return Err(Error::Unavailable(denial.to_string()));
        }
        match self.access(reader, asked).await {
            Access::Allowed(namespaces) => Ok(namespaces),
            Access::Forbidden(denial @ (Denial::NotGranted { .. } | Denial::NotGrantedInCluster { .. })) => {
                Err(Error::Forbidden(denial.to_string()))
            }
            Access::Forbidden(denial) => Err(Error::Unavailable(denial.to_string())),
            Access::Unknown(reason) => Err(Error::Unavailable(reason)),
        }
    }

    /// Returns the access of the account to the requested namespaces. A read that is declared for all
    /// namespaces never asks Kubernetes about a namespace that the guest names, whether it exists or not: it
    /// only checks the set of readable ones.
    async fn access(&self, reader: &Reader, asked: &Namespaces) -> Access {
        let (account, target) = (self.identity.account(), &reader.target);
        match (&reader.namespaces, asked) {
            (Namespaces::All, Namespaces::One(namespace)) => {
                self.gate.access_in(account, target, namespace).await
            }
            _ => self.gate.access(account, target, asked).await,
        }
    }

    /// Validates a page request of a guest.
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

    /// Returns the cache after its index is complete for these namespaces. A new informer, such as one whose
    /// resource was absent, has no index yet: this builds it.
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
            slices.worked(VALUES_STEP * OBJECT).await;
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
        .ok_or_else(|| Error::NotSynced(format!("{lister} ({}) is not synced", reader.target)))
}

/// Returns the error of a read through an index.
fn index_error(index: &str, error: &indexer::Error) -> Error {
    match error {
        indexer::Error::Incomplete { namespace, left_out, .. } => Error::LimitExceeded(format!(
            "index {index} lacks {left_out} objects of namespace {namespace:?}, which are beyond its limits; \
             list the namespace instead, or read other namespaces one by one"
        )),
        error => Error::Gone(format!("index {index}: {error}")),
    }
}

/// Parses the source of a declared index.
pub(crate) fn index_source(name: &str, source: contract::IndexSource) -> Result<IndexSource, Error> {
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
