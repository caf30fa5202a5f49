//! The account of the host's memory that one plugin uses.
//!
//! The memory of the guest itself has a limit of its own (`limits.memory`). This account is for data that the
//! host holds for the plugin: keys in its work queue, Events that wait to be written, bodies of requests
//! under way, series of its metrics, the versions that it wrote. They are charged before they are stored. A
//! charge that exceeds the account returns `limit-exceeded` to the guest; a version is then not stored.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde::Serialize;

use crate::contract::{Error, ThrottledInfo};

/// The size of one plugin's account: the shares of all uses together.
pub const MOST_BYTES: u64 = 115 << 20;

/// The account of one plugin, for all its generations and instances. Cheap to clone; clones share the
/// account.
#[derive(Debug, Clone)]
pub struct HostBytes {
    shared: Arc<Account>,
}

/// The use of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Keys in the work queue: waiting, delayed, parked or being reconciled.
    WorkQueue,
    /// Events that wait to be written.
    Events,
    /// Bodies of requests under way, and of their answers.
    Requests,
    /// Series of the plugin's metrics.
    Metrics,
    /// What its keys read through listers that wake.
    ReadSets,
    /// The versions that it wrote.
    OwnWrites,
}

/// Charged bytes. Dropping it releases them.
#[derive(Debug)]
pub struct Charge {
    account: HostBytes,
    of: Use,
    bytes: u64,
}

/// The state of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostBytesView {
    /// The maximum number of bytes. Each use has a share of its own, so that a full work queue does not stop
    /// the requests that would empty it.
    pub limit: u64,
    /// The bytes charged.
    pub used: u64,
    /// The part of `used` for keys in the work queue.
    pub work_queue: u64,
    /// The part of `used` for Events that wait to be written.
    pub events: u64,
    /// The part of `used` for requests under way.
    pub requests: u64,
    /// The part of `used` for series of metrics.
    pub metrics: u64,
    /// The part of `used` for what keys read through listers that wake.
    pub read_sets: u64,
    /// The part of `used` for the versions that it wrote.
    pub own_writes: u64,
    /// The number of refused charges.
    pub refused: u64,
}

#[derive(Debug)]
struct Account {
    limit: u64,
    used: AtomicU64,
    by_use: [AtomicU64; 6],
    refused: AtomicU64,
}

// === impl HostBytes ===

/// Creates an account of [`MOST_BYTES`].
impl Default for HostBytes {
    fn default() -> Self {
        Self::new(MOST_BYTES)
    }
}

impl HostBytes {
    /// Creates an account of `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        let shared = Account {
            limit,
            used: AtomicU64::new(0),
            by_use: Default::default(),
            refused: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Charges bytes for a use.
    ///
    /// # Errors
    ///
    /// That of [`Charge::grow`].
    pub fn charge(&self, of: Use, bytes: usize) -> Result<Charge, Error> {
        let mut charge = Charge { account: self.clone(), of, bytes: 0 };
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// Returns the state of the account.
    #[must_use]
    pub fn view(&self) -> HostBytesView {
        let Account { limit, used, by_use, refused } = &*self.shared;
        let [work_queue, events, requests, metrics, read_sets, own_writes] =
            by_use.each_ref().map(|it| it.load(Ordering::Relaxed));
        HostBytesView {
            limit: *limit,
            used: used.load(Ordering::Relaxed),
            work_queue,
            events,
            requests,
            metrics,
            read_sets,
            own_writes,
            refused: refused.load(Ordering::Relaxed),
        }
    }
}

// === impl Charge ===

impl Charge {
    /// Charges further bytes.
    ///
    /// # Errors
    ///
    /// If the account or the share of the use is exceeded: [`Error::Throttled`] for what others free in time,
    /// which are keys, Events and requests that fit by themselves, and [`Error::LimitExceeded`] for
    /// everything else. The previous charge stays.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let Account { limit, used, by_use, refused } = &*self.account.shared;
        let bytes = bytes as u64;
        let add = |to: &AtomicU64, most: u64| {
            let fits = |used: u64| used.checked_add(bytes).filter(|after| *after <= most);
            to.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
        };
        let of_use = &by_use[self.of as usize];
        let share = self.of.share().min(*limit);
        if add(of_use, share) {
            if add(used, *limit) {
                self.bytes += bytes;
                return Ok(());
            }
            of_use.fetch_sub(bytes, Ordering::Relaxed);
        }
        refused.fetch_add(1, Ordering::Relaxed);
        let name = self.of.name();
        let message = format!(
            "{bytes} more bytes of {name} exceed the {share} bytes that the host holds of them for one plugin"
        );
        let passes = match self.of {
            Use::WorkQueue | Use::Events => true,
            // Other requests hold the rest, and end in time.
            Use::Requests => self.bytes.saturating_add(bytes) <= share,
            Use::Metrics | Use::ReadSets | Use::OwnWrites => false,
        };
        Err(match passes {
            true => Error::Throttled(ThrottledInfo { message, retry_after_ms: None }),
            false => Error::LimitExceeded(message),
        })
    }

