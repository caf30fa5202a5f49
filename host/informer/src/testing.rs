//! A fake of an API server's lists and watches, for tests, with faults.
//!
//! The fake implements [`ListWatch`]. It keeps objects and their history, takes versions from one counter as
//! etcd does, and answers lists and watches from these. Each fault of a real server is a method.

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
use state::{Answer, Change, FakeState, WatchLists};

/// A resource of a fake API server. Clones share it.
///
/// The open watches get the test's changes as events, in order. A method whose name ends in `_unseen` changes
/// the objects without an event to the open watches, as if the event were lost. The change is in the history:
/// a watch that begins at an older version gets the event.
#[derive(Clone)]
pub struct FakeListWatch {
    type_meta: TypeMeta,
    state: Arc<Mutex<FakeState>>,
    n_requests: Arc<watch::Sender<usize>>,
}

/// The deadline of a wait in real time.
const LIMIT: Duration = Duration::from_secs(60);

/// The deadline of a wait in the time of a paused clock, which goes by at once when all tasks are idle.
const PAUSED_LIMIT: Duration = Duration::from_secs(86_400);

/// A request to the fake.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When it was sent.
    pub at: Instant,
    /// Its verb and options.
    pub kind: RequestKind,
}

/// The verb and the options of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// One page of the list.
    List(ListOptions),
    /// A watch.
    Watch(WatchOptions),
}

/// Where lists are served from, which decides whether they have pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serving {
    /// From the watch cache if possible: only a list without a version, and its continuations, have pages.
    #[default]
    WatchCache,
    /// From etcd, always in pages of the requested limit.
    Storage,
}

// === impl FakeListWatch ===

impl FakeListWatch {
    /// Makes a resource of this type without objects, at version 1.
    pub fn new(type_meta: TypeMeta) -> Self {
        let n_requests = Arc::new(watch::channel(0).0);
        Self { type_meta, state: Arc::new(Mutex::new(FakeState::new())), n_requests }
    }

    /// Makes a resource of Pods without objects.
    pub fn pods() -> Self {
        Self::new(TypeMeta::new("v1", "Pod"))
    }

    // Objects.

    /// Creates or updates the object, sends the event, and returns the new state.
    pub fn put(&self, draft: impl Into<Draft>) -> Object {
        self.change(Change::Put(draft.into()), true)
    }

    /// Deletes the object, sends the event, and returns the last state, at the version of the deletion.
    ///
    /// # Panics
    ///
    /// If there is no such object.
    pub fn delete(&self, key: &str) -> Object {
        self.change(Change::Delete(key.to_owned()), true)
    }

    /// Creates or updates the object without an event to the open watches.
    pub fn put_unseen(&self, draft: impl Into<Draft>) -> Object {
        self.change(Change::Put(draft.into()), false)
    }

    /// Deletes the object without an event to the open watches.
    pub fn delete_unseen(&self, key: &str) -> Object {
        self.change(Change::Delete(key.to_owned()), false)
    }

    /// Returns the objects, sorted by key.
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

    /// Sends an event to the open watches, without a change of the objects.
    pub fn send(&self, event: &WatchEvent) {
        self.state.lock().send(event);
    }

    /// Ends the open watches without an error.
    pub fn close_watches(&self) {
        self.state.lock().watches.clear();
    }

    /// Ends each open watch with an error that `error` returns; [`errors`] has some.
    pub fn break_watches(&self, error: impl Fn() -> ApiError) {
        for watch in self.state.lock().watches.drain(..) {
            // The reader of the watch may be gone.
            let _ = watch.sender.unbounded_send(Err(error()));
        }
    }

    /// Keeps the open watches open, and never sends anything on them again.
    pub fn silence_watches(&self) {
        let state = &mut *self.state.lock();
        state.silent.append(&mut state.watches);
    }

    /// Drops the history: a watch from an older version than the newest gets an event that it has expired,
    /// and an exact list at such a version fails as expired.
    pub fn expire_history(&self) {
        self.state.lock().expire_history();
    }

