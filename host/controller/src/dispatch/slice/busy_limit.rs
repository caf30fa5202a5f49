//! How many busy dispatchers are in the queues of the workers, and which ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use oarlock_plugin::engine::DEFAULT_WEIGHT;
use parking_lot::Mutex;

use super::LENGTH;

/// How many dispatchers per worker may begin another slice before one of them ends it.
pub(in crate::dispatch) const PER_WORKER: usize = 2;

/// How far a dispatcher may be ahead of the holder that has used least, if it gets a permit beyond one for
/// each worker. More, and a plugin with a large weight would wait in a worker's queue behind those that had
/// their share.
const LEAD: u64 = 2 * LENGTH.as_nanos() as u64;

/// The weight that a smaller one counts as here. While a dispatcher waits for its permit, it does not notice
/// that calls of its plugin have ended.
const LEAST_WEIGHT: u32 = 10;

/// The most that one slice counts, in nanoseconds: twice its length with the least weight.
const LARGEST_CHARGE: u64 = 20 * LENGTH.as_nanos() as u64;

/// How far a dispatcher may be behind the one that got a permit last. More is no credit: it could not use
/// its share.
const CREDIT: u64 = 2 * LARGEST_CHARGE;

/// Limits how many busy dispatchers are in the queues of the workers. The others wait here, in the order of
/// their [virtual time](VirtualTime). So a task of the host waits behind a few slices, and not behind one for
/// each plugin with a backlog; and busy plugins with short calls get time in proportion to their weight,
/// since their guests run within their dispatchers' slices.
///
/// A dispatcher that has waited for something runs its first slice without a permit: a plugin that is called
/// now and then does not wait behind busy ones.
#[derive(Clone, Debug)]
pub(crate) struct BusyLimit(Arc<Limit>);

#[derive(Debug)]
struct Limit {
    n_workers: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Of the permit that was given last.
    virtual_time: VirtualTime,
    /// The dispatchers with a permit.
    holders: Vec<VirtualTime>,
    /// The second part is the order of arrival.
    waiting: BTreeMap<(VirtualTime, u64), oneshot::Sender<BusyPermit>>,
    n_arrived: u64,
}

/// The permit of one dispatcher for one slice.
#[derive(Debug)]
pub(super) struct BusyPermit {
    /// `None` once it is given back.
    limit: Option<Arc<Limit>>,
    virtual_time: VirtualTime,
}

/// The time that a dispatcher has used in nanoseconds, scaled to the default weight.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct VirtualTime(u64);

// === impl BusyLimit ===

impl BusyLimit {
    /// Returns the limit for a runtime with so many workers.
    pub(crate) fn new(n_workers: usize) -> Self {
        Self(Arc::new(Limit { n_workers: n_workers.max(1), queue: Mutex::default() }))
    }

    /// Gives back the permit of a slice, which took `ran`, and waits for one for the next slice. A dispatcher
    /// without one was idle before its slice, which is no credit.
    ///
    /// Dropping what it returns ends the wait, or gives back the permit that was granted meanwhile.
    pub(super) fn next(
        &self,
        held: Option<BusyPermit>,
        used: &mut VirtualTime,
        ran: Duration,
        weight: u32,
    ) -> oneshot::Receiver<BusyPermit> {
        let (sender, permit) = oneshot::channel();
        self.0.change(|queue| {
            let least = match held {
                Some(held) => {
                    queue.remove(held);
                    VirtualTime(queue.virtual_time.0.saturating_sub(CREDIT))
                }
                None => queue.least(),
            };
            *used = least.max(*used);
            used.charge(ran, weight);
            queue.n_arrived += 1;
            queue.waiting.insert((*used, queue.n_arrived), sender);
        });
        permit
    }
}

// === impl Limit ===

impl Limit {
    /// Changes the queue, then gives the free permits to those that are first.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue.lock();
        change(&mut queue);
        loop {
            let granted: Vec<_> = std::iter::from_fn(|| queue.pop(self.n_workers)).collect();
            drop(queue);
            // Those that do not wait any more.
            let refused: Vec<_> = granted
                .into_iter()
                .filter_map(|(virtual_time, sender)| {
                    sender.send(BusyPermit { limit: Some(self.clone()), virtual_time }).err()
                })
                .collect();
            if refused.is_empty() {
                return;
            }
            queue = self.queue.lock();
            refused.into_iter().for_each(|permit| queue.remove(permit));
        }
    }
}

// === impl Queue ===

