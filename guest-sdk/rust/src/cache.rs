//! Reads of the shared cache.

use serde::de::DeserializeOwned;

use oarlock_sdk_bindings::oarlock::plugin::cache as wit;
pub use oarlock_sdk_bindings::oarlock::plugin::types::Row;
pub(crate) use oarlock_sdk_bindings::oarlock::plugin::types::{Page, PageRequest, Projection};

use crate::{Error, Namespaces, ObjectKey};

/// The part of each object that an answer carries.
#[derive(Clone, Copy, Debug)]
pub enum Select<'a> {
    /// Key, uid and resourceVersion only.
    Keys,
    /// The JSON texts at these pointers.
    Fields(&'a [&'a str]),
    /// The whole object as JSON text.
    Json,
}

/// Returns one object, or `None` if the cache has no object of that name.
///
/// # Errors
///
/// Those of `cache.get` in the contract, except `not-found`.
pub fn get(lister: &str, key: &ObjectKey, select: Select<'_>) -> Result<Option<Row>, Error> {
    match wit::get(lister, key, &select.into()) {
        Ok(row) => Ok(Some(row)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns all objects of a lister whose labels match the selector. Reads all pages.
///
/// # Errors
///
/// Those of `cache.list` in the contract.
pub fn list(
    lister: &str,
    namespaces: &Namespaces,
    selector: &str,
    select: Select<'_>,
) -> Result<Vec<Row>, Error> {
    let projection = select.into();
    all_pages(|page| wit::list(lister, namespaces, selector, &projection, page))
}

/// Returns all objects that have a value in a declared index. Reads all pages.
///
/// # Errors
///
/// Those of `cache.by-index` in the contract.
pub fn by_index(index: &str, value: &str, select: Select<'_>) -> Result<Vec<Row>, Error> {
    let projection = select.into();
    all_pages(|page| wit::by_index(index, value, &Namespaces::All, &projection, page))
}

/// Returns the values in a declared index, sorted.
///
/// # Errors
///
/// Those of `cache.index-values` in the contract.
pub fn index_values(index: &str) -> Result<Vec<String>, Error> {
    wit::index_values(index)
}

/// Waits at most `timeout_ms` milliseconds until the cache has processed the resourceVersion that a write
/// returned.
///
/// # Errors
///
/// `timeout` if it has not, and the other errors of `cache.wait-until-seen` in the contract.
pub fn wait_until_seen(lister: &str, resource_version: &str, timeout_ms: u32) -> Result<(), Error> {
    wit::wait_until_seen(lister, resource_version, timeout_ms)
}

/// Reads values out of a [`Row`].
pub trait RowExt {
    /// Returns the value of the n-th field of the request, or `None` if the object has no such field.
    ///
    /// # Errors
    ///
    /// `invalid` for a value of another type.
    fn field<T: DeserializeOwned>(&self, n: usize) -> Result<Option<T>, Error>;
}

// === impl RowExt ===

impl RowExt for Row {
    fn field<T: DeserializeOwned>(&self, n: usize) -> Result<Option<T>, Error> {
        let text = self.fields.get(n).and_then(Option::as_deref);
        text.map(|text| crate::event::parse("", text)).transpose()
    }
}

// === impl Select ===

impl From<Select<'_>> for Projection {
    fn from(select: Select<'_>) -> Self {
        match select {
            Select::Keys => Self::Keys,
            Select::Fields(pointers) => {
                Self::Fields(pointers.iter().map(|&pointer| pointer.to_owned()).collect())
            }
            Select::Json => Self::Json,
        }
    }
}

pub(crate) fn all_pages(
    mut fetch: impl FnMut(&PageRequest) -> Result<Page, Error>,
) -> Result<Vec<Row>, Error> {
    let mut request = PageRequest { limit: 0, continue_token: String::new() };
    let mut rows = Vec::new();
    loop {
        let page = fetch(&request)?;
        rows.extend(page.rows);
        if page.continue_token.is_empty() {
            return Ok(rows);
        }
        request.continue_token = page.continue_token;
    }
}
