//! Faults on demand: what a client must survive, done to the requests that match.
//!
//! A fault is given in a program ([`Fault`]) or as a text for a flag (`close-watch,resource=pods,times=3`, see
//! [`Fault::from_str`](std::str::FromStr)). Some things happen at once instead: watches that are open can be ended, the
//! history forgotten, connections dropped.

mod spec;

pub use spec::ParseError;

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::broadcast;
use tokio::time::Duration;

/// One way to misbehave, for some requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub on: Match,
    pub action: Action,
    /// So many matching requests are served well first.
    pub skip: u32,
    /// How many requests it is done to; `None` for all that follow.
    pub times: Option<u32>,
}

/// Which requests: every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// Plural, or `plural.group`.
    pub resource: Option<String>,
    /// Verbs as authorisation knows them: get, list, watch, create, update, patch, delete, deletecollection.
    pub verbs: Vec<String>,
    pub namespace: Option<String>,
    /// A part of the User-Agent header.
    pub user_agent: Option<String>,
}

/// What goes wrong. Counts of events begin anew with each watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A watch ends cleanly after so many events.
    CloseWatch { after_events: u64 },
    /// A watch says nothing any more after so many events, and stays open.
    HalfOpenWatch { after_events: u64 },
    /// The body comes in small pieces with a pause before each.
    SlowBody { pause: Duration },
    /// The connection breaks after so many bytes of the body.
    CutBody { after_bytes: usize },
    /// The body (of a watch: the line after so many events) is no JSON.
    Garbage { after_events: u64 },
    /// A watch tells each event twice.
    RepeatEvents,
    /// A watch leaves out one event, counted from zero.
    SwallowEvent { event: u64 },
    /// 410: in a watch as an ERROR event, else as the answer.
    Expired,
    /// 429 with Retry-After.
    TooManyRequests { retry_after_seconds: u32 },
    /// 500.
    InternalError,
    /// 401, whoever asks.
    RefuseLogin,
}

/// The faults in force.
#[derive(Debug)]
pub struct Faults {
    active: Mutex<Vec<Active>>,
    next_id: AtomicU64,
    kicks: broadcast::Sender<Arc<Kick>>,
    connections: broadcast::Sender<()>,
    away: AtomicBool,
}

/// Names a fault that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(u64);

#[derive(Debug)]
struct Active {
    id: FaultId,
    fault: Fault,
    seen: u32,
    done: u32,
}

/// Something that happens now to watches that are open.
#[derive(Debug)]
pub(crate) struct Kick {
    pub(crate) on: Match,
    pub(crate) how: KickHow,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KickHow {
    Close,
    Silence,
    Expire,
}

/// What a fault is matched against.
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
            kicks: broadcast::Sender::new(64),
            connections: broadcast::Sender::new(4),
            away: AtomicBool::new(false),
        }
    }
}

impl Faults {
    /// Puts a fault in force, behind those that are there.
    pub fn add(&self, fault: Fault) -> FaultId {
        let id = FaultId(self.next_id.fetch_add(1, Ordering::Relaxed));
        self.active.lock().push(Active { id, fault, seen: 0, done: 0 });
        id
    }

    /// Takes a fault back; returns how many requests it was done to.
    pub fn remove(&self, id: FaultId) -> u32 {
        let mut active = self.active.lock();
        let found = active.iter().position(|fault| fault.id == id);
        found.map(|at| active.remove(at).done).unwrap_or(0)
    }

    /// Returns how many requests a fault was done to.
    pub fn count(&self, id: FaultId) -> u32 {
        self.active.lock().iter().find(|fault| fault.id == id).map(|fault| fault.done).unwrap_or(0)
    }

    /// Returns how many requests a fault matched, whether or not it was done to them. One with `times: Some(0)` only counts.
    pub fn matched(&self, id: FaultId) -> u32 {
        self.active.lock().iter().find(|fault| fault.id == id).map(|fault| fault.seen).unwrap_or(0)
    }

    /// Takes all faults back.
    pub fn clear(&self) {
        self.active.lock().clear();
    }

    /// Ends the matching watches that are open now.
    pub fn close_watches(&self, on: Match) {
        self.kick(on, KickHow::Close);
    }

    /// Makes the matching watches that are open now say nothing any more.
    pub fn silence_watches(&self, on: Match) {
        self.kick(on, KickHow::Silence);
    }

    /// Ends the matching watches that are open now with a 410.
    pub fn expire_watches(&self, on: Match) {
        self.kick(on, KickHow::Expire);
    }

    /// Breaks every connection that is open now.
    pub fn drop_connections(&self) {
        // No receiver means no connection.
        let _ = self.connections.send(());
    }

    /// While `away`, every connection is broken as soon as it is made, as by a server that restarts.
    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
        if away {
            self.drop_connections();
        }
    }

    fn kick(&self, on: Match, how: KickHow) {
        // No receiver means no watch.
        let _ = self.kicks.send(Arc::new(Kick { on, how }));
    }

    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst)
    }

    pub(crate) fn kicks(&self) -> broadcast::Receiver<Arc<Kick>> {
        self.kicks.subscribe()
    }

    pub(crate) fn connection_drops(&self) -> broadcast::Receiver<()> {
        self.connections.subscribe()
    }

    /// Returns what is to be done to a request, and counts it.
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
    /// Returns a fault that is done to every matching request.
    pub fn new(on: Match, action: Action) -> Self {
        Self { on, action, skip: 0, times: None }
    }

    /// Returns a fault that is done to the first matching requests.
    pub fn times(on: Match, action: Action, times: u32) -> Self {
        Self { times: Some(times), ..Self::new(on, action) }
    }
}

// === impl Match ===

impl Match {
    /// Returns the condition that the request is a watch of this resource.
    pub fn watch(resource: &str) -> Self {
        Self { resource: Some(resource.into()), verbs: vec!["watch".into()], ..Self::default() }
    }

    /// Returns the condition that the request is a list of this resource.
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
    fn faults_are_counted_and_run_out() {
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
