//! The reflector's state machine: the states, and all transitions between them.
//!
//! | state | after success | after an error |
//! |---|---|---|
//! | `InitialList` | `Streaming` or `Listing` | |
//! | `Streaming` | `Watching` on the same watch | `Streaming` again, at once or after a back-off, or `Listing` |
//! | `Listing` | `Watching` | back-off, then `InitialList` |
//! | `Watching` | (a watch always ends) | `Watching` again, at once or after a back-off, or back-off, then `InitialList` |
//!
//! [`ActiveReflector::after_stream`] and [`after_watch`] choose between the alternatives of the last column.

use std::fmt;
use std::time::Duration;

use oarlock_flow_control::{ResettingBackoff, clock};
use tokio::time::Instant;

use super::internal_errors::InternalErrors;
use super::outcome::{Error, Outcome, Report, Wait, in_full};
use super::watching::{OpenWatch, VERY_SHORT};
use super::{ActiveReflector, InitialList, ReflectorStore};
use crate::outages::Outages;

/// The longest wait that a `Retry-After` of the server may cause.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// After this many streams in a row that ended too early, the reflector lists instead: pages may get through.
const MAX_CLOSED_EARLY: u32 = 5;

/// The current state of the reflector.
pub(super) enum State {
    /// Chooses how to get all objects, by `Streaming` or by `Listing` (RL-12).
    InitialList,
    /// Opens a watch that begins with all objects, the initial events. Their end bookmark leads to `Watching`
    /// on the same watch, an error to `Listing` (WL-01 to WL-10).
    Streaming {
        /// The number of such watches in a row that ended before the end of the initial events.
        n_closed_early: u32,
    },
    /// Lists all objects, in pages if need be, and replaces the store's contents (RL-20 to RL-29).
    Listing,
    /// Passes the events of one watch to the store, until the watch ends. The next watch resumes at the last
    /// version, or the reflector relists (RL-40 to RL-56). Resyncs happen in this state only, its back-off
    /// included.
    Watching {
        /// The watch that brought the initial events. None: open a watch at the last version.
        open: Option<OpenWatch>,
        /// The internal errors of the watches since the last list.
        internal_errors: InternalErrors,
    },
    /// Waits, then continues with the next state. The wait of an outage may end early.
    BackingOff { wait: Duration, is_outage: bool, next: Box<State> },
}

/// Resyncs the store each time the period has passed, while the reflector watches (RL-60 to RL-62).
struct ResyncTimer<'r> {
    store: &'r dyn ReflectorStore,
    period: Option<Duration>,
    next_at: Option<Instant>,
}

// === impl ActiveReflector ===

