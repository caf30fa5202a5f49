//! The seam to the API server: what a reflector asks of it, and the ways in which it fails.
//!
//! [`ListWatch`] is the whole of it. `api_list_watch` speaks HTTP; `testing` has a fake that misbehaves.

mod error;

use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use error::{ApiError, Cause, DecodeError, Status};

use crate::object::Object;
use crate::selector::LabelSelector;

/// Lists and watches one resource.
///
/// Makes exactly one request per call and never retries: what is retried and when, the reflector decides. Both futures and
/// the stream may be dropped at any time, which gives the request up.
#[async_trait]
pub trait ListWatch: Send + Sync {
    /// Asks for one page of the list.
    ///
    /// Each object passes through `keep` as soon as it is there, in order and once; the page has what `keep` returns. So a
    /// caller that has the object already need not hold a whole page of equals beside it.
    async fn list(&self, options: ListOptions, keep: Keep<'_>) -> Result<ListPage, ApiError>;

    /// Begins to watch. The stream is what the server sends from then on.
    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError>;
}

/// Sees each object of a list as it arrives, and returns what is to stand in its place: mostly the same.
pub type Keep<'k> = &'k (dyn Fn(Object) -> Object + Send + Sync);

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Empty: the newest there is, read from etcd. `0`: whatever the server has at hand. Else: not older than this.
    /// Must be empty together with a continue token.
    pub resource_version: String,
    /// The most objects that one page may hold; none for all of them.
    pub limit: Option<NonZeroU32>,
    /// What the page before gave, to get the next.
    pub continue_token: Option<String>,
    /// Only what this selects, chosen by the server, beside what the source itself is restricted to.
    pub label_selector: LabelSelector,
    /// Only what this field selector selects, in the API's syntax; empty for all. Chosen by the server as well.
    pub field_selector: String,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// The version of the list as a whole, from which a watch can go on.
    pub resource_version: String,
    /// There is another page, and this gets it.
    pub continue_token: Option<String>,
    /// The objects, in the server's order, each with `apiVersion` and `kind`.
    pub items: Vec<Object>,
}

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Changes after this version are sent.
    pub resource_version: String,
    /// The server ends the watch after this long, in whole seconds.
    pub timeout: Duration,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// As in [`ListOptions`].
    pub label_selector: LabelSelector,
    /// As in [`ListOptions`].
    pub field_selector: String,
}

/// What a watch sends, until the server ends it.
///
/// An `Err` is always the last item: the connection broke ([`ApiError::Transport`]) or sent what nobody can read
/// ([`ApiError::Decode`]). An error that the server itself sends on the watch is an event, [`WatchEvent::Error`].
pub type WatchStream = BoxStream<'static, Result<WatchEvent, ApiError>>;

/// One event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object is new, or begins to match.
    Added(Object),
    /// The object changed.
    Modified(Object),
    /// The object is gone, or ceases to match. Its last state, at the version of the deletion.
    Deleted(Object),
    /// Nothing happened up to a version.
    Bookmark(Bookmark),
    /// The server gives the watch up.
    Error(Status),
    /// An event of a type that is not known here.
    Unknown {
        /// What the server called it.
        event_type: String,
        /// The object's version, where it has one.
        resource_version: Option<String>,
    },
}

/// A version up to which a watch has sent everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// The version.
    pub resource_version: String,
    /// Whether it ends the initial events of a watch that asked for them.
    pub is_initial_events_end: bool,
}
