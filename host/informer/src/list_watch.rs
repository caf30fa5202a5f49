//! The seam to the API server: what a reflector asks of it, and the ways in which it fails.
//!
//! [`ListWatch`] is the whole of it. `api_list_watch` speaks HTTP; `testing` has a fake that misbehaves.

mod error;
mod options;

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use error::{ApiError, Cause, DecodeError, Status, Unanswered};
pub use options::{ListOptions, VersionMatch, WatchOptions};

use crate::names::{ObjectKey, TypeMeta};
use crate::object::Object;

/// Lists and watches one resource.
///
/// Makes exactly one request per call and never retries: what is retried and when, the reflector decides. Both futures and
/// the stream may be dropped at any time, which gives the request up.
#[async_trait]
pub trait ListWatch: Send + Sync {
    /// Asks for one page of the list.
    ///
    /// Calls `hook` once for each object, in order, as soon as the object is decoded; the items of the page are the results.
    /// The reflector's hook transforms and interns the objects, so that no whole page of duplicates is in memory.
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError>;

    /// Begins to watch. The stream is what the server sends from then on.
    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError>;

    /// Whether a watch can begin with what there is, so that no list is needed (RL-07).
    ///
    /// Says no where it is known that this source cannot do it. Where the server only turns out to be unable when it is
    /// asked, the reflector finds out by itself.
    fn supports_watch_list(&self) -> bool {
        true
    }
}

/// Takes each decoded object of a list, and returns the object to put into the page: the same one or a replacement.
pub type ItemHook<'k> = &'k (dyn Fn(Object) -> Object + Send + Sync);

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// The version of the list as a whole, from which a watch can go on.
    pub resource_version: String,
    /// There is another page, and this gets it.
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
    /// An event with something that is no object of the resource: of another type, a table, or without metadata. The watch goes on behind
    /// it (RL-55).
    Rejected(Arc<DecodeError>),
    /// A change of an object that cannot be decoded. What the store has of the object is not what the server has.
    Undecodable {
        /// Whether the object is gone.
        is_deleted: bool,
        /// The object.
        object: Undecodable,
    },
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
    /// What the bookmark's object says that it is, which is what the watch's objects are; none if it says nothing.
    pub type_meta: Option<TypeMeta>,
    /// Whether it ends the initial events of a watch that asked for them.
    pub is_initial_events_end: bool,
}

// === impl Undecodable ===

impl Undecodable {
    /// Returns how to call the object in messages.
    pub fn name(&self) -> String {
        self.key
            .as_ref()
            .map_or_else(|| "an object whose name cannot be read".to_owned(), ObjectKey::to_string)
    }
}

/// Whether something is a table for people to read, which no store can take (RL-26).
pub(crate) fn is_table(type_meta: &TypeMeta) -> bool {
    &*type_meta.kind == "Table" && matches!(&*type_meta.api_version, "meta.k8s.io/v1" | "meta.k8s.io/v1beta1")
}
