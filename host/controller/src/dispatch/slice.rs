//! The time slices of a dispatcher, after which other tasks of its worker run.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// How long a dispatcher with work runs at a time, after the end of its first call.
const LENGTH: Duration = Duration::from_micros(500);

/// The same in turns, for those that make no call.
const TURNS: u32 = 256;

/// The time since a dispatcher last waited, or let other tasks run.
///
/// tokio's own budget is not used for this. A task that has used it up, or calls `yield_now`, runs again when
/// its worker next polls its sockets and timers. While an informer and its connection wake each other, that
/// is up to [`event_interval`](tokio::runtime::Builder::event_interval) polls later, and the backlog fills
/// meanwhile.
#[derive(Debug, Default)]
pub(super) struct Slice {
    n_turns: u32,
    began: Option<Instant>,
    is_over: bool,
}

// === impl Slice ===

impl Slice {
    /// Notes a turn of the dispatcher, or that it waits. A new slice begins after a wait.
    pub(super) fn turned(&mut self, waits: bool) {
        if waits {
            *self = Self::default();
        } else {
            self.n_turns += 1;
            self.is_over |= self.n_turns >= TURNS;
        }
    }

    /// Notes the time. The end of a call has read it.
    pub(super) fn reached(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        self.is_over |= now.saturating_duration_since(began) >= LENGTH;
    }

    /// If the slice is over, lets the other tasks run that are in the worker's queue, and begins a new one.
    pub(super) async fn end_if_due(&mut self) {
        if self.is_over {
            *self = Self::default();
            go_behind_the_queue().await;
        }
    }
}

/// Puts the task at the end of the worker's queue.
async fn go_behind_the_queue() {
    let mut is_later = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_later, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slice_ends_by_time_or_turns_and_begins_again_after_a_wait() {
        let mut slice = Slice::default();
        let began = Instant::now();
        slice.reached(began);
        slice.reached(began + LENGTH - Duration::from_nanos(1));
        assert!(!slice.is_over);
        slice.reached(began + LENGTH);
        assert!(slice.is_over);
        slice.end_if_due().await;
        assert!(!slice.is_over);
        slice.reached(began + 2 * LENGTH);
        assert!(!slice.is_over, "the new slice begins here");
        (0..TURNS - 1).for_each(|_| slice.turned(false));
        assert!(!slice.is_over);
        slice.turned(false);
        assert!(slice.is_over);
        slice.turned(true);
        slice.reached(began + 9 * LENGTH);
        assert!(!slice.is_over, "the time of a wait does not count");
    }

    /// Four polls of these two per slice; with `yield_now` of tokio it would be some 240.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the tasks end with the test")]
    async fn promise_4_a_busy_dispatcher_runs_as_often_as_an_informer_and_its_connection() {
        const SLICES: u32 = 100;
        let (there, back) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (is_over, n_passes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let player = |wait: &Arc<Notify>, wake: &Arc<Notify>| {
            let (wait, wake) = (wait.clone(), wake.clone());
            let (is_over, n_passes) = (is_over.clone(), n_passes.clone());
            tokio::spawn(async move {
                while !is_over.load(Relaxed) {
                    wait.notified().await;
                    n_passes.fetch_add(1, Relaxed);
                    wake.notify_one();
                }
            })
        };
        let players = [player(&there, &back), player(&back, &there)];
        there.notify_one();
        let n_seen = tokio::spawn({
            let n_passes = n_passes.clone();
            async move {
                while n_passes.load(Relaxed) == 0 {
                    tokio::task::yield_now().await;
                }
                let before = n_passes.load(Relaxed);
                for _ in 0..SLICES {
                    let mut slice = Slice { is_over: true, ..Slice::default() };
                    slice.end_if_due().await;
                }
                n_passes.load(Relaxed) - before
            }
        })
        .await
        .unwrap();
        is_over.store(true, Relaxed);
        there.notify_one();
        back.notify_one();
        for player in players {
            player.await.unwrap();
        }
        assert!(n_seen <= 16 * SLICES, "{n_seen} polls of the others in {SLICES} slices");
    }
}
