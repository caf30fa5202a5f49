//! The configuration of a reflector.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use oarlock_flow_control::Backoff;

use super::Error;
use crate::names::TypeMeta;
use crate::outages::Outages;
use crate::user_function::{self, UserFunction};

/// The configuration of a reflector. The defaults are client-go's where client-go has any.
#[derive(Clone, Debug)]
pub struct Config {
    /// The type that the watch's objects must have; the reflector drops an event with an object of another
    /// type (RL-05). None: every type is accepted.
    pub type_meta: Option<TypeMeta>,
    /// The name of the resource for messages. None: `type_meta`, if there is one (RL-06).
    pub description: Option<String>,
    /// How the reflector gets all objects.
    pub initial_list: InitialList,
    /// Objects per page of a list. None: 500, or all in one page where the server's watch cache answers
    /// (RL-22).
    pub page_size: Option<NonZeroU32>,
    /// The waits after failures.
    pub backoff: Backoff,
    /// Ends a wait early when the API server answers again after an outage (RL-75). None: nothing does.
    pub outages: Option<Outages>,
    /// The time after which the waits restart at the initial one (RL-03). Zero: at every failure.
    pub backoff_reset_after: Duration,
    /// The reflector asks the server to end each watch after a random time between this one and twice this
    /// one. A value under 5 minutes counts as 5 minutes (RL-01).
    pub min_watch_timeout: Duration,
    /// A list page or the beginning of a watch without an answer in this time has failed.
    pub request_timeout: Duration,
    /// The reflector closes a watch without an event for this long, and resumes it from the last version, if
    /// the server has ever sent a bookmark; bookmarks come about once a minute (RL-70). During the initial
    /// events a bookmark is always due, so the limit holds on every server, and the reflector lists instead.
    pub silence_limit: Duration,
    /// The time between two resyncs of the store. None: no resyncs (RL-62).
    pub resync_period: Option<Duration>,
    /// The time for which the reflector answers internal errors on a watch with another watch instead of a
    /// list; 0: never (RL-47).
    pub max_internal_error_retry: Duration,
    /// Whether the initial events are compared with a list.
    pub consistency_check: ConsistencyCheck,
    /// Receives the errors that end a list or the beginning of a watch (RL-10). None: the log receives them
    /// (RL-11).
    pub watch_error_handler: Option<WatchErrorHandler>,
    /// The seed of all random numbers. None: another one at each start.
    pub seed: Option<u64>,
}

/// How a reflector gets all objects: at first, and whenever a watch cannot resume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialList {
    /// As the initial events of a watch, if source and server support that; else as a list (RL-07, RL-12).
    #[default]
    Streamed,
    /// Always as a list.
    Listed,
}

/// Whether the initial events are compared with a list (CD-01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsistencyCheck {
    /// No comparison.
    #[default]
    Off,
    /// A difference panics. For tests: each comparison lists all objects from etcd.
    Panic,
}

/// A function that receives the errors of lists and of the beginnings of watches, in place of the log
/// (RL-10).
///
/// The reflector calls it before the back-off that follows. [`Error::api_error`] returns the API server's
/// error, if it is the cause. The end of a watch, for whatever reason, is not such an error.
#[derive(Clone)]
pub struct WatchErrorHandler(Arc<dyn Fn(&Error) + Send + Sync>);

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            type_meta: None,
            description: None,
            initial_list: InitialList::default(),
            page_size: None,
            backoff: Backoff::default(),
            outages: None,
            backoff_reset_after: Duration::from_secs(120),
            min_watch_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(300),
            silence_limit: Duration::from_secs(110),
            resync_period: None,
            max_internal_error_retry: Duration::ZERO,
            consistency_check: ConsistencyCheck::default(),
            watch_error_handler: None,
            seed: None,
        }
    }
}

// === impl WatchErrorHandler ===

impl WatchErrorHandler {
    /// Makes a handler of a function. The reflector's task calls it, so it must return quickly.
    pub fn new(function: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    pub(super) fn call(&self, error: &Error) {
        // `user_function` counts and logs a panic.
        let _ = user_function::call(UserFunction::WatchErrorHandler, error, || (self.0)(error));
    }
}

impl fmt::Debug for WatchErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchErrorHandler")
    }
}
