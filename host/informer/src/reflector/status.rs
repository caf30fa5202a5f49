//! What a reflector tells about itself.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::undecodable::UndecodableObjects;
use crate::names::ObjectKey;

/// How a reflector is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectorStatus {
    /// What it is at.
    pub phase: Phase,
    /// When the API server was last heard of: an answer, an event or a bookmark.
    pub last_sign_of_life: Option<Instant>,
    /// The last thing that went wrong, if anything ever did. Stays when all is well again.
    pub last_error: Option<Failure>,
    /// How many lists were stored. All but the first are relists.
    pub n_lists: u64,
    /// How many of them streamed in as the beginning of a watch.
    pub n_streamed: u64,
    /// How many watches were begun.
    pub n_watches: u64,
    /// How many changes of objects came in.
    pub n_events: u64,
    /// How many bookmarks came in.
    pub n_bookmarks: u64,
    /// How many watches were given up because nothing came for too long.
    pub n_silences: u64,
    /// How many events brought an object that could not be decoded.
    pub n_undecodable_events: u64,
    /// How many objects the server has that cannot be decoded. Of each, the last state that could be decoded stays in the store.
    pub n_undecodable: usize,
    /// The first of them.
    pub undecodable: Arc<[UndecodableObject]>,
    /// The last version seen; empty before the first list.
    pub resource_version: String,
}

/// An object that the server has and that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecodableObject {
    /// Its namespace and name, if these can be read.
    pub key: Option<ObjectKey>,
    /// Why it cannot be decoded.
    pub message: String,
}

/// What a reflector is at. The last three last until a list or watch succeeds again, through the tries in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It does not run yet.
    Waiting,
    /// It waits for a list.
    Listing,
    /// It has a list and keeps up with the changes.
    Watching,
    /// The API server does not have the resource: not yet, or not any more (RL-72).
    Absent,
    /// The API server does not let the host list or watch the resource.
    Forbidden,
    /// Anything else went wrong.
    Failing {
        /// What, in words.
        message: String,
    },
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What, with its causes.
    pub message: String,
    /// When.
    pub at: Instant,
}

/// The reflector's own end of its status.
#[derive(Debug)]
pub(super) struct StatusSender(watch::Sender<ReflectorStatus>);

// === impl ReflectorStatus ===

impl Default for ReflectorStatus {
    fn default() -> Self {
        Self {
            phase: Phase::Waiting,
            last_sign_of_life: None,
            last_error: None,
            n_lists: 0,
            n_streamed: 0,
            n_watches: 0,
            n_events: 0,
            n_bookmarks: 0,
            n_silences: 0,
            n_undecodable_events: 0,
            n_undecodable: 0,
            undecodable: Arc::default(),
            resource_version: String::new(),
        }
    }
}

// === impl StatusSender ===

impl StatusSender {
    pub(super) fn new() -> Self {
        Self(watch::channel(ReflectorStatus::default()).0)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<ReflectorStatus> {
        self.0.subscribe()
    }

    /// Notes that the server was heard of, and whatever else `change` says. Wakes nobody: this happens at every event.
    pub(super) fn note(&self, change: impl FnOnce(&mut ReflectorStatus)) {
        self.0.send_if_modified(|status| {
            status.last_sign_of_life = Some(Instant::now());
            change(status);
            false
        });
    }

    /// A list begins: only the first, or one after a watch, is worth a phase of its own.
    pub(super) fn list_begins(&self) {
        self.0.send_if_modified(|status| {
            let is_new = matches!(status.phase, Phase::Waiting | Phase::Watching);
            if is_new {
                status.phase = Phase::Listing;
            }
            is_new
        });
    }

    /// The server has accepted a watch.
    pub(super) fn watch_begins(&self) {
        self.note(|status| status.n_watches += 1);
    }

    /// There is a watch, and everything before it is known.
    pub(super) fn watching(&self) {
        self.0.send_if_modified(|status| {
            let is_new = status.phase != Phase::Watching;
            status.phase = Phase::Watching;
            is_new
        });
    }

    /// Nothing came for too long; the watch is about to be resumed.
    pub(super) fn silent(&self, message: String) {
        self.0.send_if_modified(|status| {
            status.n_silences += 1;
            false
        });
        self.failed(Phase::Failing { message: message.clone() }, message);
    }

    /// These objects cannot be decoded.
    pub(super) fn undecodable(&self, objects: &UndecodableObjects) {
        self.0.send_if_modified(|status| {
            let is_news = status.n_undecodable != objects.len() || !objects.is_empty();
            if is_news {
                status.n_undecodable = objects.len();
                status.undecodable = objects.shown();
            }
            is_news
        });
    }

    /// Something went wrong, and this is what it amounts to.
    pub(super) fn failed(&self, phase: Phase, message: String) {
        self.0.send_modify(|status| {
            status.phase = phase;
            status.last_error = Some(Failure { message, at: Instant::now() });
        });
    }
}
