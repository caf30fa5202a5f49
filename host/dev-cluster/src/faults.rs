//! Faults on demand, for tests of clients: the server applies them to matching requests.
//!
//! A program adds a [`Fault`], a flag has it as text (`close-watch,resource=pods,times=3`, see
//! [`Fault::from_str`](std::str::FromStr)). Methods of [`Faults`] act at once: they end open watches and drop
//! connections.

mod spec;

pub use spec::ParseError;

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::broadcast;
use tokio::time::Duration;

/// One fault, and the requests that it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub on: Match,
    pub action: Action,
    /// The number of matching requests that are served normally first.
    pub skip: u32,
    /// The number of requests that the fault is applied to; `None` for all.
    pub times: Option<u32>,
}

/// Selects requests. All conditions that are set must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// The plural, or `plural.group`.
    pub resource: Option<String>,
    /// Verbs of authorization: get, list, watch, create, update, patch, delete, deletecollection.
    pub verbs: Vec<String>,
    pub namespace: Option<String>,
    /// A part of the User-Agent header.
    pub user_agent: Option<String>,
}

/// The kinds of faults. Counts of events start at zero in each watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The watch ends cleanly after this many events.
    CloseWatch { after_events: u64 },
    /// The watch sends no further events after this many, and stays open.
    HalfOpenWatch { after_events: u64 },
    /// The server sends the body in small pieces, with a pause before each.
    SlowBody { pause: Duration },
    /// The connection breaks after this many bytes of the body.
    CutBody { after_bytes: usize },
    /// The body is not JSON. In a watch, the line after this many events is not JSON.
    Garbage { after_events: u64 },
    /// The watch sends each event twice.
    RepeatEvents,
    /// The watch omits one event, counted from zero.
    SwallowEvent { event: u64 },
    /// 410: an ERROR event in a watch, the response otherwise.
    Expired,
    /// 429 with Retry-After.
    TooManyRequests { retry_after_seconds: u32 },
    /// 500.
    InternalError,
    /// 401, with any credentials.
    RefuseLogin,
}

/// The active faults of a server.
#[derive(Debug)]
pub struct Faults {
    active: Mutex<Vec<ActiveFault>>,
    next_id: AtomicU64,
    watch_commands: broadcast::Sender<Arc<WatchCommand>>,
    connections: broadcast::Sender<()>,
    away: AtomicBool,
}

/// Identifies a fault that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(u64);

#[derive(Debug)]
struct ActiveFault {
    id: FaultId,
    fault: Fault,
    seen: u32,
    done: u32,
}

/// An action on the watches that are open now.
#[derive(Debug)]
pub(crate) struct WatchCommand {
    pub(crate) on: Match,
    pub(crate) action: WatchAction,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WatchAction {
    Close,
    Silence,
    Expire,
}

/// The attributes of a request that faults match.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) user_agent: String,
}

// === impl Faults ===

impl Default for Faults {
    fn default() -> Self {
        Self {
            active: Mutex::default(),
            next_id: AtomicU64::new(0),
            watch_commands: broadcast::Sender::new(64),
            connections: broadcast::Sender::new(4),
            away: AtomicBool::new(false),
        }
    }
}

impl Faults {
    /// Adds a fault after the existing ones.
    pub fn add(&self, fault: Fault) -> FaultId {
        let id = FaultId(self.next_id.fetch_add(1, Ordering::Relaxed));
        self.active.lock().push(ActiveFault { id, fault, seen: 0, done: 0 });
        id
    }

    /// Removes a fault, and returns the number of requests that it was applied to.
    pub fn remove(&self, id: FaultId) -> u32 {
        let mut active = self.active.lock();
        let found = active.iter().position(|fault| fault.id == id);
        found.map(|at| active.remove(at).done).unwrap_or(0)
    }

    /// Returns the number of requests that a fault was applied to.
    pub fn count(&self, id: FaultId) -> u32 {
        self.active.lock().iter().find(|fault| fault.id == id).map(|fault| fault.done).unwrap_or(0)
    }

    /// Returns the number of requests that a fault matched, applied or not. A fault with `times: Some(0)`
    /// only counts.
    pub fn matched(&self, id: FaultId) -> u32 {
        self.active.lock().iter().find(|fault| fault.id == id).map(|fault| fault.seen).unwrap_or(0)
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.active.lock().clear();
    }

