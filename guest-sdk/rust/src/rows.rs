//! What a read returns of each object, and iterators over all pages.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use oarlock_sdk_bindings::oarlock::plugin::types::{Page, PageRequest, Projection, Row};

use crate::{Error, Fields, Namespaces, Object, ObjectRef};

/// What a read returns of each object:
///
/// - [`ObjectRef`]: name and version only;
/// - a struct that derives [`Fields`]: these values;
/// - [`Object<T>`]: the whole object, as text that is parsed when it is used;
/// - `(ObjectRef, F)`: name, version, and these values.
pub trait FromRow: Sized {
    #[doc(hidden)]
    fn projection() -> Projection;

    #[doc(hidden)]
    fn from_row(row: Row) -> Result<Self, Error>;
}

/// Iterates over the objects of an answer. Asks the host for the next page when it needs it.
///
/// After an error it ends.
#[must_use]
pub struct Rows<V> {
    query: Query,
    projection: Projection,
    /// The request for the next page; `None` after the last one.
    next: Option<PageRequest>,
    rows: std::vec::IntoIter<Row>,
    value: PhantomData<fn() -> V>,
}

/// What [`Rows`] asks the host for.
pub(crate) enum Query {
    List { lister: &'static str, namespaces: Namespaces, selector: String },
    Index { index: &'static str, value: String, namespaces: Namespaces },
}

// === impl FromRow ===

impl<F: Fields> FromRow for F {
    fn projection() -> Projection {
        Projection::Fields(F::POINTERS.iter().map(|&pointer| pointer.to_owned()).collect())
    }

    fn from_row(row: Row) -> Result<Self, Error> {
        F::parse(&row.fields)
    }
}

impl<F: Fields> FromRow for (ObjectRef, F) {
    fn projection() -> Projection {
        F::projection()
    }

    fn from_row(row: Row) -> Result<Self, Error> {
        let fields = F::parse(&row.fields)?;
        Ok((row.object, fields))
    }
}

impl FromRow for ObjectRef {
    fn projection() -> Projection {
        Projection::Keys
    }

    fn from_row(row: Row) -> Result<Self, Error> {
        Ok(row.object)
    }
}

impl<T: DeserializeOwned> FromRow for Object<T> {
    fn projection() -> Projection {
        Projection::Json
    }

    fn from_row(row: Row) -> Result<Self, Error> {
        Ok(Self::new(row.object, row.json.unwrap_or_default()))
    }
}

// === impl Rows ===

impl<V: FromRow> Rows<V> {
    pub(crate) fn new(query: Query) -> Self {
        Self {
            query,
            projection: V::projection(),
            next: Some(first_page()),
            rows: Vec::new().into_iter(),
            value: PhantomData,
        }
    }
}

impl<V: FromRow> Iterator for Rows<V> {
    type Item = Result<V, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(V::from_row(row).inspect_err(|_| self.end()));
            }
            let mut request = self.next.take()?;
            match self.query.page(&self.projection, &request) {
                Ok(page) => {
                    self.rows = page.rows.into_iter();
                    request.continue_token = page.continue_token;
                    self.next = (!request.continue_token.is_empty()).then_some(request);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<V> Rows<V> {
    fn end(&mut self) {
        self.next = None;
        self.rows = Vec::new().into_iter();
    }
}

// === impl Query ===

impl Query {
    fn page(&self, projection: &Projection, request: &PageRequest) -> Result<Page, Error> {
        use crate::imports::cache;

        match self {
            Self::List { lister, namespaces, selector } => {
                cache::list(lister, namespaces, selector, projection, request)
            }
            Self::Index { index, value, namespaces } => {
                cache::by_index(index, value, namespaces, projection, request)
            }
        }
    }
}

pub(crate) fn first_page() -> PageRequest {
    PageRequest { limit: 0, continue_token: String::new() }
}