impl ActiveReflector<'_> {
    /// Goes from state to state. Dropping the future closes the request or watch under way.
    pub(super) async fn run_forever(&mut self) {
        let mut state = State::InitialList;
        let mut resync = ResyncTimer::new(self.store, self.config.resync_period);
        loop {
            resync.follow(&state);
            // Boxed, since the future of a step is large; a step lasts as long as a list or a watch.
            let step = Box::pin(self.step(state));
            state = tokio::select! {
                biased;
                // First, since a step may use up the budget of a poll for as long as events keep coming.
                error = resync.run() => self.conclude(Outcome::relist(error)),
                next = step => next,
            };
        }
    }

    /// Carries out one state, and returns the next one.
    async fn step(&mut self, state: State) -> State {
        let result = match state {
            State::InitialList => Ok(self.choose_initial_list()),
            State::Streaming { n_closed_early } => match self.stream().await {
                Ok(watch) => Ok(self.watching(Some(watch))),
                Err(error) => Err(self.after_stream(error, n_closed_early)),
            },
            State::Listing => match self.list().await {
                Ok(()) => Ok(self.watching(None)),
                Err(error) => Err(Outcome::failed(error)),
            },
            State::Watching { open, internal_errors } => {
                Err(after_watch(self.watch(open).await, internal_errors))
            }
            State::BackingOff { wait, is_outage, next } => {
                self.back_off(wait, is_outage).await;
                Ok(*next)
            }
        };
        result.unwrap_or_else(|outcome| self.conclude(outcome))
    }

    /// Waits. In an outage, the wait ends soon after the server answers again (RL-75).
    async fn back_off(&mut self, wait: Duration, is_outage: bool) {
        let waited = tokio::time::sleep(wait);
        let Some(outages) = self.config.outages.as_ref().filter(|_| is_outage) else {
            return waited.await;
        };
        tokio::pin!(waited);
        tokio::select! {
            () = &mut waited => {}
            () = outages.ended() => {
                // A random time, since the other reflectors wait too.
                let soon = self.backoff_after_outage.step(&mut self.random);
                tokio::select! {
                    () = &mut waited => {}
                    () = tokio::time::sleep(soon) => {}
                }
            }
        }
    }

    /// Returns the next wait. The waits of an outage do not count for the failures that follow it: a server
    /// that has just started ends watches at once (RL-75).
    fn next_back_off(&mut self) -> Duration {
        let is_out = self.config.outages.as_ref().is_some_and(Outages::is_out);
        let was_out = std::mem::replace(&mut self.was_out, is_out);
        if was_out && !is_out {
            let wait = self.backoff_after_outage.step(&mut self.random);
            self.backoff = self.backoff_after_outage.clone();
            return wait;
        }
        self.backoff.step(&mut self.random)
    }

    fn choose_initial_list(&self) -> State {
        self.status.list_begins();
        match self.config.initial_list {
            InitialList::Streamed if self.list_watch.supports_watch_list() => {
                State::Streaming { n_closed_early: 0 }
            }
            InitialList::Streamed | InitialList::Listed => State::Listing,
        }
    }

    /// Returns the state after a whole list; `open` is the watch that brought it, if a watch did.
    fn watching(&self, open: Option<OpenWatch>) -> State {
        State::Watching { open, internal_errors: InternalErrors::new(self.config.max_internal_error_retry) }
    }

    /// Chooses the state after a watch that did not bring all initial events: another watch, or a list
    /// (WL-06, WL-07).
    fn after_stream(&mut self, error: Error, n_closed_early: u32) -> Outcome {
        let again = State::Streaming { n_closed_early };
        match (&error, error.api_error()) {
            (Error::Closed { lasted }, _) => {
                let n_closed_early = n_closed_early + 1;
                let again = State::Streaming { n_closed_early };
                if n_closed_early == MAX_CLOSED_EARLY {
                    let error = Error::ClosedTooEarly { n_watches: n_closed_early };
                    Outcome::resume(error, State::Listing)
                } else if n_closed_early > 1 && *lasted < VERY_SHORT {
                    // The server answers, so the back-off must not grow.
                    Outcome::resume_later(error, again)
                } else {
                    Outcome::resume(error, again)
                }
            }
            (Error::Silent { .. }, _) => Outcome::silent(error, State::Listing),
            (_, Some(source)) if source.is_retriable_in_place() => Outcome::retry(error, again),
            // Once more, without a version (RL-23). If the newest version is not available either, the
            // reflector lists.
            (_, Some(source))
                if (source.is_expired() || source.is_too_large_rv()) && !self.is_last_version_unavailable =>
            {
                self.is_last_version_unavailable = true;
                Outcome::resume(error, again)
            }
            _ => Outcome::resume(error, State::Listing),
        }
    }

    /// Reports why a step did not succeed, and returns the next state.
    fn conclude(&mut self, outcome: Outcome) -> State {
        let Outcome { error, report, phase, wait, next } = outcome;
        let wait = match wait {
            Wait::None => None,
            Wait::BackOff => {
                let asked_for = error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
                Some(self.next_back_off().max(asked_for))
            }
            Wait::FirstBackOff => {
                let super::Config { backoff, backoff_reset_after, .. } = self.config;
                Some(ResettingBackoff::new(backoff.clone(), *backoff_reset_after).step(&mut self.random))
            }
        };
        match (report, &self.config.watch_error_handler) {
            (Report::Handler, Some(handler)) => handler.call(&error),
            (Report::Handler, None) => error.log(),
            (Report::Warning, _) => {
                tracing::warn!(
                    "{}; the reflector continues with {next} after {:?}",
                    in_full(&error),
                    wait.unwrap_or_default()
                );
            }
            (Report::Debug, _) => {
                tracing::debug!(
                    "{}; the reflector continues with {next} after {:?}",
                    in_full(&error),
                    wait.unwrap_or_default()
                );
            }
        }
        if matches!(error, Error::Silent { .. }) {
            self.status.counters.n_silences.increment();
        }
        if let Some(phase) = phase {
            self.status.failed(phase, in_full(&error));
        }
        match wait {
            Some(wait) => {
                let is_outage = self.config.outages.as_ref().is_some_and(Outages::is_out);
                // A server that asks for a wait gets it.
                let is_outage = is_outage && error.retry_after().is_none();
                State::BackingOff { wait, is_outage, next: Box::new(next) }
            }
            None => next,
        }
    }
}