    /// Ends the open watches and drops the history, as if etcd had been compacted while the server was down.
    pub fn reset_watches(&self) {
        self.close_watches();
        self.expire_history();
    }

    /// From now on sends no bookmark that ends initial events, until
    /// [`end_initial_events`](Self::end_initial_events).
    pub fn hold_initial_events_end(&self) {
        self.state.lock().holds_initial_events_end = true;
    }

    /// Sends the bookmark that ends the initial events to each watch that waits for it, at the newest
    /// version.
    pub fn end_initial_events(&self) {
        let mut state = self.state.lock();
        state.holds_initial_events_end = false;
        state.end_initial_events(&self.type_meta);
    }

    /// From now on [`ListWatch::supports_watch_list`] returns false (RL-07). To be called before the
    /// reflector runs.
    pub fn decline_watch_list(&self) {
        self.state.lock().watch_lists = WatchLists::Declined;
    }

    /// From now on rejects watches with initial events as invalid, as a server without that feature does.
    pub fn refuse_watch_lists(&self) {
        self.state.lock().watch_lists = WatchLists::Refused;
    }

    /// From now on ends each watch after the timeout of its request.
    pub fn end_watches_at_their_timeout(&self) {
        self.state.lock().ends_watches_at_their_timeout = true;
    }

    // Lists.

    /// Sets where lists are served from.
    pub fn serve_from(&self, serving: Serving) {
        self.state.lock().serving = serving;
    }

    /// From now on lists have no version, as those of some servers of extension APIs.
    pub fn list_without_version(&self) {
        self.state.lock().lists_without_version = true;
    }

    /// Lets all continue tokens so far expire.
    pub fn expire_continue_tokens(&self) {
        self.state.lock().token_age += 1;
    }

    // Requests. The answers queue up: the first call answers the next request, the second call the one after.

    /// Answers the next list with an error. Calls queue up.
    pub fn fail_list(&self, error: ApiError) {
        self.state.lock().list_answers.push_back(Answer::Fail(error));
    }

    /// Answers the next watch with an error. Calls queue up.
    pub fn fail_watch(&self, error: ApiError) {
        self.state.lock().watch_answers.push_back(Answer::Fail(error));
    }

    /// Answers the next list with this page. Calls queue up.
    pub fn answer_list(&self, page: ListPage) {
        self.state.lock().list_answers.push_back(Answer::List(page));
    }

    /// Answers the next watch with this stream, such as one of [`ScriptedWatch::new`]. Calls queue up.
    pub fn answer_watch(&self, stream: WatchStream) {
        self.state.lock().watch_answers.push_back(Answer::Watch(stream));
    }

    /// Never answers the next list. Calls queue up.
    pub fn hang_list(&self) {
        self.state.lock().list_answers.push_back(Answer::Hang);
    }

    /// Never answers the next watch. Calls queue up.
    pub fn hang_watch(&self) {
        self.state.lock().watch_answers.push_back(Answer::Hang);
    }

    /// Answers the next list without a fault, so that the fault of a later call applies to a later list.
    pub fn serve_list(&self) {
        self.state.lock().list_answers.push_back(Answer::Serve);
    }

    /// Answers the next watch without a fault, so that the fault of a later call applies to a later watch.
    pub fn serve_watch(&self) {
        self.state.lock().watch_answers.push_back(Answer::Serve);
    }

    /// Drops all answers that were set and not used.
    pub fn clear_faults(&self) {
        let mut state = self.state.lock();
        state.list_answers.clear();
        state.watch_answers.clear();
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.lock().requests.clone()
    }

    /// Returns the options of all lists so far.
    pub fn lists(&self) -> Vec<ListOptions> {
        let list = |request: Request| match request.kind {
            RequestKind::List(options) => Some(options),
            RequestKind::Watch(_) => None,
        };
        self.requests().into_iter().filter_map(list).collect()
    }

