//! The interface between the reflector and the API server: the requests, the answers and the errors.
//!
//! [`ListWatch`] is the trait. `api_list_watch` implements it over HTTP; `testing` has a fake with faults.

mod error;
mod options;

/// The implementation over HTTP, for an API server.
pub mod api {
    pub use crate::api_list_watch::{ApiListWatch, Config, PageDecoder};
}

/// The HTTP client of the implementation over HTTP.
pub mod transport {
    pub use crate::outages::Outages;
    pub use crate::transport::{
        Error, Options, RequestMetrics, TokenFile, TokenFileError, client, client_with,
    };
}

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use error::{ApiError, Cause, DecodeError, Status, Unanswered};
pub use options::{ListOptions, VersionMatch, WatchOptions};

use crate::names::{ObjectKey, TypeMeta};
use crate::object::Object;

/// Lists and watches one resource.
///
/// Each call sends exactly one request and never retries; the reflector decides about retries. Both futures
/// and the stream may be dropped at any time, which cancels the request.
#[async_trait]
pub trait ListWatch: Send + Sync {
    /// Requests one page of the list.
    ///
    /// Calls `hook` once for each object, in order, as soon as the object is decoded; the items of the page
    /// are the results. The reflector's hook transforms and interns the objects, so that no whole page of
    /// duplicates is in memory.
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError>;

    /// Begins a watch. The stream has the events of the watch.
    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError>;

    /// Returns whether a watch of this source can begin with all objects, so that no list is needed (RL-07).
    ///
    /// False only if the source certainly cannot. If the server rejects such a watch, the reflector lists
    /// instead.
    fn supports_watch_list(&self) -> bool {
        true
    }
}

/// Takes each decoded object of a list, and returns the object for the page: the same one or another.
pub type ItemHook<'h> = &'h (dyn Fn(Object) -> Object + Send + Sync);

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// The version of the list. A watch can begin at it.
    pub resource_version: String,
    /// The token for the next page; none on the last page.
    pub continue_token: Option<String>,
    /// The objects, in the server's order, each with `apiVersion` and `kind`.
    pub items: Vec<Object>,
    /// The objects that cannot be decoded, which are not among the items.
    pub undecodable: Vec<Undecodable>,
}

/// An object that the server has and that cannot be decoded.
#[derive(Clone, Debug)]
pub struct Undecodable {
    /// Its namespace and name, if these can be read.
    pub key: Option<ObjectKey>,
    /// Why it cannot be decoded.
    pub error: Arc<DecodeError>,
}

/// The events of a watch, until the server ends it.
///
/// An `Err` is always the last item: the connection broke ([`ApiError::Transport`]) or sent an event that
/// cannot be decoded ([`ApiError::Decode`]). An error that the server sends on the watch is an event,
/// [`WatchEvent::Error`].
pub type WatchStream = BoxStream<'static, Result<WatchEvent, ApiError>>;

/// One event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object is new, or matches the selectors now.
    Added(Object),
    /// The object changed.
    Modified(Object),
    /// The object was deleted, or does not match the selectors any more. Its last state, at the version of
    /// the change.
    Deleted(Object),
    /// The watch has sent all changes up to a version.
    Bookmark(Bookmark),
    /// The server ends the watch with an error.
    Error(Status),
    /// An event whose object is not of the resource: of another type, a table, or without metadata. The watch
    /// continues (RL-55).
    Rejected(Arc<DecodeError>),
    /// A change of an object that cannot be decoded. The store's state of the object is out of date.
    Undecodable {
        /// Whether the object was deleted.
        is_deleted: bool,
        /// The object.
        object: Undecodable,
    },
    /// An event of an unknown type.
    Unknown {
        /// The type.
        event_type: String,
        /// The object's version, if it has one.
        resource_version: Option<String>,
    },
}

/// A version up to which a watch has sent everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// The version.
    pub resource_version: String,
    /// The type of the bookmark's object, which is the type of the watch's objects; none if the object does
    /// not say it.
    pub type_meta: Option<TypeMeta>,
    /// Whether it ends the initial events of a watch.
    pub is_initial_events_end: bool,
}

// === impl Undecodable ===

impl Undecodable {
    /// Returns the name of the object for messages.
    pub fn name(&self) -> String {
        self.key
            .as_ref()
            .map_or_else(|| "an object whose name cannot be read".to_owned(), ObjectKey::to_string)
    }
}

/// Returns whether the type is a table, text for people, which no store can take (RL-26).
pub(crate) fn is_table(type_meta: &TypeMeta) -> bool {
    &*type_meta.kind == "Table" && matches!(&*type_meta.api_version, "meta.k8s.io/v1" | "meta.k8s.io/v1beta1")
}