    /// Releases a part of the bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = (bytes as u64).min(self.bytes);
        let Account { used, by_use, .. } = &*self.account.shared;
        used.fetch_sub(bytes, Ordering::Relaxed);
        by_use[self.of as usize].fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(usize::try_from(self.bytes).unwrap_or(usize::MAX));
    }
}

// === impl Use ===

impl Use {
    /// Returns the share of the account.
    fn share(self) -> u64 {
        match self {
            Self::WorkQueue => 40 << 20,
            Self::Events => 4 << 20,
            Self::Requests => 50 << 20,
            Self::Metrics => 2 << 20,
            Self::ReadSets => 16 << 20,
            Self::OwnWrites => 3 << 20,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::WorkQueue => "keys in the work queue",
            Self::Events => "Events",
            Self::Requests => "requests",
            Self::Metrics => "metrics",
            Self::ReadSets => "read sets",
            Self::OwnWrites => "own writes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_charged_until_they_are_released() {
        let account = HostBytes::new(100);
        let mut queue = account.charge(Use::WorkQueue, 60).unwrap();
        let events = account.charge(Use::Events, 40).unwrap();
        let error = queue.grow(1).unwrap_err();
        insta::assert_snapshot!(format!("{error:?}"), @r#"Error::Throttled(ThrottledInfo { message: "1 more bytes of keys in the work queue exceed the 100 bytes that the host holds of them for one plugin", retry-after-ms: None })"#);
        assert!(matches!(account.charge(Use::Requests, 1), Err(Error::Throttled(_))));
        assert!(matches!(account.charge(Use::Requests, 101), Err(Error::LimitExceeded(_))));
        assert!(matches!(account.charge(Use::Metrics, 1), Err(Error::LimitExceeded(_))));
        drop(events);
        queue.shrink(10);
        queue.grow(30).unwrap();
        let view = account.view();
        assert_eq!((view.used, view.work_queue, view.events, view.refused), (80, 80, 0, 4));
        drop(queue);
        assert_eq!(account.view().used, 0);
    }

    #[test]
    fn a_full_work_queue_leaves_room_for_the_requests_that_empty_it() {
        let account = HostBytes::default();
        let _keys = account.charge(Use::WorkQueue, 40 << 20).unwrap();
        assert!(account.charge(Use::WorkQueue, 1).is_err());
        let uses = [
            (Use::Events, 4 << 20),
            (Use::Requests, 50 << 20),
            (Use::Metrics, 2 << 20),
            (Use::ReadSets, 16 << 20),
            (Use::OwnWrites, 3 << 20),
        ];
        let _all = uses.map(|(of, share)| account.charge(of, share).unwrap());
        assert_eq!(account.view().used, MOST_BYTES);
    }

    #[test]
    fn a_charge_of_the_largest_size_does_not_overflow() {
        let account = HostBytes::new(u64::MAX);
        let _one = account.charge(Use::Metrics, 1).unwrap();
        assert!(account.charge(Use::Metrics, usize::MAX).is_err());
        assert_eq!(account.view().used, 1);
    }
}
