//! How an informer is doing.

use std::sync::Arc;

use tokio::time::Instant;

use crate::indexer::Memory;
use crate::reflector::{Failure, Phase, UndecodableObject};

/// A look at an informer.
#[derive(Clone, Debug, PartialEq)]
pub struct InformerStatus {
    /// What its reflector is at.
    pub phase: Phase,
    /// Whether the cache has held the whole first list.
    pub has_synced: bool,
    /// How many objects the cache holds.
    pub objects: usize,
    /// The length of their JSON text in bytes.
    pub bytes: usize,
    /// How much memory the cache takes, and for what.
    pub memory: Memory,
    /// How many objects' changes wait to be put into the cache.
    pub queued: usize,
    /// How many listeners there are.
    pub listeners: usize,
    /// When the API server was last heard of.
    pub last_sign_of_life: Option<Instant>,
    /// The last thing that went wrong. Stays when all is well again.
    pub last_error: Option<Failure>,
    /// How often everything was listed again.
    pub relists: u64,
    /// How many watches were begun.
    pub watches: u64,
    /// How many changes of objects came in.
    pub events: u64,
    /// How many events brought an object that could not be decoded.
    pub undecodable_events: u64,
    /// How many objects the API server has that cannot be decoded. Of each, the last state that could be decoded stays in the cache.
    pub undecodable: usize,
    /// The first of them.
    pub undecodable_objects: Arc<[UndecodableObject]>,
    /// The last version that the reflector saw.
    pub resource_version: String,
}
