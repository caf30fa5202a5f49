//! The last observed record of a candidate, and the moment of its last change.

use std::time::Duration;

use oarlock_flow_control::clock;
use tokio::time::Instant;

use crate::{lock::Fetched, record::Record};

/// The record as last fetched or written.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) record: Record,
    /// The bytes of the last *fetched* record. Own writes do not change them (LE-06).
    raw: Option<Vec<u8>>,
    /// The moment of the last observed change.
    pub(crate) at: Option<Instant>,
    /// The moment when the last successful own write was sent. Other candidates observe it later.
    pub(crate) renewed: Option<Instant>,
    /// The holder that was reported last.
    reported: String,
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

    /// Returns true if the lease has not expired, by the duration in the record (LE-05).
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        let lasts = u64::try_from(self.record.lease_duration_seconds).unwrap_or_default();
        self.at.is_some_and(|at| clock::after(at, Duration::from_secs(lasts)) > now)
    }

    /// Returns the holder, if it was not yet reported.
    pub(crate) fn take_new_holder(&mut self) -> Option<String> {
        if self.reported == self.record.holder_identity {
            return None;
        }
        self.reported.clone_from(&self.record.holder_identity);
        Some(self.reported.clone())
    }
}
