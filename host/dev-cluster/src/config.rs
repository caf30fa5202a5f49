//! How a server is to be started.

use crate::faults::Fault;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::time::Duration;

/// Everything that can be chosen; [`Config::default`] is right for local work.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub addr: SocketAddr,
    /// How many events of each resource are remembered. A watch from before them is answered with 410.
    pub history_limit: usize,
    /// How often a watch that allows bookmarks gets one.
    pub bookmark_interval: Duration,
    /// Whether what has no owner any more is deleted, and owners wait for what they own, as a cluster's controller-manager
    /// sees to. Without it this is a bare API server.
    pub garbage_collection: bool,
    /// The administrator's token; a random one if there is none.
    pub admin_token: Option<String>,
    /// Faults in force from the first request on.
    pub faults: Vec<Fault>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            history_limit: 20_000,
            bookmark_interval: Duration::from_secs(60),
            garbage_collection: true,
            admin_token: None,
            faults: Vec::new(),
        }
    }
}
