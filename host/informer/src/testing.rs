//! An API server's list and watch without a server, for tests, able to misbehave.
//!
//! The fake stands at the [`ListWatch`] seam. It keeps objects and their history, numbers versions from one
//! counter as etcd does, and answers lists and watches from that. Every way in which a real server fails is a method.

mod draft;
pub mod errors;
#[doc(hidden)]
pub mod fuzz;
#[doc(hidden)]
pub mod hidden;
mod metadata_only;
mod scripted;
mod selection;
mod state;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

pub use draft::Draft;
pub use metadata_only::MetadataOnly;
pub use scripted::ScriptedWatch;

use crate::list_watch::{
    ApiError, Bookmark, ItemHook, ListOptions, ListPage, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::names::TypeMeta;
use crate::object::Object;
use state::{Change, Fault, State, WatchLists};

/// A resource to list and watch, wholly in the test's hands. Clones are handles on the same.
///
/// What the test changes is sent to the watches that are open, in order. Method names that end in `_unseen` change what
/// is listed without a word to the open watches, as if their events had been lost on the way. They are in the history all
/// the same: a watch that resumes from before them is told.
#[derive(Clone)]
pub struct FakeListWatch {
    type_meta: TypeMeta,
    state: Arc<Mutex<State>>,
    n_requests: Arc<watch::Sender<usize>>,
}

/// Longer than any watch lasts.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// A request that the fake was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When.
    pub at: Instant,
    /// What.
    pub asked: Asked,
}

/// What a request asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A page of the list.
    List(ListOptions),
    /// A watch.
    Watch(WatchOptions),
}

/// From where lists are served, which decides whether they come in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serving {
    /// From the watch cache wherever it may be: only a list at no version (and its continuations) comes in pages.
    #[default]
    WatchCache,
    /// From etcd, always in the pages that were asked for.
    Storage,
}

// === impl FakeListWatch ===

impl FakeListWatch {
    /// Makes an empty resource of this kind, at version 1.
    pub fn new(type_meta: TypeMeta) -> Self {
        let n_requests = Arc::new(watch::channel(0).0);
        Self { type_meta, state: Arc::new(Mutex::new(State::new())), n_requests }
    }

    /// Makes an empty resource of Pods.
    pub fn pods() -> Self {
        Self::new(TypeMeta::new("v1", "Pod"))
    }

    // Contents.

    /// Creates the object, or changes it if it is there, and tells the watches. Returns it as it is now.
    pub fn put(&self, draft: impl Into<Draft>) -> Object {
        self.change(Change::Put(draft.into()), true)
    }

    /// Deletes the object and tells the watches. Returns its last state, at the version of the deletion.
    ///
    /// # Panics
    ///
    /// When there is no such object.
    pub fn delete(&self, key: &str) -> Object {
        self.change(Change::Delete(key.to_owned()), true)
    }

    /// Does what [`put`](Self::put) does, but the open watches miss it.
    pub fn put_unseen(&self, draft: impl Into<Draft>) -> Object {
        self.change(Change::Put(draft.into()), false)
    }

    /// Does what [`delete`](Self::delete) does, but the open watches miss it.
    pub fn delete_unseen(&self, key: &str) -> Object {
        self.change(Change::Delete(key.to_owned()), false)
    }

    /// Returns the objects there are, by key.
    pub fn objects(&self) -> Vec<Object> {
        self.state.lock().objects.values().cloned().collect()
    }

    /// Returns the newest version.
    pub fn resource_version(&self) -> String {
        self.state.lock().version.to_string()
    }

    // Watches.

    /// Sends a bookmark of the newest version to the open watches that allow it.
    pub fn bookmark(&self) {
        let mut state = self.state.lock();
        let bookmark = Bookmark {
            resource_version: state.version.to_string(),
            type_meta: Some(self.type_meta.clone()),
            is_initial_events_end: false,
        };
        state.watches.retain(|watch| {
            !watch.allows_bookmarks
                || watch.sender.unbounded_send(Ok(WatchEvent::Bookmark(bookmark.clone()))).is_ok()
        });
    }

    /// Sends any event to the open watches, as it is.
    pub fn send(&self, event: &WatchEvent) {
        self.state.lock().send(event);
    }

    /// Ends the open watches the orderly way.
    pub fn close_watches(&self) {
        self.state.lock().watches.clear();
    }

