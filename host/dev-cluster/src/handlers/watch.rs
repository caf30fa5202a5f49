//! A watch: the events since a version, then new events.

use super::list::wait_for;
use crate::call::Call;
use crate::catalog::Served;
use crate::cluster::Cluster;
use crate::faults::{Action, Subject, WatchAction, WatchCommand};
use crate::negotiation::Notation;
use crate::protobuf;
use crate::query::{ListOptions, Version, VersionMatch};
use crate::resource::Resource;
use crate::respond::{self, Body, BodyCut, streamed};
use crate::selector::Selection;
use crate::status::StatusError;
use crate::store::{Change, ChangeKind, Compacted, Stored};
use crate::table;
use crate::watch_event::Encoder;
use bytes::Bytes;
use http::Response;
use rand::Rng;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{broadcast, watch as channel};
use tokio::time::{Duration, Instant, sleep_until};

/// The number of changes that are read from the history at once, and the approximate size of the pieces of a
/// body.
const BATCH: usize = 256;
const CHUNK: usize = 64 * 1024;
/// A watch without `timeoutSeconds` ends after 30 to 60 minutes.
const SHORTEST: u64 = 1800;

struct Watch {
    cluster: Arc<Cluster>,
    subject: Subject,
    selection: Selection,
    encoder: Encoder,
    /// All changes up to this revision were sent.
    at: u64,
    /// The revision of the resource's last removal from the API, at the start of this watch.
    dropped_at: u64,
    /// The error that ends the watch before its first event.
    refusal: Option<StatusError>,
    /// Objects that are sent as ADDED before other events.
    initial: VecDeque<Arc<Stored>>,
    /// Send a bookmark after the initial objects.
    mark_initial_end: bool,
    bookmarks: Option<Duration>,
    next_bookmark: Instant,
    deadline: Instant,
    changed: channel::Receiver<u64>,
    /// Notifies of changes of the catalog.
    served: channel::Receiver<Arc<Served>>,
    watch_commands: broadcast::Receiver<Arc<WatchCommand>>,
    faults: Vec<Action>,
    /// The number of events that were sent.
    n_sent: u64,
    /// The number of events that were available, sent or not.
    seen: u64,
    phase: Phase,
}

/// A watch with a longer timeout, in seconds, never ends: the clock's range is limited.
const LONGEST: u64 = 30 * 365 * 86_400;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Open,
    /// No further events are sent, and the watch stays open.
    Silent,
    Ended,
}

pub(crate) async fn watch(call: &Call) -> Result<Response<Body>, StatusError> {
    let options = call.query.list_options()?;
    let selection = call.selection()?;
    if call.accepted.notation == Notation::Yaml {
        return Err(StatusError::not_acceptable(&["application/json;stream=watch"]));
    }
    let include = table::Include::parse(call.query.get("includeObject"))?;
    let storage = &call.resource.storage;
    // Subscribe before reading, so that no change is missed.
    let changed = call.cluster.store.subscribe_to(storage);
    let watch_commands = call.cluster.faults.watch_commands();
    let timeout = options.timeout_seconds.unwrap_or_else(|| rand::rng().random_range(SHORTEST..2 * SHORTEST));
    let now = Instant::now();
    let mut watch = Watch {
        cluster: call.cluster.clone(),
        subject: call.subject.clone(),
        selection,
        encoder: Encoder::new(call.resource.clone(), call.accepted, include),
        at: 0,
        dropped_at: call.cluster.store.dropped_at(storage),
        refusal: None,
        initial: VecDeque::new(),
        mark_initial_end: false,
        bookmarks: options.bookmarks.then_some(call.cluster.bookmark_interval),
        next_bookmark: now + call.cluster.bookmark_interval,
        deadline: now + Duration::from_secs(timeout.min(LONGEST)),
        changed,
        served: call.cluster.catalog.subscribe(),
        watch_commands,
        faults: call.faults.clone(),
        n_sent: 0,
        seen: 0,
        phase: Phase::Open,
    };
    watch.start(&options).await?;
    let chunks = futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        Some((chunk, watch))
    });
    let content_type = match call.accepted.notation {
        Notation::Protobuf => protobuf::WATCH_MEDIA_TYPE,
        Notation::Json | Notation::Yaml => "application/json",
    };
    Ok(respond::with_type(200, content_type, streamed(chunks)))
}

