//! What the host keeps for one plugin, and how much that may be together.
//!
//! A guest's own memory has a limit of its own. This is about the host's: keys in its work queue, Events that
//! wait to be written, bodies of requests under way, series of its metrics. Whatever a guest can make the
//! host keep is charged here before it is kept; what does not fit is answered with `limit-exceeded`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde::Serialize;

use crate::contract::Error;

/// How much the host keeps for one plugin: the parts of all uses together.
pub const MOST_BYTES: u64 = 96 << 20;

/// The account of one plugin over all its versions and instances. Cheap to clone; clones are the same one.
#[derive(Debug, Clone)]
pub struct HostBytes {
    shared: Arc<Shared>,
}

/// What bytes are kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Keys in the work queue: waiting, delayed, parked or being worked on.
    WorkQueue,
    /// Events that wait to be written.
    Events,
    /// Bodies of requests under way, and of their answers.
    Requests,
    /// Series of the plugin's metrics.
    Metrics,
}

/// Bytes that are kept. Dropping it gives them back.
#[derive(Debug)]
pub struct Charge {
    account: HostBytes,
    of: Use,
    bytes: u64,
}

/// A look at an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostBytesView {
    /// How much may be kept together. Each use has a part of its own: a full work queue does not stop the requests
    /// that would empty it.
    pub limit: u64,
    /// How much is kept.
    pub used: u64,
    /// Of it for keys in the work queue.
    pub work_queue: u64,
    /// Of it for Events that wait to be written.
    pub events: u64,
    /// Of it for requests under way.
    pub requests: u64,
    /// Of it for series of metrics.
    pub metrics: u64,
    /// How often something did not fit.
    pub refused: u64,
}

#[derive(Debug)]
struct Shared {
    limit: u64,
    used: AtomicU64,
    by_use: [AtomicU64; 4],
    refused: AtomicU64,
}

// === impl HostBytes ===

/// With room for [`MOST_BYTES`].
impl Default for HostBytes {
    fn default() -> Self {
        Self::new(MOST_BYTES)
    }
}

impl HostBytes {
    /// Makes an account on which so much may be kept together.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        let shared =
            Shared { limit, used: AtomicU64::new(0), by_use: Default::default(), refused: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Charges what is to be kept.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] when it does not fit.
    pub fn charge(&self, of: Use, bytes: usize) -> Result<Charge, Error> {
        let mut charge = Charge { account: self.clone(), of, bytes: 0 };
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// Returns how much is kept, and for what.
    #[must_use]
    pub fn view(&self) -> HostBytesView {
        let Shared { limit, used, by_use, refused } = &*self.shared;
        let [work_queue, events, requests, metrics] =
            [&by_use[0], &by_use[1], &by_use[2], &by_use[3]].map(|it| it.load(Ordering::Relaxed));
        HostBytesView {
            limit: *limit,
            used: used.load(Ordering::Relaxed),
            work_queue,
            events,
            requests,
            metrics,
            refused: refused.load(Ordering::Relaxed),
        }
    }
}

// === impl Charge ===

impl Charge {
    /// Charges so much more.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] when it does not fit; what was charged before stays.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let Shared { limit, used, by_use, refused } = &*self.account.shared;
        let bytes = bytes as u64;
        let add = |to: &AtomicU64, most: u64| {
            let fits = |used: u64| used.checked_add(bytes).filter(|after| *after <= most);
            to.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
        };
        let of_use = &by_use[self.of as usize];
        let part = self.of.part().min(*limit);
        if add(of_use, part) {
            if add(used, *limit) {
                self.bytes += bytes;
                return Ok(());
            }
            of_use.fetch_sub(bytes, Ordering::Relaxed);
        }
        refused.fetch_add(1, Ordering::Relaxed);
        let words = self.of.words();
        Err(Error::LimitExceeded(format!(
            "no room for {bytes} bytes of {words}: the host keeps up to {part} bytes of them for one plugin"
        )))
    }

    /// Gives so much back.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = (bytes as u64).min(self.bytes);
        let Shared { used, by_use, .. } = &*self.account.shared;
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
    /// How much of the account it may take.
    fn part(self) -> u64 {
        match self {
            Self::WorkQueue => 40 << 20,
            Self::Events => 4 << 20,
            Self::Requests => 50 << 20,
            Self::Metrics => 2 << 20,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::WorkQueue => "keys in the work queue",
            Self::Events => "Events",
            Self::Requests => "requests",
            Self::Metrics => "metrics",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_charged_until_it_is_given_back() {
        let account = HostBytes::new(100);
        let mut queue = account.charge(Use::WorkQueue, 60).unwrap();
        let events = account.charge(Use::Events, 40).unwrap();
        let error = queue.grow(1).unwrap_err();
        insta::assert_snapshot!(format!("{error:?}"), @r#"Error::LimitExceeded("no room for 1 bytes of keys in the work queue: the host keeps up to 100 bytes of them for one plugin")"#);
        assert!(account.charge(Use::Requests, 1).is_err());
        drop(events);
        queue.shrink(10);
        queue.grow(30).unwrap();
        let view = account.view();
        assert_eq!((view.used, view.work_queue, view.events, view.refused), (80, 80, 0, 2));
        drop(queue);
        assert_eq!(account.view().used, 0);
    }

    #[test]
    fn a_full_work_queue_leaves_room_for_the_requests_that_empty_it() {
        let account = HostBytes::default();
        let _keys = account.charge(Use::WorkQueue, 40 << 20).unwrap();
        assert!(account.charge(Use::WorkQueue, 1).is_err());
        let uses = [(Use::Events, 4 << 20), (Use::Requests, 50 << 20), (Use::Metrics, 2 << 20)];
        let _all = uses.map(|(of, part)| account.charge(of, part).unwrap());
        assert_eq!(account.view().used, MOST_BYTES);
    }

    #[test]
    fn sizes_beyond_all_measure_do_not_wrap() {
        let account = HostBytes::new(u64::MAX);
        let _one = account.charge(Use::Metrics, 1).unwrap();
        assert!(account.charge(Use::Metrics, usize::MAX).is_err());
        assert_eq!(account.view().used, 1);
    }
}
