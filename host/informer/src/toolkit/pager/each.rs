//! Each object of a list, while the pages behind it are fetched already.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Pager, following};
use crate::list_watch::{ApiError, ListOptions, ListPage};
use crate::object::Object;

/// No buffer is larger, whatever is configured: the channel allows no more.
const MAX_AHEAD: usize = tokio::sync::Semaphore::MAX_PERMITS;

/// Why not every object was looked at.
#[derive(Debug, thiserror::Error)]
pub enum EachError<E> {
    /// A page could not be had. What was on the pages before it has been looked at.
    #[error("failed to list")]
    List(#[source] ApiError),
    /// Who looked at an object had enough.
    #[error("stopped at an object")]
    Stopped(#[source] E),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

// === impl Pager ===

impl Pager<'_> {
    /// Shows each object of a list to `look`, in the server's order, one after another.
    ///
    /// While one page is looked at, the next one is fetched, and [`n_buffered_pages`](super::Config::n_buffered_pages) more behind it:
    /// the fetching gets a turn before each page, and whenever `look` waits for anything. An error of `look` ends it at once;
    /// the token between two pages. A page that has expired is an error whatever the configuration says, since what was on the
    /// pages before it cannot be unseen (PG-05).
    pub async fn each_item<E>(
        &self,
        options: ListOptions,
        token: &CancellationToken,
        mut look: impl AsyncFnMut(Object) -> Result<(), E>,
    ) -> Result<(), EachError<E>> {
        self.each_page(options, token, async |page: ListPage| {
            for item in page.items {
                look(item).await?;
            }
            Ok(())
        })
        .await
    }

    /// Does what [`each_item`](Self::each_item) does with whole pages.
    pub async fn each_page<E>(
        &self,
        options: ListOptions,
        token: &CancellationToken,
        mut look: impl AsyncFnMut(ListPage) -> Result<(), E>,
    ) -> Result<(), EachError<E>> {
        // One more than the buffer: client-go's goroutine holds a page in its hand while the buffer is full.
        let (sender, mut pages) =
            mpsc::channel(self.config.n_buffered_pages.saturating_add(1).min(MAX_AHEAD));
        let fetch = async move { Ok(self.fetch(options, sender).await) };
        let look_at_all = async {
            loop {
                let page = tokio::select! {
                    biased;
                    () = token.cancelled() => return Err(EachError::Cancelled),
                    page = pages.recv() => page,
                };
                let Some(page) = page else { return Ok(()) };
                // The place that this page left is the next one's, also if `look` never waits.
                tokio::task::yield_now().await;
                look(page).await.map_err(EachError::Stopped)?;
            }
        };
        // Who has enough of it ends the fetching; a page that cannot be had does not end the looking at those before it.
        // First the fetching, each time.
        let (fetched, ()) = tokio::try_join!(biased; fetch, look_at_all)?;
        fetched.map_err(EachError::List)
    }

    async fn fetch(&self, options: ListOptions, pages: mpsc::Sender<ListPage>) -> Result<(), ApiError> {
        let mut next = self.first(options);
        loop {
            // A page without a place is not asked for.
            let Ok(place) = pages.reserve().await else { return Ok(()) };
            let page = self.list_watch.list(next.clone(), &|item| item).await?;
            let continue_token = page.continue_token.clone();
            place.send(page);
            match continue_token {
                Some(token) => next = following(next, token),
                None => return Ok(()),
            }
        }
    }
}
