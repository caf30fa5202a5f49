//! The function `client.list`: pages of objects as the API server has them now.
//!
//! A page is decoded while it arrives, chunk by chunk, so that neither its text is kept as a whole nor a
//! worker is busy with it for long. The token is the API server's.

use http::Method;
use oarlock_informer::{
    Object,
    list_watch::{
        DecodeError, ListPage,
        api::{Config, PageDecoder},
    },
    object::Pruning,
};
use oarlock_plugin::{
    contract::{Content, Error, GroupVersionResource, Namespaces, Page, PageRequest, Projection, Row},
    kube_access::Selectors,
};

use super::{
    pages::PAGE_BYTES,
    request::{Call, Requester},
    rows::{self, Columns},
    slices::Slices,
};

/// The longest object of a page.
const LONGEST_OBJECT: usize = 8 << 20;

// === impl Requester ===

impl Requester {
    pub(super) async fn list(
        &self,
        target: &GroupVersionResource,
        namespaces: &Namespaces,
        selectors: Selectors<'_>,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        let columns = Columns::parse(projection, Content::Full)?;
        let path = self.list_path(target, namespaces).await?;
        let what = match namespaces {
            Namespaces::All => format!("list {}", target.plural),
            Namespaces::One(namespace) => format!("list {} in {namespace}", target.plural),
        };
        let limit = page.limit.to_string();
        let Selectors { labels, fields } = selectors;
        let query: Vec<_> = [
            ("limit", limit.as_str()),
            ("continue", &page.continue_token),
            ("labelSelector", labels),
            ("fieldSelector", fields),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
        let call = Call {
            method: Method::GET,
            path,
            query: &query,
            content_type: "application/json",
            body: Vec::new(),
            what: &what,
            preconditions: false,
        };
        let malformed =
            |error: &dyn std::fmt::Display| Error::Unavailable(format!("{what}: the response: {error}"));
        let resource = oarlock_informer::GroupVersionResource::new(
            target.group.as_str(),
            target.version.as_str(),
            target.plural.as_str(),
        );
        let config = Config {
            pruning: Pruning::none(),
            max_object_bytes: LONGEST_OBJECT,
            ..Config::new(resource, None)
        };
        let keep = |object: Object| object;
        let mut decoder = PageDecoder::new(&config, &keep);
        // The charge lasts until the rows are made of the objects.
        let _charge =
            self.send_into(call, |chunk| decoder.push(chunk).map_err(|error| malformed(&error))).await?;
        let ListPage { continue_token, items, undecodable, .. } =
            decoder.finish().map_err(|error| malformed(&error))?;
        if let Some(first) = undecodable.first() {
            return Err(match &*first.error {
                DecodeError::TooLong { limit, .. } => {
                    Error::LimitExceeded(format!("{what}: an object has more than {limit} bytes"))
                }
                error => malformed(error),
            });
        }
        let mut slices = Slices::begin();
        let mut length = 0;
        let mut made: Vec<Row> = Vec::with_capacity(items.len());
        for object in items {
            let row = columns.row(&object, &mut slices).await?;
            length += rows::bytes(&row);
            if length > PAGE_BYTES {
                return Err(Error::LimitExceeded(format!(
                    "{what}: the rows have more than {PAGE_BYTES} bytes; ask for fewer rows than {}",
                    page.limit
                )));
            }
            made.push(row);
        }
        Ok(Page { rows: made, continue_token: continue_token.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests;
