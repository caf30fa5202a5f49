//! The consumer's end of the queue: pop, with the key's deltas processed under the queue's lock.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::state::DeltaFifoState;
use super::trace::Trace;
use super::{DeltaFifo, Deltas};
use crate::names::ObjectKey;

/// [`DeltaFifo::pop`] returns this once the queue is closed and empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta queue is closed")]
pub struct Closed;

/// The decision of the process callback of [`DeltaFifo::pop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    /// The deltas are processed.
    Done,
    /// The deltas return to the end of the queue, unless their key has been queued again by then.
    Requeue,
}

/// The outcome of processing the deltas of one key.
enum Outcome {
    /// This many deltas, the oldest, are processed.
    Processed(usize),
    /// All deltas return to the end of the queue.
    Requeue,
}

// === impl DeltaFifo ===

impl DeltaFifo {
    /// Waits for the oldest key, removes it, and calls `process` with its deltas while the queue is locked.
    ///
    /// The flag is true while the first list has not been processed whole. Cancelling the wait loses nothing.
    /// A closed queue is drained before this returns [`Closed`]. A panic of `process` is passed on; its key
    /// counts as processed.
    pub async fn pop<F>(&self, process: F) -> Result<(), Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Processed,
    {
        self.pop_with(|key, deltas, is_in_initial_list| process(key, deltas, is_in_initial_list).into()).await
    }

    /// Does as [`DeltaFifo::pop`], but `process` returns how many of the deltas, the oldest, it has
    /// processed.
    ///
    /// If some are left the key stays at the head of the queue with them, and later deltas of the key join
    /// them.
    pub(crate) async fn pop_some<F>(&self, process: F) -> Result<(), Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> usize,
    {
        self.pop_with(|key, deltas, is_in_initial_list| {
            Outcome::Processed(process(key, deltas, is_in_initial_list))
        })
        .await
    }

    /// Does as [`DeltaFifo::pop`], but returns false at once if the queue is empty.
    pub fn try_pop<F>(&self, process: F) -> Result<bool, Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Processed,
    {
        self.try_pop_with(|key, deltas, is_in_initial_list| process(key, deltas, is_in_initial_list).into())
    }

    /// Does as [`DeltaFifo::pop_some`], but returns false at once if the queue is empty.
    pub(crate) fn try_pop_some<F>(&self, process: F) -> Result<bool, Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> usize,
    {
        self.try_pop_with(|key, deltas, is_in_initial_list| {
            Outcome::Processed(process(key, deltas, is_in_initial_list))
        })
    }

    async fn pop_with<F>(&self, process: F) -> Result<(), Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Outcome,
    {
        let mut process = Some(process);
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                if let Some(popped) = self.pop_locked(&mut state, &mut process) {
                    return popped;
                }
            }
            changed.await;
        }
    }

    fn try_pop_with<F>(&self, process: F) -> Result<bool, Closed>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Outcome,
    {
        match self.pop_locked(&mut self.state.lock(), &mut Some(process)) {
            Some(popped) => popped.map(|()| true),
            None => Ok(false),
        }
    }

    /// Pops one key; returns none if the queue is open and empty.
    fn pop_locked<F>(&self, state: &mut DeltaFifoState, process: &mut Option<F>) -> Option<Result<(), Closed>>
    where
        F: FnOnce(&ObjectKey, &Deltas, bool) -> Outcome,
    {
        let Some((key, deltas)) = state.pop() else {
            return state.is_closed.then_some(Err(Closed));
        };
        let is_in_initial_list = !self.has_synced();
        let trace = Trace::start(state.len());
        let process =
            process.take().map(|process| AssertUnwindSafe(|| process(&key, &deltas, is_in_initial_list)));
        let outcome = process.map(catch_unwind);
        trace.end(&key);
        match &outcome {
            Some(Ok(Outcome::Requeue)) => state.requeue(key, deltas),
            Some(Ok(Outcome::Processed(n_processed))) => {
                if let Some(rest) = deltas.without(*n_processed) {
                    state.put_back(key, rest);
                    return Some(Ok(()));
                }
            }
            Some(Err(_)) | None => {}
        }
        if let Some(reached) = state.progress.popped() {
            self.publish(reached);
        }
        state.shrink();
        if let Some(Err(panic)) = outcome {
            // The panic is the caller's own. The queue, which other tasks use, is in order.
            resume_unwind(panic);
        }
        Some(Ok(()))
    }
}

// === impl Outcome ===

impl From<Processed> for Outcome {
    fn from(processed: Processed) -> Self {
        match processed {
            Processed::Done => Self::Processed(usize::MAX),
            Processed::Requeue => Self::Requeue,
        }
    }
}