/// Chooses the state after the end of a watch: another watch, or a relist (RL-41, RL-42, RL-44).
fn after_watch(error: Error, mut internal_errors: InternalErrors) -> Outcome {
    let again = |internal_errors| State::Watching { open: None, internal_errors };
    match &error {
        Error::Closed { .. } => Outcome::resume(error, again(internal_errors)),
        Error::Silent { .. } => Outcome::silent(error, again(internal_errors)),
        Error::Ended { source, .. } if source.is_expired() => Outcome::expired(error),
        Error::Watch { source, .. } | Error::Ended { source, .. } if source.is_retriable_in_place() => {
            Outcome::retry(error, again(internal_errors))
        }
        Error::Watch { .. } => Outcome::failed(error),
        Error::Ended { source, .. } if source.is_internal() && internal_errors.may_retry_after_another() => {
            Outcome::resume(error, again(internal_errors))
        }
        _ => Outcome::relist(error),
    }
}

// === impl State ===

impl State {
    /// Returns whether the store has a whole list that watches keep up to date.
    fn is_watch_phase(&self) -> bool {
        match self {
            Self::Watching { .. } => true,
            Self::BackingOff { next, .. } => next.is_watch_phase(),
            Self::InitialList | Self::Streaming { .. } | Self::Listing => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitialList => f.write_str("a relist"),
            Self::Streaming { .. } => f.write_str("a watch with initial events"),
            Self::Listing => f.write_str("a list"),
            Self::Watching { .. } => f.write_str("a watch from the last version"),
            Self::BackingOff { next, .. } => next.fmt(f),
        }
    }
}

// === impl ResyncTimer ===

impl<'r> ResyncTimer<'r> {
    fn new(store: &'r dyn ReflectorStore, period: Option<Duration>) -> Self {
        Self { store, period: period.filter(|period| !period.is_zero()), next_at: None }
    }

    /// Starts the timer when the watch phase begins, and stops it when the watch phase ends.
    fn follow(&mut self, state: &State) {
        if !state.is_watch_phase() {
            self.next_at = None;
        } else if self.next_at.is_none() {
            self.next_at = self.period.map(|period| clock::after(Instant::now(), period));
        }
    }

    /// Resyncs at each period; returns only when the store fails to (RL-46).
    async fn run(&mut self) -> Error {
        let (Some(period), Some(next_at)) = (self.period, &mut self.next_at) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep_until(*next_at).await;
            if self.store.should_resync()
                && let Err(error) = self.store.resync()
            {
                return Error::Resync(error);
            }
            // The period begins after the resync, however long that took.
            *next_at = clock::after(Instant::now(), period);
        }
    }
}
