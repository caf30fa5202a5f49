//! What a candidate has seen of the record, and when.

use std::time::Duration;

use oarlock_flow_control::clock;
use tokio::time::Instant;

use crate::{lock::Fetched, record::Record};

/// The record as last fetched or written.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) record: Record,
    /// As last *fetched*: what we wrote ourselves does not count here (LE-06).
    raw: Option<Vec<u8>>,
    /// When it was last seen to change.
    pub(crate) at: Option<Instant>,
    /// When the last of our own writes that succeeded was sent. Whoever sees it does so later.
    pub(crate) renewed: Option<Instant>,
    /// The holder that was last told of.
    told: String,
}

// === impl Observed ===

impl Observed {
    pub(crate) fn fetched(&mut self, fetched: Fetched) {
        let Fetched { record, raw } = fetched;
        if self.raw.as_ref() != Some(&raw) {
            self.record = record;
            self.raw = Some(raw);
            self.at = Some(Instant::now());
        }
    }

    pub(crate) fn wrote(&mut self, record: Record, sent: Instant) {
        self.record = record;
        self.at = Some(Instant::now());
        self.renewed = Some(sent);
    }

    /// Whether the holder still has time left, by what the record says of how long it lasts (LE-05).
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        let lasts = u64::try_from(self.record.lease_duration_seconds).unwrap_or_default();
        self.at.is_some_and(|at| clock::after(at, Duration::from_secs(lasts)) > now)
    }

    /// The holder, if it is not the one that was told of last.
    pub(crate) fn news(&mut self) -> Option<String> {
        if self.told == self.record.holder_identity {
            return None;
        }
        self.told.clone_from(&self.record.holder_identity);
        Some(self.told.clone())
    }
}
