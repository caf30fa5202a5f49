//! The configuration of a server.

use crate::faults::Fault;
use crate::generated::Clock;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::time::Duration;

/// The settings of a server. [`Config::default`] fits local work.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on; port 0 selects a free port.
    pub addr: SocketAddr,
    /// The number of events that the server keeps per resource. A watch from an older version gets a 410.
    pub history_limit: usize,
    /// The interval between the bookmarks of a watch that allows them.
    pub bookmark_interval: Duration,
    /// Whether the server collects garbage as the controller-manager of a real cluster does: it deletes
    /// objects without owners, and foreground and orphan deletion work. Without it the server is a bare API
    /// server.
    pub garbage_collection: bool,
    /// The administrator's token; `None` for a random one.
    pub admin_token: Option<String>,
    /// Faults that are active from the first request.
    pub faults: Vec<Fault>,
    /// The time of day, for the times in objects.
    pub clock: Clock,
    /// With a seed the uids and generated names are the same in each run; `None` for random ones.
    pub seed: Option<u64>,
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
            clock: Clock::system(),
            seed: None,
        }
    }
}
