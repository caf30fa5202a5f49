//! Whether this host may call plugins and send their writes.
//!
//! A host in a leader election begins on standby: it loads plugins and fills caches, and calls nothing. When
//! it holds the Lease, it leads: dispatch begins. It never goes back: a host that does not lead any more
//! ends.
//!
//! ```text
//!   Standby ─holds the Lease→ Leading ─asked to end, and drained; or lost the Lease→ Ended
//! ```
//!
//! Two things keep a host from writing when another one may lead. The state is `Ended` before the Lease is
//! released. And [`Leadership::check_write`] compares the monotonic clock with the last renewal, without the
//! help of any task: so a process that was stopped and continues sends nothing before it has renewed.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

/// The state of this host in the election. Cheap to clone: clones share it.
#[derive(Clone)]
pub(crate) struct Leadership {
    shared: Arc<Shared>,
}

/// What the host may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Another host leads, or none. This one calls no plugin.
    Standby,
    /// This host calls plugins, and sends their writes.
    Leading,
    /// This host has led, and ends.
    Ended,
}

/// The state, for pages.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LeadershipView {
    pub(crate) state: State,
    /// The identity of the host that holds the Lease, as last observed; empty if none does.
    pub(crate) leader: String,
}

/// The host may not write: it does not lead, or its last renewal is too long ago.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this host does not hold the Lease any more, and another one may lead")]
pub(crate) struct NotLeading;

/// A write that ended without an answer, since this host may not write any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{source}")]
pub(crate) struct Fenced {
    source: NotLeading,
    /// Whether the write may have been sent, so that its outcome is unknown.
    pub(crate) may_be_sent: bool,
}

struct Shared {
    state: watch::Sender<State>,
    /// Whether the state is `Leading`, for the dispatchers, which read it before each call.
    leads: AtomicBool,
    /// Until when the last renewal counts.
    until: OnceLock<Box<Until>>,
    /// None without an election.
    leader: Option<Mutex<String>>,
}

type Until = dyn Fn() -> Option<Instant> + Send + Sync;

// === impl Leadership ===

impl Leadership {
    /// Returns the leadership of a host that takes part in no election: it always leads.
    pub(crate) fn sole() -> Self {
        Self::new(State::Leading, None)
    }

    /// Returns the leadership of a host that is on standby.
    pub(crate) fn standby() -> Self {
        Self::new(State::Standby, Some(Mutex::default()))
    }