// === impl Watch ===

impl Watch {
    async fn start(&mut self, options: &ListOptions) -> Result<(), StatusError> {
        let wants_initial = match options.send_initial_events {
            Some(wanted) => wanted,
            // The default before this parameter existed: initial events without a version or at version 0.
            None => !matches!(options.resource_version, Version::At(_)),
        };
        if let (Version::At(version), true) = (options.resource_version, wants_initial) {
            // The watch reports this error as an event, like kube-apiserver's watch cache.
            if let Err(refusal) = wait_for(&self.cluster, version).await {
                self.refusal = Some(refusal);
                return Ok(());
            }
        }
        debug_assert!(
            options.send_initial_events.is_none()
                || options.version_match == Some(VersionMatch::NotOlderThan)
        );
        match options.resource_version {
            Version::At(version) if !wants_initial => self.at = version,
            _ => {
                let storage = &self.encoder.resource().storage;
                let prefix = match self.selection.namespace.as_str() {
                    "" => String::new(),
                    namespace => format!("{namespace}/"),
                };
                let snapshot = self.cluster.store.snapshot(storage, &prefix, None);
                let snapshot = snapshot
                    .map_err(|_| StatusError::internal("the current revision must be in the history"))?;
                self.at = snapshot.revision;
                if wants_initial {
                    self.initial = snapshot.objects.into();
                    self.mark_initial_end = options.bookmarks;
                }
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyCut>> {
        loop {
            match self.phase {
                Phase::Ended => return None,
                Phase::Silent => std::future::pending::<()>().await,
                Phase::Open => {}
            }
            self.changed.borrow_and_update();
            let mut chunk = Vec::new();
            if let Err(error) = self.fill(&mut chunk) {
                self.encoder.error(&mut chunk, &error);
                self.phase = Phase::Ended;
            }
            if !chunk.is_empty() {
                return Some(Ok(chunk.into()));
            }
            if self.phase == Phase::Open
                && let Some(chunk) = self.wait().await
            {
                return Some(Ok(chunk));
            }
        }
    }

    /// Encodes the events that are available now.
    fn fill(&mut self, chunk: &mut Vec<u8>) -> Result<(), StatusError> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        if self.faults.contains(&Action::Expired) {
            return Err(self.too_old(self.cluster.store.revision()));
        }
        if self.at < self.dropped_at {
            return Err(self.too_old(self.dropped_at));
        }
        self.check_event_faults(chunk);
        while self.phase == Phase::Open && chunk.len() < CHUNK {
            let Some(object) = self.initial.pop_front() else { break };
            if self.selection.matches(&object) {
                self.write(chunk, ChangeKind::Added, &object, None)?;
            }
        }
        if self.phase != Phase::Open || !self.initial.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.mark_initial_end) {
            self.encoder.bookmark(chunk, self.at, true);
        }
        while self.phase == Phase::Open && chunk.len() < CHUNK {
            let storage = &self.encoder.resource().storage;
            let changes = self.cluster.store.changes(storage, self.at, BATCH);
            let changes = changes.map_err(|Compacted { oldest }| self.too_old(oldest))?;
            if changes.changes.is_empty() {
                self.at = changes.up_to;
                if changes.dropped_at > self.dropped_at || !self.is_served() {
                    self.phase = Phase::Ended;
                }
                break;
            }
            for change in &changes.changes {
                self.write_change(chunk, change)?;
                self.at = change.revision;
                if self.phase != Phase::Open || chunk.len() >= CHUNK {
                    return Ok(());
                }
            }
            self.at = changes.up_to;
        }
        Ok(())
    }

    /// Encodes a change as this selection sees it: an object is added when it starts to match, deleted when
    /// it stops.
    fn write_change(&mut self, chunk: &mut Vec<u8>, change: &Change) -> Result<(), StatusError> {
        let matched = change.previous.as_ref().is_some_and(|previous| self.selection.matches(previous));
        let matches = change.kind != ChangeKind::Deleted && self.selection.matches(&change.object);
        match (matched, matches) {
            (false, false) => Ok(()),
            (false, true) => self.write(chunk, ChangeKind::Added, &change.object, None),
            (true, true) => self.write(chunk, ChangeKind::Modified, &change.object, None),
            (true, false) if change.kind == ChangeKind::Deleted => {
                self.write(chunk, ChangeKind::Deleted, &change.object, None)
            }
            // The event has the last matching state, at the version at which the object stopped matching.
            (true, false) => match &change.previous {
                Some(previous) => self.write(chunk, ChangeKind::Deleted, previous, Some(change.revision)),
                None => Ok(()),
            },
        }
    }

    fn write(
        &mut self,
        chunk: &mut Vec<u8>,
        kind: ChangeKind,
        object: &Stored,
        at: Option<u64>,
    ) -> Result<(), StatusError> {
        let swallowed = self.faults.contains(&Action::SwallowEvent { event: self.seen });
        self.seen += 1;
        if swallowed {
            return Ok(());
        }
        let times = if self.faults.contains(&Action::RepeatEvents) { 2 } else { 1 };
        for _ in 0..times {
            self.encoder.event(chunk, kind, object, at)?;
        }
        self.n_sent += 1;
        self.check_event_faults(chunk);
        Ok(())
    }

    /// Applies the faults that follow a number of events.
    fn check_event_faults(&mut self, chunk: &mut Vec<u8>) {
        let n_sent = self.n_sent;
        for fault in &self.faults {
            match fault {
                Action::CloseWatch { after_events } if *after_events == n_sent => self.phase = Phase::Ended,
                Action::HalfOpenWatch { after_events } if *after_events == n_sent => {
                    self.phase = Phase::Silent
                }
                Action::Garbage { after_events } if *after_events == n_sent => {
                    chunk.extend_from_slice(
                        b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\x01garbage\n",
                    );
                }
                _ => {}
            }
        }
        self.faults
            .retain(|fault| !matches!(fault, Action::Garbage { after_events } if *after_events == n_sent));
    }

    /// Returns whether the resource is still served as at the start of the watch. Like kube-apiserver, this
    /// also ends the watches of a custom resource when its definition changes the served or the stored
    /// versions.
    fn is_served(&self) -> bool {
        let Resource { group, version, plural, storage_api_version, .. } = self.encoder.resource();
        let served = self.served.borrow();
        served.find(group, version, plural).is_some_and(|now| now.storage_api_version == *storage_api_version)
    }

    fn too_old(&self, oldest: u64) -> StatusError {
        StatusError::expired(format!("too old resource version: {} ({oldest})", self.at))
    }

    /// Waits for the next change; returns a bookmark if one is due first.
    async fn wait(&mut self) -> Option<Bytes> {
        let bookmarks = self.bookmarks.is_some();
        tokio::select! {
            biased;
            () = sleep_until(self.deadline) => self.phase = Phase::Ended,
            command = self.watch_commands.recv() => return self.run_command(command.ok().as_deref()),
            _ = self.served.changed() => {}
            changed = self.changed.changed() => {
                if changed.is_err() {
                    self.phase = Phase::Ended;
                }
            }
            () = sleep_until(self.next_bookmark), if bookmarks => {
                self.next_bookmark = Instant::now() + self.cluster.bookmark_interval;
                // Changes of other resources may have moved the revision on.
                let mut chunk = Vec::new();
                if self.fill(&mut chunk).is_ok() {
                    self.encoder.bookmark(&mut chunk, self.at, false);
                }
                return Some(chunk.into());
            }
        }
        None
    }

    fn run_command(&mut self, command: Option<&WatchCommand>) -> Option<Bytes> {
        let command = command.filter(|command| command.on.matches(&self.subject))?;
        match command.action {
            WatchAction::Close => self.phase = Phase::Ended,
            WatchAction::Silence => self.phase = Phase::Silent,
            WatchAction::Expire => {
                let mut chunk = Vec::new();
                self.encoder.error(&mut chunk, &self.too_old(self.cluster.store.revision()));
                self.phase = Phase::Ended;
                return Some(chunk.into());
            }
        }
        None
    }
}
