//! Reads by the values of an index.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::index::{self, Values, ValuesCursor};
use super::page;
use super::{CHUNK, Error, Indexer, NAMESPACE_INDEX, Objects, Page, PageRequest, View};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

/// How many left-out objects are filed in one slice at most, and how much of their text is read for that.
const RETRY_OBJECTS: usize = 32;
const RETRY_BYTES: usize = 128 << 10;

// === impl Indexer ===

impl Indexer {
    /// Returns the objects that an index filed under a value.
    ///
    /// # Errors
    ///
    /// The index is unknown, or it left objects out ([`Error::Incomplete`]).
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Object>, Error> {
        if name == NAMESPACE_INDEX {
            return Ok(self.snapshot(&Namespaces::one(value)));
        }
        let state = self.state.read();
        let Some(postings) = state.complete_index(name, &Namespaces::All)?.postings(value) else {
            return Ok(Vec::new());
        };
        if postings.len() <= CHUNK {
            let mut objects = Vec::with_capacity(postings.len());
            objects.extend(postings.iter().filter_map(|slot| state.slots().get(slot)).cloned());
            return Ok(objects);
        }
        let view = View::new(state.slots().clone(), postings.to_order(state.slots()));
        drop(state);
        Ok(view.objects(&Namespaces::All).cloned().collect())
    }

    /// Returns a view of the objects that an index filed under a value; see [`Objects`].
    ///
    /// # Errors
    ///
    /// As [`by_index`](Self::by_index).
    pub fn view_by_index(&self, name: &str, value: &str) -> Result<Objects, Error> {
        let state = self.state.read();
        if name == NAMESPACE_INDEX {
            return Ok(Objects::new(state.view(), Namespaces::one(value)));
        }
        let index = state.complete_index(name, &Namespaces::All)?;
        let order = index.postings(value).map(|postings| postings.to_order(state.slots()));
        let view = View::new(state.slots().clone(), order.unwrap_or_default());
        Ok(Objects::new(view, Namespaces::All))
    }

    /// Returns a page of the objects that an index filed under a value.
    ///
    /// If the request names namespaces, the work depends on the objects of these namespaces only.
    ///
    /// # Errors
    ///
    /// As [`by_index`](Self::by_index), for the requested namespaces. The index may be removed between two
    /// pages.
    pub fn by_index_page(&self, name: &str, value: &str, request: &PageRequest) -> Result<Page, Error> {
        self.by_index_step(name, value, request, usize::MAX)
    }

    /// Returns a page like [`by_index_page`](Self::by_index_page), but examines at most `max_examined`
    /// objects for it.
    ///
    /// So the page may have fewer objects than the limit, or none, although more match.
    ///
    /// # Errors
    ///
    /// As [`by_index_page`](Self::by_index_page).
    pub fn by_index_step(
        &self,
        name: &str,
        value: &str,
        request: &PageRequest,
        max_examined: usize,
    ) -> Result<Page, Error> {
        if name == NAMESPACE_INDEX {
            if !request.namespaces.contains(value) {
                return Ok(Page::default());
            }
            let request = PageRequest { namespaces: Namespaces::one(value), ..request.clone() };
            return Ok(self.list_step(&request, max_examined));
        }
        self.split(name, &request.namespaces)?;
        let mut failed = None;
        let page = page::fill(request, max_examined, |after, limit| {
            let state = self.state.read();
            match state.complete_index(name, &request.namespaces) {
                Ok(index) => {
                    let slots = index.within(value, state.slots(), &request.namespaces, after).take(limit);
                    slots.filter_map(|slot| state.entry(slot)).collect()
                }
                Err(error) => {
                    failed = Some(error);
                    Vec::new()
                }
            }
        });
        failed.map_or(Ok(page), Err)
    }

    /// Returns the keys of the objects that an index filed under a value.
    ///
    /// # Errors
    ///
    /// As [`by_index`](Self::by_index).
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<ObjectKey>, Error> {
        let state = self.state.read();
        if name == NAMESPACE_INDEX {
            let view = state.view();
            drop(state);
            return Ok(view.keys_within(&Namespaces::one(value)).cloned().collect());
        }
        let Some(postings) = state.complete_index(name, &Namespaces::All)?.postings(value) else {
            return Ok(Vec::new());
        };
        let view = View::new(state.slots().clone(), postings.to_order(state.slots()));
        drop(state);
        Ok(view.keys_within(&Namespaces::All).cloned().collect())
    }