    /// Returns the options of all watches so far.
    pub fn watches(&self) -> Vec<WatchOptions> {
        let watch = |request: Request| match request.kind {
            RequestKind::List(_) => None,
            RequestKind::Watch(options) => Some(options),
        };
        self.requests().into_iter().filter_map(watch).collect()
    }

    /// Returns the number of requests for all objects so far: first pages of lists, and watches with initial
    /// events.
    pub fn n_listings(&self) -> usize {
        let is_listing = |request: &Request| match &request.kind {
            RequestKind::List(options) => options.continue_token.is_none(),
            RequestKind::Watch(options) => options.send_initial_events,
        };
        self.requests().iter().filter(|request| is_listing(request)).count()
    }

    /// Returns the number of watches with a reader, silent ones included.
    pub fn n_open_watches(&self) -> usize {
        let state = self.state.lock();
        state.watches.iter().chain(&state.silent).filter(|watch| !watch.sender.is_closed()).count()
    }

    /// Waits until this many lists were requested in all.
    pub async fn until_lists(&self, n_lists: usize) {
        self.until(|fake| fake.lists().len() >= n_lists).await;
    }

    /// Waits until [`n_listings`](Self::n_listings) has reached this number.
    pub async fn until_listings(&self, n_listings: usize) {
        self.until(|fake| fake.n_listings() >= n_listings).await;
    }

    /// Waits until this many watches were requested in all.
    pub async fn until_watches(&self, n_watches: usize) {
        self.until(|fake| fake.watches().len() >= n_watches).await;
    }

    async fn until(&self, is_reached: impl Fn(&Self) -> bool) {
        let begun_at = (std::time::Instant::now(), Instant::now());
        let mut n_requests = self.n_requests.subscribe();
        loop {
            n_requests.borrow_and_update();
            if is_reached(self) {
                return;
            }
            assert!(
                begun_at.0.elapsed() < LIMIT && begun_at.1.elapsed() < PAUSED_LIMIT,
                "the requests that the test waits for were not sent; all requests: {:#?}",
                self.requests()
            );
            // Each request wakes this wait; so does the limit, for the check above.
            let _ = tokio::time::timeout(LIMIT, n_requests.changed()).await;
        }
    }

    fn change(&self, change: Change, is_seen: bool) -> Object {
        self.state.lock().change(change, &self.type_meta, is_seen)
    }

    /// Records a request, and returns its answer.
    fn receive(&self, kind: RequestKind) -> Answer {
        let mut state = self.state.lock();
        let answers = match &kind {
            RequestKind::List(_) => &mut state.list_answers,
            RequestKind::Watch(_) => &mut state.watch_answers,
        };
        let answer = answers.pop_front().unwrap_or(Answer::Serve);
        state.requests.push(Request { at: Instant::now(), kind });
        drop(state);
        self.n_requests.send_modify(|n_requests| *n_requests += 1);
        answer
    }
}

#[async_trait]
impl ListWatch for FakeListWatch {
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError> {
        match self.receive(RequestKind::List(options.clone())) {
            Answer::Serve => {
                let mut page = self.state.lock().list(&options)?;
                page.items = page.items.into_iter().map(hook).collect();
                Ok(page)
            }
            Answer::List(mut page) => {
                page.items = page.items.into_iter().map(hook).collect();
                Ok(page)
            }
            Answer::Fail(error) => Err(error),
            Answer::Hang => std::future::pending().await,
            Answer::Watch(_) => unreachable!("a list is not answered with a watch"),
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        match self.receive(RequestKind::Watch(options.clone())) {
            Answer::Serve => {}
            Answer::Watch(stream) => return Ok(stream),
            Answer::Fail(error) => return Err(error),
            Answer::Hang => return std::future::pending().await,
            Answer::List(_) => unreachable!("a watch is not answered with a list"),
        }
        let mut state = self.state.lock();
        let events = state.watch(&options, &self.type_meta)?;
        Ok(if state.ends_watches_at_their_timeout {
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