    fn new(state: State, leader: Option<Mutex<String>>) -> Self {
        let shared = Shared {
            state: watch::Sender::new(state),
            leads: AtomicBool::new(state == State::Leading),
            until: OnceLock::new(),
            leader,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sets what returns until when this host may write. Only the first call counts.
    pub(crate) fn lasts_until(&self, until: impl Fn() -> Option<Instant> + Send + Sync + 'static) {
        let _ = self.shared.until.set(Box::new(until));
    }

    /// Begins to lead, unless the host has ended.
    pub(crate) fn lead(&self) {
        self.shared.state.send_if_modified(|state| {
            let begins = *state == State::Standby;
            if begins {
                *state = State::Leading;
                self.shared.leads.store(true, Ordering::Release);
            }
            begins
        });
    }

    /// Ends leadership for good. No call begins after this, and no write is sent.
    pub(crate) fn end(&self) {
        self.shared.leads.store(false, Ordering::Release);
        self.shared.state.send_replace(State::Ended);
    }

    /// Notes which host holds the Lease.
    pub(crate) fn observe(&self, leader: &str) {
        if let Some(observed) = &self.shared.leader {
            leader.clone_into(&mut observed.lock());
        }
    }

    /// Returns whether calls may begin.
    pub(crate) fn leads(&self) -> bool {
        self.shared.leads.load(Ordering::Acquire)
    }

    /// Returns whether the host has led and does not any more.
    pub(crate) fn has_ended(&self) -> bool {
        *self.shared.state.borrow() == State::Ended
    }

    /// Waits until this host leads; for ever, if it never does.
    pub(crate) async fn led(&self) {
        let mut state = self.shared.state.subscribe();
        if state.wait_for(|state| *state == State::Leading).await.is_err() {
            // The sender lives as long as `self`.
            std::future::pending().await
        }
    }

    /// Returns an error if a write may not be sent now.
    pub(crate) fn check_write(&self) -> Result<(), NotLeading> {
        if !self.leads() {
            return Err(NotLeading);
        }
        match self.shared.until.get() {
            None => Ok(()),
            Some(until) if until().is_some_and(|until| Instant::now() < until) => Ok(()),
            Some(_) => Err(NotLeading),
        }
    }

    /// Makes a write for as long as this host may write. Leadership is checked before each poll: a write that
    /// waits for a connection, or that a stopped process continues with, is not sent when another host may
    /// lead. A write that was sent before may still be carried out.
    pub(crate) async fn fenced<T>(&self, write: impl Future<Output = T>) -> Result<T, Fenced> {
        let mut write = pin!(write);
        let mut is_first = true;
        poll_fn(|cx| {
            let was_first = std::mem::replace(&mut is_first, false);
            match self.check_write() {
                Ok(()) => write.as_mut().poll(cx).map(Ok),
                Err(source) => Poll::Ready(Err(Fenced { source, may_be_sent: !was_first })),
            }
        })
        .await
    }

    /// Returns the state for pages; none without an election.
    pub(crate) fn view(&self) -> Option<LeadershipView> {
        let leader = self.shared.leader.as_ref()?.lock().clone();
        Some(LeadershipView { state: *self.shared.state.borrow(), leader })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_host_leads_once_and_never_after_its_end() {
        let leadership = Leadership::standby();
        leadership.observe("other");
        assert_eq!((leadership.leads(), leadership.check_write()), (false, Err(NotLeading)));
        let view = LeadershipView { state: State::Standby, leader: "other".to_owned() };
        assert_eq!(leadership.view(), Some(view));
        leadership.lead();
        leadership.led().await;
        assert_eq!((leadership.leads(), leadership.check_write()), (true, Ok(())));
        leadership.end();
        leadership.lead();
        assert_eq!((leadership.leads(), leadership.check_write()), (false, Err(NotLeading)));
        assert!(leadership.has_ended());
    }

    #[tokio::test(start_paused = true)]
    async fn writes_end_with_the_last_renewal_although_no_task_has_noticed() {
        let leadership = Leadership::standby();
        let renewed = Arc::new(Mutex::new(None));
        let until = renewed.clone();
        leadership.lasts_until(move || until.lock().map(|at: Instant| at + Duration::from_secs(10)));
        leadership.lead();
        assert_eq!(leadership.check_write(), Err(NotLeading), "it holds no Lease");
        *renewed.lock() = Some(Instant::now());
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert_eq!(leadership.check_write(), Ok(()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((leadership.check_write(), leadership.leads()), (Err(NotLeading), true));
        *renewed.lock() = Some(Instant::now());
        assert_eq!(leadership.check_write(), Ok(()), "after another renewal");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_ends_with_leadership() {
        let leadership = Leadership::standby();
        let at = Instant::now();
        leadership.lasts_until(move || Some(at + Duration::from_secs(10)));
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            "answer"
        };
        let fenced = |may_be_sent| Err(Fenced { source: NotLeading, may_be_sent });
        assert_eq!(leadership.fenced(slow()).await, fenced(false), "on standby nothing is sent");
        leadership.lead();
        assert_eq!(leadership.fenced(slow()).await, Ok("answer"));
        assert_eq!(leadership.fenced(slow()).await, fenced(true), "its time is over before the answer");
    }

    #[test]
    fn a_host_without_an_election_always_leads() {
        let leadership = Leadership::sole();
        assert_eq!((leadership.leads(), leadership.check_write(), leadership.view()), (true, Ok(()), None));
    }
}
