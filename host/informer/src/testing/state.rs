//! The state of the fake: objects, their history, open watches, and the answers that the test has set.

use std::collections::{BTreeMap, VecDeque};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};

use super::selection::Selection;
use super::{Draft, Request, Serving, errors};
use crate::list_watch::{
    ApiError, Bookmark, ListOptions, ListPage, VersionMatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::names::{ObjectKey, TypeMeta};
use crate::object::Object;

type WatchItem = Result<WatchEvent, ApiError>;

pub(super) struct FakeState {
    pub(super) version: u64,
    /// A watch cannot begin before this version.
    pub(super) oldest: u64,
    pub(super) objects: BTreeMap<ObjectKey, Object>,
    drafts: BTreeMap<ObjectKey, Draft>,
    n_uids: u64,
    pub(super) history: Vec<PastChange>,
    pub(super) watches: Vec<Watch>,
    pub(super) silent: Vec<Watch>,
    pub(super) list_answers: VecDeque<Answer>,
    pub(super) watch_answers: VecDeque<Answer>,
    pub(super) requests: Vec<Request>,
    pub(super) serving: Serving,
    pub(super) token_age: u64,
    pub(super) lists_without_version: bool,
    pub(super) ends_watches_at_their_timeout: bool,
    pub(super) watch_lists: WatchLists,
    pub(super) holds_initial_events_end: bool,
    /// The objects at the version `oldest`.
    at_oldest: BTreeMap<ObjectKey, Object>,
    /// The lists whose continue tokens may be used.
    snapshots: Vec<(u64, Vec<Object>)>,
}

pub(super) struct Watch {
    pub(super) sender: UnboundedSender<WatchItem>,
    pub(super) allows_bookmarks: bool,
    selection: Selection,
    /// The bookmark that ends its initial events has not been sent.
    waits_for_initial_events_end: bool,
}

/// A change in the history.
pub(super) struct PastChange {
    version: u64,
    event: WatchEvent,
    /// The object before the change.
    old: Option<Object>,
}

/// How the fake answers watches with initial events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WatchLists {
    #[default]
    Served,
    /// `supports_watch_list` returns false.
    Declined,
    /// The request fails as invalid.
    Refused,
}

/// The answer to a request.
pub(super) enum Answer {
    /// The answer without a fault.
    Serve,
    List(ListPage),
    Watch(WatchStream),
    Fail(ApiError),
    /// The request never gets an answer.
    Hang,
}

pub(super) enum Change {
    Put(Draft),
    Delete(String),
}

// === impl FakeState ===

impl FakeState {
    pub(super) fn new() -> Self {
        Self {
            version: 1,
            oldest: 1,
            objects: BTreeMap::new(),
            drafts: BTreeMap::new(),
            n_uids: 0,
            history: Vec::new(),
            watches: Vec::new(),
            silent: Vec::new(),
            list_answers: VecDeque::new(),
            watch_answers: VecDeque::new(),
            requests: Vec::new(),
            serving: Serving::default(),
            token_age: 0,
            lists_without_version: false,
            ends_watches_at_their_timeout: false,
            watch_lists: WatchLists::default(),
            holds_initial_events_end: false,
            at_oldest: BTreeMap::new(),
            snapshots: Vec::new(),
        }
    }