    /// Ends the open watches with an error, one for each as `error` makes it. [`errors`] has some.
    pub fn break_watches(&self, error: impl Fn() -> ApiError) {
        for watch in self.state.lock().watches.drain(..) {
            // A watch that nobody reads any more needs no error.
            let _ = watch.sender.unbounded_send(Err(error()));
        }
    }

    /// Leaves the open watches open, and never sends anything on them again.
    pub fn silence_watches(&self) {
        let state = &mut *self.state.lock();
        state.silent.append(&mut state.watches);
    }

    /// Forgets the history: who wants to watch from an older version than the newest is told that it has expired, on the
    /// watch, and so is who wants to list at exactly such a version.
    pub fn expire_history(&self) {
        self.state.lock().expire_history();
    }

    /// Ends the open watches and forgets the history, as a server does whose etcd was compacted while it was away.
    pub fn reset_watches(&self) {
        self.close_watches();
        self.expire_history();
    }

    /// From now on a watch that begins with what there is tells it, but not that this was all, until
    /// [`end_initial_events`](Self::end_initial_events).
    pub fn hold_initial_events_end(&self) {
        self.state.lock().holds_initial_events_end = true;
    }

    /// Tells each watch that waits for it that what it was told was all, at the newest version.
    pub fn end_initial_events(&self) {
        let mut state = self.state.lock();
        state.holds_initial_events_end = false;
        state.end_initial_events(&self.type_meta);
    }

    /// From now on the source says that it cannot watch from what there is (RL-07). To be said before anyone asks.
    pub fn decline_watch_list(&self) {
        self.state.lock().watch_lists = WatchLists::Declined;
    }

    /// From now on watches that are to begin with what there is are refused as invalid, as servers do that do not know them.
    pub fn refuse_watch_lists(&self) {
        self.state.lock().watch_lists = WatchLists::Refused;
    }

    /// From now on watches end by themselves after the time that was asked for.
    pub fn end_watches_in_time(&self) {
        self.state.lock().ends_watches_in_time = true;
    }

    // Lists.

    /// Says from where lists are served.
    pub fn serve_from(&self, serving: Serving) {
        self.state.lock().serving = serving;
    }

    /// Gives lists no version, as some servers of extension APIs do.
    pub fn list_at_no_version(&self) {
        self.state.lock().lists_without_version = true;
    }

    /// Lets every continue token that was given out expire.
    pub fn expire_continue_tokens(&self) {
        self.state.lock().token_age += 1;
    }

    // Requests.

    /// Answers the next list that has not been provided for with an error. Calls queue up.
    pub fn fail_list(&self, error: ApiError) {
        self.state.lock().list_faults.push_back(Fault::Fail(error));
    }

    /// Answers the next watch that has not been provided for with an error. Calls queue up.
    pub fn fail_watch(&self, error: ApiError) {
        self.state.lock().watch_faults.push_back(Fault::Fail(error));
    }

    /// Answers the next list that has not been provided for with this page.
    pub fn answer_list(&self, page: ListPage) {
        self.state.lock().list_faults.push_back(Fault::List(page));
    }

    /// Answers the next watch that has not been provided for with this stream, which the test has in its hands if it is from
    /// [`ScriptedWatch::new`].
    pub fn answer_watch(&self, stream: WatchStream) {
        self.state.lock().watch_faults.push_back(Fault::Watch(stream));
    }

    /// Never answers the next list that has not been provided for.
    pub fn hang_list(&self) {
        self.state.lock().list_faults.push_back(Fault::Hang);
    }

    /// Never answers the next watch that has not been provided for.
    pub fn hang_watch(&self) {
        self.state.lock().watch_faults.push_back(Fault::Hang);
    }

    /// Answers the next list that has not been provided for as usual, so that a fault behind it meets the one after.
    pub fn pass_list(&self) {
        self.state.lock().list_faults.push_back(Fault::Pass);
    }

    /// Answers the next watch that has not been provided for as usual, so that a fault behind it meets the one after.
    pub fn pass_watch(&self) {
        self.state.lock().watch_faults.push_back(Fault::Pass);
    }

    /// Takes back every fault that has yet to come.
    pub fn forget_faults(&self) {
        let mut state = self.state.lock();
        state.list_faults.clear();
        state.watch_faults.clear();
    }

