//! The status of an informer.

use std::sync::Arc;

use tokio::time::Instant;

use crate::indexer::Memory;
use crate::reflector::{Failure, Phase, UndecodableObject};

/// A snapshot of the status of an informer.
#[derive(Clone, Debug, PartialEq)]
pub struct InformerStatus {
    /// The phase of its reflector.
    pub phase: Phase,
    /// Whether the cache has held the whole first list.
    pub has_synced: bool,
    /// How many objects the cache holds.
    pub objects: usize,
    /// The length of their JSON texts in bytes.
    pub bytes: usize,
    /// How much memory the cache uses, by purpose.
    pub memory: Memory,
    /// How many keys wait in the delta queue.
    pub queued: usize,
    /// How many listeners are registered.
    pub listeners: usize,
    /// When the API server last sent an answer, an event or a bookmark.
    pub last_sign_of_life: Option<Instant>,
    /// The last failure. It stays after a recovery.
    pub last_error: Option<Failure>,
    /// How many lists were stored after the first.
    pub relists: u64,
    /// How many watches were started.
    pub watches: u64,
    /// How many events with a change of an object were received.
    pub events: u64,
    /// How many events had an object that could not be decoded.
    pub undecodable_events: u64,
    /// How many objects of the API server cannot be decoded. The last decodable state of each stays in the
    /// cache.
    pub undecodable: usize,
    /// The first of these objects.
    pub undecodable_objects: Arc<[UndecodableObject]>,
    /// The last resourceVersion that the reflector received.
    pub resource_version: String,
}