    /// Returns the values that objects of these namespaces have in an index, sorted. Returns none for an
    /// unknown index. Values of objects that the index left out are missing; [`Indexer::index_values_step`]
    /// reports that.
    ///
    /// The lock is released between chunks, so a value that is added or removed meanwhile may be missing or
    /// present.
    #[must_use]
    pub fn index_values(&self, name: &str, namespaces: &Namespaces) -> Vec<String> {
        if name == NAMESPACE_INDEX {
            let view = self.view();
            return view.namespaces().filter(|it| namespaces.contains(it)).map(str::to_owned).collect();
        }
        let mut found = BTreeSet::new();
        let mut cursor = None;
        if self.split(name, namespaces).is_err() {
            return Vec::new();
        }
        loop {
            {
                let state = self.state.read();
                let Ok(index) = state.index(name) else { break };
                cursor = index.values_after(cursor.as_ref(), CHUNK, namespaces, &mut found);
            }
            if cursor.is_none() {
                break;
            }
        }
        let mut values: Vec<_> =
            found.iter().filter_map(|value| self.whole_value(name, namespaces, value)).collect();
        values.sort_unstable();
        values
    }

    /// Adds the next values that an index has in these namespaces to `found`, at most `max_values`.
    ///
    /// Moves the cursor, which becomes `None` at the end. A long value is added in its short form; see
    /// [`Indexer::whole_value`].
    ///
    /// # Errors
    ///
    /// The index is unknown, or it left out objects of these namespaces.
    pub fn index_values_step(
        &self,
        name: &str,
        namespaces: &Namespaces,
        max_values: usize,
        cursor: &mut Option<ValuesCursor>,
        found: &mut BTreeSet<Arc<str>>,
    ) -> Result<(), Error> {
        let state = self.state.read();
        let index = state.complete_index(name, namespaces)?;
        *cursor = index.values_after(cursor.as_ref(), max_values, namespaces, found);
        Ok(())
    }

    /// Returns the whole value for a value from [`Indexer::index_values_step`].
    ///
    /// An index stores a long value in a short form. The whole value is read from an object that has it.
    /// Returns `None` when the last of these objects was removed meanwhile.
    #[must_use]
    pub fn whole_value(&self, name: &str, namespaces: &Namespaces, value: &str) -> Option<String> {
        if !index::is_short_form(value) {
            return Some(value.to_owned());
        }
        let (object, source) = {
            let state = self.state.read();
            let index = state.index(name).ok()?;
            let slot = index.any_slot(value, state.slots(), namespaces)?;
            (state.slots().get(slot)?.clone(), index.source().clone())
        };
        let values = Values::of(&source, &object).ok()?;
        values.iter().find(|whole| index::filed_as(whole) == value).map(str::to_owned)
    }

    /// Prepares an index for readers of these namespaces, unless it is prepared already.
    ///
    /// An index that only readers of all namespaces use does not store its values by namespace.
    ///
    /// # Errors
    ///
    /// The index is unknown.
    pub fn split(&self, name: &str, namespaces: &Namespaces) -> Result<(), Error> {
        while !self.split_step(name, namespaces)? {}
        Ok(())
    }

    /// Does a slice of [`Indexer::split`] that takes well below a millisecond. Returns whether all is done.
    ///
    /// # Errors
    ///
    /// The index is unknown.
    pub fn split_step(&self, name: &str, namespaces: &Namespaces) -> Result<bool, Error> {
        if *namespaces == Namespaces::All
            || name == NAMESPACE_INDEX
            || self.state.read().index(name)?.is_split()
        {
            return Ok(true);
        }
        let mut state = self.state.write();
        let Some((index, slots)) = state.index_mut(name) else {
            return Err(Error::UnknownIndex(name.to_owned()));
        };
        Ok(index.split(CHUNK, slots))
    }

    /// Files a few of the objects that indices left out, if the indices have room now. Returns whether more
    /// may follow.
    pub(super) fn retry_left_out(&self) -> bool {
        let mut bytes = 0;
        for _ in 0..RETRY_OBJECTS {
            let Some((id, source, key, object)) = self.state.write().next_left_out() else { return false };
            let filing = Values::of(&source, &object);
            self.state.write().file(id, &object, &key, filing);
            bytes += object.json_length();
            if bytes > RETRY_BYTES {
                break;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