impl Queue {
    fn remove(&mut self, mut permit: BusyPermit) {
        permit.limit = None;
        if let Some(index) = self.holders.iter().position(|holder| *holder == permit.virtual_time) {
            self.holders.swap_remove(index);
        }
    }

    /// Returns the virtual time of the dispatcher that has used least, of those that run or wait.
    fn least(&self) -> VirtualTime {
        let first = self.waiting.first_key_value().map(|((first, _), _)| first);
        let least = self.holders.iter().chain(first).min().copied().unwrap_or(self.virtual_time);
        least.max(VirtualTime(self.virtual_time.0.saturating_sub(CREDIT)))
    }

    /// Removes the first one that waits, if it may have a permit.
    fn pop(&mut self, n_workers: usize) -> Option<(VirtualTime, oneshot::Sender<BusyPermit>)> {
        let (first, _) = *self.waiting.first_key_value()?.0;
        let may_run = match self.holders.iter().min() {
            Some(least) if self.holders.len() >= n_workers => {
                self.holders.len() < PER_WORKER * n_workers && first.0 <= least.0.saturating_add(LEAD)
            }
            _ => true,
        };
        let ((virtual_time, _), sender) = may_run.then(|| self.waiting.pop_first())??;
        self.virtual_time = self.virtual_time.max(virtual_time);
        self.holders.push(virtual_time);
        Some((virtual_time, sender))
    }
}

// === impl BusyPermit ===

impl Drop for BusyPermit {
    fn drop(&mut self) {
        if let Some(limit) = self.limit.take() {
            let permit = Self { limit: None, virtual_time: self.virtual_time };
            limit.change(|queue| queue.remove(permit));
        }
    }
}

// === impl VirtualTime ===

impl VirtualTime {
    /// Adds the time of a slice, or of a part of one.
    pub(super) fn charge(&mut self, ran: Duration, weight: u32) {
        let ran = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        let scaled = ran.saturating_mul(DEFAULT_WEIGHT.into()) / u64::from(weight.max(LEAST_WEIGHT));
        self.0 = self.0.saturating_add(scaled.min(LARGEST_CHARGE));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn a_permit_passes_by_those_whose_tasks_have_ended() {
        let limit = BusyLimit::new(1);
        let mut used = [VirtualTime::default(); 2];
        let mut holders = Vec::new();
        for used in &mut used {
            holders.push(limit.next(None, used, LENGTH, 100).await);
        }
        for _ in 0..10_000 {
            assert!(limit.next(None, &mut VirtualTime::default(), LENGTH, 100).now_or_never().is_none());
        }
        let mut used = VirtualTime::default();
        let mut last = pin!(limit.next(None, &mut used, LENGTH, 100));
        assert!(poll!(&mut last).is_pending());
        drop(holders.pop());
        assert!(poll!(&mut last).is_ready());
        assert!(limit.0.queue.lock().waiting.is_empty());
        assert_eq!(limit.0.queue.lock().holders.len(), 1, "the last one dropped its permit");
    }

    /// While there are workers enough, one with a small weight runs as often as the others. It uses more, and
    /// the others have no more credit for it than [`CREDIT`].
    #[tokio::test]
    async fn time_without_contention_is_little_credit() {
        let limit = BusyLimit::new(2);
        let (mut light, mut heavy) = (VirtualTime::default(), VirtualTime::default());
        let (mut of_light, mut of_heavy) = (None, None);
        for _ in 0..1_000 {
            of_light = limit.next(of_light.take(), &mut light, LENGTH, 1).await.ok();
            of_heavy = limit.next(of_heavy.take(), &mut heavy, LENGTH, 1_000).await.ok();
        }
        assert!(light > heavy && light.0 - heavy.0 <= CREDIT + LARGEST_CHARGE, "{light:?} {heavy:?}");
        let mut fresh = VirtualTime::default();
        let _permit = limit.next(None, &mut fresh, LENGTH, 1_000).await;
        assert!(fresh.0.abs_diff(heavy.0) <= CREDIT, "{fresh:?} {heavy:?}");
    }

    /// It is no advantage to wait for something after each slice.
    #[tokio::test]
    async fn a_slice_counts_also_for_one_that_was_idle_before() {
        let limit = BusyLimit::new(1);
        let mut used = VirtualTime::default();
        let mut before = used;
        for _ in 0..10 {
            drop(limit.next(None, &mut used, LENGTH, 100).await);
            assert_eq!(used.0 - before.0, LENGTH.as_nanos() as u64);
            before = used;
        }
    }
}