    /// Returns everything that was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.lock().requests.clone()
    }

    /// Returns the lists that were asked for so far.
    pub fn lists(&self) -> Vec<ListOptions> {
        let list = |request: Request| match request.asked {
            Asked::List(options) => Some(options),
            Asked::Watch(_) => None,
        };
        self.requests().into_iter().filter_map(list).collect()
    }

    /// Returns the watches that were asked for so far.
    pub fn watches(&self) -> Vec<WatchOptions> {
        let watch = |request: Request| match request.asked {
            Asked::List(_) => None,
            Asked::Watch(options) => Some(options),
        };
        self.requests().into_iter().filter_map(watch).collect()
    }

    /// Returns how often everything was asked for so far: by the first page of a list, or by a watch that begins with it.
    pub fn n_listings(&self) -> usize {
        let is_listing = |request: &Request| match &request.asked {
            Asked::List(options) => options.continue_token.is_none(),
            Asked::Watch(options) => options.send_initial_events,
        };
        self.requests().iter().filter(|request| is_listing(request)).count()
    }

    /// Returns how many watches are open and read, silent ones among them.
    pub fn n_open_watches(&self) -> usize {
        let state = self.state.lock();
        state.watches.iter().chain(&state.silent).filter(|watch| !watch.sender.is_closed()).count()
    }

    /// Waits until so many lists were asked for, since the beginning.
    pub async fn until_lists(&self, n_lists: usize) {
        self.until(|fake| fake.lists().len() >= n_lists).await;
    }

    /// Waits until everything was asked for so often, since the beginning, as a list or as the beginning of a watch.
    pub async fn until_listings(&self, n_listings: usize) {
        self.until(|fake| fake.n_listings() >= n_listings).await;
    }

    /// Waits until so many watches were asked for, since the beginning.
    pub async fn until_watches(&self, n_watches: usize) {
        self.until(|fake| fake.watches().len() >= n_watches).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        // The fake itself holds the other end, so this fails only when nothing more is asked for. With a paused clock that is at once.
        let mut n_requests = self.n_requests.subscribe();
        if tokio::time::timeout(PATIENCE, n_requests.wait_for(|_| is_so(self))).await.is_err() {
            panic!("what was waited for was not asked for in {PATIENCE:?}: {:#?}", self.requests());
        }
    }

    fn change(&self, change: Change, is_seen: bool) -> Object {
        self.state.lock().change(change, &self.type_meta, is_seen)
    }

    /// Notes a request down and returns what is to happen to it.
    fn asked(&self, asked: Asked) -> Fault {
        let mut state = self.state.lock();
        let faults = match &asked {
            Asked::List(_) => &mut state.list_faults,
            Asked::Watch(_) => &mut state.watch_faults,
        };
        let fault = faults.pop_front().unwrap_or(Fault::Pass);
        state.requests.push(Request { at: Instant::now(), asked });
        drop(state);
        self.n_requests.send_modify(|n_requests| *n_requests += 1);
        fault
    }
}

#[async_trait]
impl ListWatch for FakeListWatch {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        match self.asked(Asked::List(options.clone())) {
            Fault::Pass => {
                let mut page = self.state.lock().list(&options)?;
                page.items = page.items.into_iter().map(keep).collect();
                Ok(page)
            }
            Fault::List(mut page) => {
                page.items = page.items.into_iter().map(keep).collect();
                Ok(page)
            }
            Fault::Fail(error) => Err(error),
            Fault::Hang => std::future::pending().await,
            Fault::Watch(_) => unreachable!("a list is not answered with a watch"),
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        match self.asked(Asked::Watch(options.clone())) {
            Fault::Pass => {}
            Fault::Watch(stream) => return Ok(stream),
            Fault::Fail(error) => return Err(error),
            Fault::Hang => return std::future::pending().await,
            Fault::List(_) => unreachable!("a watch is not answered with a list"),
        }
        let mut state = self.state.lock();
        let events = state.watch(&options, &self.type_meta)?;
        Ok(if state.ends_watches_in_time {
            events.take_until(tokio::time::sleep(options.timeout)).boxed()
        } else {
            events.boxed()
        })
    }

    fn supports_watch_list(&self) -> bool {
        self.state.lock().watch_lists != WatchLists::Declined
    }
}

#[cfg(test)]
mod tests;