    /// Ends the matching watches that are open now.
    pub fn close_watches(&self, on: Match) {
        self.command_watches(on, WatchAction::Close);
    }

    /// Keeps the matching watches open, but sends no further events on them.
    pub fn silence_watches(&self, on: Match) {
        self.command_watches(on, WatchAction::Silence);
    }

    /// Ends the matching watches that are open now with a 410.
    pub fn expire_watches(&self, on: Match) {
        self.command_watches(on, WatchAction::Expire);
    }

    /// Breaks every open connection.
    pub fn drop_connections(&self) {
        // Without a receiver no connection is open.
        let _ = self.connections.send(());
    }

    /// While `away` is true, the server breaks every connection at once, like a server that restarts.
    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
        if away {
            self.drop_connections();
        }
    }

    fn command_watches(&self, on: Match, action: WatchAction) {
        // Without a receiver no watch is open.
        let _ = self.watch_commands.send(Arc::new(WatchCommand { on, action }));
    }

    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst)
    }

    pub(crate) fn watch_commands(&self) -> broadcast::Receiver<Arc<WatchCommand>> {
        self.watch_commands.subscribe()
    }

    pub(crate) fn connection_drops(&self) -> broadcast::Receiver<()> {
        self.connections.subscribe()
    }

    /// Returns the faults to apply to a request, and counts them.
    pub(crate) fn take(&self, subject: &Subject) -> Vec<Action> {
        let mut actions = Vec::new();
        for active in self.active.lock().iter_mut().filter(|active| active.fault.on.matches(subject)) {
            active.seen += 1;
            let used_up = active.fault.times.is_some_and(|times| active.done >= times);
            if active.seen > active.fault.skip && !used_up {
                active.done += 1;
                actions.push(active.fault.action.clone());
            }
        }
        actions
    }
}

// === impl Fault ===

impl Fault {
    /// Returns a fault that applies to every matching request.
    pub fn new(on: Match, action: Action) -> Self {
        Self { on, action, skip: 0, times: None }
    }

    /// Returns a fault that applies to the first matching requests.
    pub fn times(on: Match, action: Action, times: u32) -> Self {
        Self { times: Some(times), ..Self::new(on, action) }
    }
}

// === impl Match ===

impl Match {
    /// Matches watches of this resource.
    pub fn watch(resource: &str) -> Self {
        Self { resource: Some(resource.into()), verbs: vec!["watch".into()], ..Self::default() }
    }

    /// Matches lists of this resource.
    pub fn list(resource: &str) -> Self {
        Self { resource: Some(resource.into()), verbs: vec!["list".into()], ..Self::default() }
    }

    pub(crate) fn matches(&self, subject: &Subject) -> bool {
        let resource = |wanted: &String| match wanted.split_once('.') {
            Some((resource, group)) => resource == subject.resource && group == subject.group,
            None => *wanted == subject.resource,
        };
        self.resource.as_ref().is_none_or(resource)
            && (self.verbs.is_empty() || self.verbs.contains(&subject.verb))
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == subject.namespace)
            && self.user_agent.as_ref().is_none_or(|part| subject.user_agent.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counted_and_end_after_their_number_of_times() {
        let faults = Faults::default();
        let mut fault = Fault::times(Match::watch("pods"), Action::Expired, 2);
        fault.skip = 1;
        let id = faults.add(fault);
        let pods = Subject { verb: "watch".into(), resource: "pods".into(), ..Subject::default() };
        let other = Subject { verb: "list".into(), ..pods.clone() };
        let taken: Vec<usize> = (0..4).map(|_| faults.take(&pods).len()).collect();
        assert_eq!(taken, [0, 1, 1, 0]);
        assert!(faults.take(&other).is_empty());
        assert_eq!(faults.remove(id), 2);
    }

    #[test]
    fn a_group_narrows_the_resource() {
        let on = Match { resource: Some("events.events.k8s.io".into()), ..Match::default() };
        let core = Subject { resource: "events".into(), ..Subject::default() };
        assert!(!on.matches(&core));
        assert!(on.matches(&Subject { group: "events.k8s.io".into(), ..core }));
    }
}
