//! Visits each object of a list, while the pager fetches the next pages.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Pager, following};
use crate::list_watch::{ApiError, ListOptions, ListPage};
use crate::object::Object;

/// The greatest buffer that the channel allows.
const MAX_AHEAD: usize = tokio::sync::Semaphore::MAX_PERMITS;

/// The reason why the visit ended before the last object.
#[derive(Debug, thiserror::Error)]
pub enum EachError<E> {
    /// A page failed. The objects of the pages before it were visited.
    #[error("failed to list")]
    List(#[source] ApiError),
    /// The function returned an error for an object.
    #[error("stopped at an object")]
    Stopped(#[source] E),
    /// The token was cancelled.
    #[error("cancelled")]
    Cancelled,
}

// === impl Pager ===

impl Pager<'_> {
    /// Calls `visit` with each object of a list, in the order of the server.
    ///
    /// While `visit` handles one page, the pager fetches the next one, and
    /// [`n_buffered_pages`](super::Config::n_buffered_pages) more. It fetches before each page, and while
    /// `visit` waits. An error of `visit` ends the call at once; the token ends it between two pages. An
    /// expired token is always an error, since the objects of the earlier pages were already visited (PG-05).
    pub async fn each_item<E>(
        &self,
        options: ListOptions,
        token: &CancellationToken,
        mut visit: impl AsyncFnMut(Object) -> Result<(), E>,
    ) -> Result<(), EachError<E>> {
        self.each_page(options, token, async |page: ListPage| {
            for item in page.items {
                visit(item).await?;
            }
            Ok(())
        })
        .await
    }

    /// Like [`each_item`](Self::each_item), with whole pages.
    pub async fn each_page<E>(
        &self,
        options: ListOptions,
        token: &CancellationToken,
        mut visit: impl AsyncFnMut(ListPage) -> Result<(), E>,
    ) -> Result<(), EachError<E>> {
        // One more than the buffer: client-go's goroutine has one more page while the buffer is full.
        let (sender, mut pages) =
            mpsc::channel(self.config.n_buffered_pages.saturating_add(1).min(MAX_AHEAD));
        let fetch = async move { Ok(self.fetch(options, sender).await) };
        let visit_all = async {
            loop {
                let page = tokio::select! {
                    biased;
                    () = token.cancelled() => return Err(EachError::Cancelled),
                    page = pages.recv() => page,
                };
                let Some(page) = page else { return Ok(()) };
                // Lets the fetch fill the free place, also if `visit` never waits.
                tokio::task::yield_now().await;
                visit(page).await.map_err(EachError::Stopped)?;
            }
        };
        // An error of `visit` ends the fetch; a failed page does not end the visit of the pages before it.
        // Biased: the fetch is polled first.
        let (fetched, ()) = tokio::try_join!(biased; fetch, visit_all)?;
        fetched.map_err(EachError::List)
    }

    async fn fetch(&self, options: ListOptions, pages: mpsc::Sender<ListPage>) -> Result<(), ApiError> {
        let mut next = self.first(options);
        loop {
            // Requests a page only if the buffer has room for it.
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
