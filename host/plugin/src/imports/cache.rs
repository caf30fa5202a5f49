//! `cache`: reads of the cache that all plugins share.

use std::{sync::Arc, time::Duration};

use super::{check_key, check_short, event::check_pointers};
use crate::{
    bindings::oarlock::plugin::cache::Host,
    contract::{Error, Namespaces, ObjectKey, Page, PageRequest, Projection, Row},
    state::StoreState,
};

const MAX_ROWS: u32 = 1_000;
const MAX_WAIT: Duration = Duration::from_secs(5);

impl Host for StoreState {
    async fn get(&mut self, lister: String, key: ObjectKey, projection: Projection) -> Result<Row, Error> {
        self.takes(&[&lister, &key, &projection])?;
        check_short("lister's name", &lister)?;
        check_key(&key)?;
        check_projection(&projection)?;
        let cache = Arc::clone(&self.access.cache);
        self.waits_for("cache.get", cache.get(&lister, &key, &projection)).await
    }

    async fn list(
        &mut self,
        lister: String,
        namespaces: Namespaces,
        label_selector: String,
        projection: Projection,
        page: PageRequest,
    ) -> Result<Page, Error> {
        self.takes(&[&lister, &namespaces, &label_selector, &projection, &page])?;
        check_short("lister's name", &lister)?;
        check_short("label selector", &label_selector)?;
        check_namespaces(&namespaces)?;
        check_projection(&projection)?;
        let page = check_page(page)?;
        let cache = Arc::clone(&self.access.cache);
        self.waits_for("cache.list", cache.list(&lister, &namespaces, &label_selector, &projection, &page))
            .await
    }

    async fn by_index(
        &mut self,
        index: String,
        value: String,
        namespaces: Namespaces,
        projection: Projection,
        page: PageRequest,
    ) -> Result<Page, Error> {
        self.takes(&[&index, &value, &namespaces, &projection, &page])?;
        check_short("index's name", &index)?;
        check_short("index's value", &value)?;
        check_namespaces(&namespaces)?;
        check_projection(&projection)?;
        let page = check_page(page)?;
        let cache = Arc::clone(&self.access.cache);
        self.waits_for("cache.by-index", cache.by_index(&index, &value, &namespaces, &projection, &page))
            .await
    }

    async fn index_values(&mut self, index: String) -> Result<Vec<String>, Error> {
        self.takes(&[&index])?;
        check_short("index's name", &index)?;
        let cache = Arc::clone(&self.access.cache);
        self.waits_for("cache.index-values", cache.index_values(&index)).await
    }

    async fn has_synced(&mut self, lister: String) -> Result<bool, Error> {
        self.takes(&[&lister])?;
        check_short("lister's name", &lister)?;
        let cache = Arc::clone(&self.access.cache);
        self.waits_for("cache.has-synced", cache.has_synced(&lister)).await
    }

    async fn wait_until_seen(
        &mut self,
        lister: String,
        resource_version: String,
        timeout_ms: u32,
    ) -> Result<(), Error> {
        self.takes(&[&lister, &resource_version])?;
        check_short("lister's name", &lister)?;
        check_short("resourceVersion", &resource_version)?;
        let timeout = wait_of(timeout_ms);
        let cache = Arc::clone(&self.access.cache);
        self.waits_for("cache.wait-until-seen", cache.wait_until_seen(&lister, &resource_version, timeout))
            .await
    }
}

/// Returns the wait that a guest asks for, as far as it may.
fn wait_of(timeout_ms: u32) -> Duration {
    Duration::from_millis(timeout_ms.into()).min(MAX_WAIT)
}

pub(super) fn check_projection(projection: &Projection) -> Result<(), Error> {
    match projection {
        Projection::Fields(pointers) => check_pointers(pointers),
        Projection::Keys | Projection::Json => Ok(()),
    }
}

pub(super) fn check_namespaces(namespaces: &Namespaces) -> Result<(), Error> {
    match namespaces {
        Namespaces::One(namespace) => check_short("namespace", namespace),
        Namespaces::All => Ok(()),
    }
}

pub(super) fn check_page(page: PageRequest) -> Result<PageRequest, Error> {
    check_short("continue token", &page.continue_token)?;
    let limit = if page.limit == 0 { MAX_ROWS } else { page.limit.min(MAX_ROWS) };
    Ok(PageRequest { limit, ..page })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_version_is_at_most_five_seconds() {
        assert_eq!(wait_of(4_999), Duration::from_millis(4_999));
        assert_eq!((wait_of(5_001), wait_of(u32::MAX)), (MAX_WAIT, MAX_WAIT));
    }
}