    pub(super) fn change(&mut self, change: Change, type_meta: &TypeMeta, is_seen: bool) -> Object {
        self.version += 1;
        let version = self.version.to_string();
        let (event, old) = match change {
            Change::Put(draft) => {
                let old = self.objects.get(&draft.key).cloned();
                let uid = match (&draft.uid, &old) {
                    (Some(uid), _) => uid.clone(),
                    (None, Some(old)) => old.uid().to_owned(),
                    (None, None) => {
                        self.n_uids += 1;
                        format!("uid-{}", self.n_uids)
                    }
                };
                let object = draft.at(type_meta, &uid, &version);
                self.objects.insert(object.key().clone(), object.clone());
                self.drafts.insert(object.key().clone(), draft);
                let event =
                    if old.is_none() { WatchEvent::Added(object) } else { WatchEvent::Modified(object) };
                (event, old)
            }
            Change::Delete(key) => {
                let key: ObjectKey = key.parse().unwrap_or_else(|error| panic!("{error}"));
                let old = self.objects.remove(&key).unwrap_or_else(|| panic!("no object {key} to delete"));
                let draft = self.drafts.remove(&key).unwrap_or_else(|| panic!("no draft of {key}"));
                (WatchEvent::Deleted(draft.at(type_meta, &old.uid(), &version)), Some(old))
            }
        };
        if is_seen {
            self.watches.retain(|watch| match watch.selection.seen(&event, old.as_ref()) {
                Some(event) => watch.sender.unbounded_send(Ok(event)).is_ok(),
                None => true,
            });
        }
        self.history.push(PastChange { version: self.version, event: event.clone(), old });
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => object,
            WatchEvent::Bookmark(_)
            | WatchEvent::Error(_)
            | WatchEvent::Rejected(_)
            | WatchEvent::Undecodable { .. }
            | WatchEvent::Unknown { .. } => unreachable!("a change is none of these"),
        }
    }

    /// Sends an event to the open watches, and drops those without a reader.
    pub(super) fn send(&mut self, event: &WatchEvent) {
        self.watches.retain(|watch| watch.sender.unbounded_send(Ok(event.clone())).is_ok());
    }

    pub(super) fn list(&mut self, options: &ListOptions) -> Result<ListPage, ApiError> {
        let (snapshot_idx, start) = match &options.continue_token {
            Some(token) => self.read_token(token)?,
            None => {
                let wanted: u64 = options.resource_version.parse().unwrap_or(0);
                if wanted > self.version {
                    return Err(errors::too_large_resource_version().into());
                }
                let (version, objects) = match options.version_match {
                    Some(VersionMatch::Exact) => (wanted, self.objects_at(wanted)?),
                    Some(VersionMatch::NotOlderThan) | None => (self.version, self.objects.clone()),
                };
                let selection = Selection::new(&options.label_selector, &options.field_selector);
                let selected = objects.into_values().filter(|object| selection.matches(object));
                self.snapshots.push((version, selected.collect()));
                (self.snapshots.len() - 1, 0)
            }
        };
        let is_from_cache = self.serving == Serving::WatchCache
            && !options.resource_version.is_empty()
            && options.version_match != Some(VersionMatch::Exact)
            && options.continue_token.is_none();
        let (version, objects) = &self.snapshots[snapshot_idx];
        let end = match options.limit {
            Some(limit) if !is_from_cache => objects.len().min(start + limit.get() as usize),
            _ => objects.len(),
        };
        Ok(ListPage {
            resource_version: if self.lists_without_version { String::new() } else { version.to_string() },
            continue_token: (end < objects.len()).then(|| format!("{}:{snapshot_idx}:{end}", self.token_age)),
            items: objects[start..end].to_vec(),
            undecodable: Vec::new(),
        })
    }

    fn read_token(&self, token: &str) -> Result<(usize, usize), ApiError> {
        let parts: Option<Vec<usize>> = token.split(':').map(|part| part.parse().ok()).collect();
        match parts.as_deref() {
            Some(&[age, snapshot_idx, start]) if age as u64 == self.token_age => Ok((snapshot_idx, start)),
            Some(&[_, _, _]) => Err(errors::expired().into()),
            _ => Err(errors::status(400, "BadRequest", "continue key is not valid").into()),
        }
    }

    /// Returns the objects at a version.
    fn objects_at(&self, wanted: u64) -> Result<BTreeMap<ObjectKey, Object>, ApiError> {
        if wanted < self.oldest {
            return Err(errors::expired().into());
        }
        let mut objects = self.at_oldest.clone();
        for past in self.history.iter().take_while(|past| past.version <= wanted) {
            match &past.event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    objects.insert(object.key().clone(), object.clone());
                }
                WatchEvent::Deleted(object) => {
                    objects.remove(object.key());
                }
                WatchEvent::Bookmark(_)
                | WatchEvent::Error(_)
                | WatchEvent::Rejected(_)
                | WatchEvent::Undecodable { .. }
                | WatchEvent::Unknown { .. } => {}
            }
        }
        Ok(objects)
    }

    pub(super) fn expire_history(&mut self) {
        self.history.clear();
        self.oldest = self.version;
        self.at_oldest = self.objects.clone();
    }

    pub(super) fn watch(
        &mut self,
        options: &WatchOptions,
        type_meta: &TypeMeta,
    ) -> Result<UnboundedReceiver<WatchItem>, ApiError> {
        let (sender, receiver) = unbounded();
        let selection = Selection::new(&options.label_selector, &options.field_selector);
        let mut events: Vec<WatchEvent> = Vec::new();
        let from = options.resource_version.parse().unwrap_or(0);
        if options.send_initial_events {
            if self.watch_lists == WatchLists::Refused {
                return Err(errors::invalid().into());
            }
            if from > self.version {
                return Err(errors::too_large_resource_version().into());
            }
        }
        if from > 0 && !options.send_initial_events {
            if from < self.oldest {
                // The channel is new and its receiver is here.
                let _ = sender.unbounded_send(Ok(WatchEvent::Error(errors::expired())));
                return Ok(receiver);
            }
            let missed = self.history.iter().filter(|past| past.version > from);
            events.extend(
                missed.filter_map(|PastChange { event, old, .. }| selection.seen(event, old.as_ref())),
            );
        } else {
            let selected = self.objects.values().filter(|object| selection.matches(object));
            events.extend(selected.cloned().map(WatchEvent::Added));
        }
        for event in events {
            let _ = sender.unbounded_send(Ok(event));
        }
        self.watches.push(Watch {
            sender,
            allows_bookmarks: options.allow_bookmarks,
            selection,
            waits_for_initial_events_end: options.send_initial_events && options.allow_bookmarks,
        });
        if !self.holds_initial_events_end {
            self.end_initial_events(type_meta);
        }
        Ok(receiver)
    }

    pub(super) fn end_initial_events(&mut self, type_meta: &TypeMeta) {
        let bookmark = Bookmark {
            resource_version: self.version.to_string(),
            type_meta: Some(type_meta.clone()),
            is_initial_events_end: true,
        };
        for watch in &mut self.watches {
            if std::mem::take(&mut watch.waits_for_initial_events_end) {
                // The reader of the watch may be gone.
                let _ = watch.sender.unbounded_send(Ok(WatchEvent::Bookmark(bookmark.clone())));
            }
        }
    }
}
