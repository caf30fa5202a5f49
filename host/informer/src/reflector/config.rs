//! How a reflector goes about it.

use std::num::NonZeroU32;
use std::time::Duration;

use super::WatchErrorHandler;
use crate::backoff;
use crate::names::TypeMeta;

/// How a reflector goes about it. The defaults are client-go's where client-go has any.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the watch's objects must be; an event with anything else is dropped (RL-05). None: anything is taken.
    pub type_meta: Option<TypeMeta>,
    /// What is listed and watched, for messages. None: `type_meta`, where there is one (RL-06).
    pub description: Option<String>,
    /// How all there is comes in.
    pub initial_list: InitialList,
    /// Objects per page of a list. None: 500, or everything at once where the server's watch cache answers (RL-22).
    pub page_size: Option<NonZeroU32>,
    /// How long a try waits after a failed one.
    pub backoff: backoff::Config,
    /// Each watch is asked for this long at least and twice as long at most; less than 5 minutes is ignored (RL-01).
    pub min_watch_timeout: Duration,
    /// A list page or the beginning of a watch that takes longer than this has failed.
    pub request_timeout: Duration,
    /// A watch on which nothing came for this long is closed and resumed from where it was, if the server was ever seen to
    /// send bookmarks, which come about once a minute (RL-70). While all there is streams in, a bookmark is due in any case,
    /// and nothing for this long means that the server has to be asked for a list.
    pub silence_limit: Duration,
    /// How often the store is asked to send everything again. None: never (RL-62).
    pub resync_period: Option<Duration>,
    /// For how long internal errors on a watch are answered with another watch instead of a list; 0 for never (RL-47).
    pub max_internal_error_retry: Duration,
    /// Whether what streamed in is compared with a list.
    pub consistency_check: ConsistencyCheck,
    /// Is told of each round of list and watch that failed (RL-10). None: the log is (RL-11).
    pub watch_error_handler: Option<WatchErrorHandler>,
    /// Seed of everything random; none for another one each time.
    pub seed: Option<u64>,
}

/// How all there is comes in: in the beginning, and whenever a watch cannot go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialList {
    /// As the beginning of the watch, where source and server are able; as a list where they are not (RL-07, RL-12).
    #[default]
    Streamed,
    /// As a list, always.
    Listed,
}

/// Whether what streamed in is compared with a list (CD-01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsistencyCheck {
    /// It is not.
    #[default]
    Off,
    /// It is, and any difference panics. For tests: each time everything is listed once more, from etcd.
    Panic,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            type_meta: None,
            description: None,
            initial_list: InitialList::default(),
            page_size: None,
            backoff: backoff::Config::default(),
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
