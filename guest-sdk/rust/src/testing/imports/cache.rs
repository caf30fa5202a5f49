//! Reads of the cache.

use std::collections::BTreeSet;

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata::IndexSource;

use super::{Error, Page, PageRequest, Projection, Row, State, Value, page, row, target, with};
use crate::testing::selector::{matches_labels, scalars};
use crate::{Namespaces, ObjectKey};

pub(crate) fn get(lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error> {
    with(|state| Ok(row(state.cluster.get(&target(state, lister)?, key)?, projection)))
}

pub(crate) fn list(
    lister: &str,
    namespaces: &Namespaces,
    selector: &str,
    projection: &Projection,
    request: &PageRequest,
) -> Result<Page, Error> {
    with(|state| {
        let objects = state.cluster.list(&target(state, lister)?, namespaces);
        let matching = objects.filter(|object| matches_labels(selector, object));
        Ok(page(matching, projection, request, state.page_size))
    })
}

/// Returns the objects of an index with their values.
fn indexed<'a>(
    state: &'a State,
    name: &str,
    namespaces: &'a Namespaces,
) -> Result<impl Iterator<Item = (&'a Value, Vec<String>)>, Error> {
    let mut indices = state.description.iter().flat_map(|description| &description.indices);
    let found = indices.find(|index| index.name == name);
    let index = found.ok_or_else(|| Error::NotDeclared(format!("the index {name}")))?;
    let objects = state.cluster.list(&target(state, &index.lister)?, namespaces);
    let values = |object: &Value| match &index.source {
        IndexSource::Label(label) => {
            object["metadata"]["labels"][label].as_str().map(str::to_owned).into_iter().collect()
        }
        IndexSource::OwnerUid => scalars(object, "/metadata/ownerReferences/*/uid"),
        IndexSource::Pointer(pointer) => scalars(object, pointer),
    };
    Ok(objects.map(move |object| (object, values(object))))
}

pub(crate) fn by_index(
    index: &str,
    value: &str,
    namespaces: &Namespaces,
    projection: &Projection,
    request: &PageRequest,
) -> Result<Page, Error> {
    with(|state| {
        let found = indexed(state, index, namespaces)?;
        let found = found.filter(|(_, values)| values.iter().any(|other| other == value));
        Ok(page(found.map(|(object, _)| object), projection, request, state.page_size))
    })
}

pub(crate) fn index_values(index: &str) -> Result<Vec<String>, Error> {
    with(|state| {
        let values: BTreeSet<String> =
            indexed(state, index, &Namespaces::All)?.flat_map(|(_, values)| values).collect();
        Ok(values.into_iter().collect())
    })
}

pub(crate) fn has_synced(lister: &str) -> Result<bool, Error> {
    with(|state| target(state, lister).map(|_| true))
}

pub(crate) fn wait_until_seen(lister: &str, _: &str, _: u32) -> Result<(), Error> {
    with(|state| target(state, lister).map(drop))
}
