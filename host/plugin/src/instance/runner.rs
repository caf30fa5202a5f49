//! Runs the calls of one instance: in its turn, within the deadline, and counted.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures::FutureExt as _;
use tokio::time::Sleep;

use crate::{
    call_error::{self, DeadlinePassed},
    engine::{Engine, Share, Turn, TurnState, take_ready_time},
    guest::Usage,
};

/// The time after its deadline at which a waiting call is cancelled. A computing call traps at its deadline,
/// with a backtrace.
const GRACE: Duration = Duration::from_millis(10);

/// Runs the calls of one instance.
pub(super) struct Runner {
    engine: Engine,
    share: Share,
    usage: Usage,
    turn: Arc<Turn>,
    /// Returns the time. Tests control it.
    clock: fn() -> Instant,
    /// When the newest call ended.
    ended: Option<Instant>,
}

/// A call that is run. See [`Runner::run`].
struct Run<'a, F> {
    runner: &'a Runner,
    call: Pin<&'a mut F>,
    /// When the call began. `None` after its first poll.
    began: Option<Instant>,
    /// Since when it waits for its turn.
    waits_since: Option<Instant>,
    /// Ends a call that waits for the host beyond its deadline. Created by the first wait.
    timer: Option<Pin<Box<Sleep>>>,
    /// By how much the deadline has moved since the timer was set.
    moved: Duration,
    /// By how much it has moved in addition since the timer was polled: for how long the call was ready, also
    /// if that was because of the timer, which does not wait for as long again.
    was_ready_for: Duration,
}

// === impl Runner ===

impl Runner {
    pub(super) fn new(engine: Engine, share: Share, usage: Usage, turn: Arc<Turn>) -> Self {
        Self { engine, share, usage, turn, clock: Instant::now, ended: None }
    }

    /// Runs a call to its end, in slices for which it has a permit of the scheduler.
    ///
    /// Cancels a call that waits for the host beyond its deadline; epochs end a call that computes beyond it.
    /// The time in which the call waits for its turn does not count towards the deadline. A panic of the host
    /// within the call ends the call, as a trap does.
    pub(super) async fn run<T>(
        &mut self,
        limit: Duration,
        call: impl Future<Output = Result<T, wasmtime::Error>>,
    ) -> Result<T, wasmtime::Error> {
        let began = (self.clock)();
        self.turn.set_deadline(began, limit);
        let call = pin!(AssertUnwindSafe(call).catch_unwind());
        let run = Run {
            runner: self,
            call,
            began: Some(began),
            waits_since: None,
            timer: None,
            moved: Duration::ZERO,
            was_ready_for: Duration::ZERO,
        };
        let (answer, ended) = run.await;
        self.usage.ended(ended.saturating_duration_since(began));
        self.ended = Some(ended);
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => Err(call_error::panicked(panic.as_ref())),
            None => Err(DeadlinePassed.into()),
        }
    }

    /// Returns when the newest call ended.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.ended
    }
}

// === impl Run ===

/// Returns the answer, or `None` at the deadline, and when the call ended.
impl<F: Future> Future for Run<'_, F> {
    type Output = (Option<F::Output>, Instant);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Runner { engine, share, usage, turn, clock, ended: _ } = this.runner;
        let began = ready!(this.poll_turn(context));
        let polled = this.call.as_mut().poll(context);
        let ended = clock();
        let stopped = turn.stopped(ended);
        if !stopped.is_zero() {
            this.extend_deadline(stopped);
        }
        let ran = ended.saturating_duration_since(began).saturating_sub(stopped);
        usage.polled(ran);
        if polled.is_pending() && turn.take_slice_ended() {
            engine.scheduler().end_slice(share, turn, context.waker(), ran);
            this.waits_since = Some(ended);
            return Poll::Pending;
        }
        match polled {
            Poll::Ready(answer) => {
                engine.scheduler().end_call(share, turn, ran);
                Poll::Ready((Some(answer), ended))
            }
            Poll::Pending => {
                engine.scheduler().release(share, turn, ran);
                ready!(this.poll_timer(ended, context));
                Poll::Ready((None, ended))
            }
        }
    }
}

impl<F> Run<'_, F> {
    /// Waits for the permit to poll the call once. Returns the time.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        let Runner { engine, share, turn, clock, .. } = self.runner;
        let was_ready_for = take_ready_time();
        let now = if turn.state() == TurnState::Idle {
            let now = match self.began.take() {
                Some(began) => began,
                None => {
                    turn.extend_deadline(was_ready_for);
                    self.was_ready_for += was_ready_for;
                    clock()
                }
            };
            if !engine.scheduler().acquire(share, turn, context.waker()) {
                engine.hurry_ticker();
                self.waits_since = Some(now);
                return Poll::Pending;
            }
            now
        } else {
            turn.wakes(context.waker());
            if !turn.take_grant() {
                return Poll::Pending;
            }
            clock()
        };
        if let Some(since) = self.waits_since.take() {
            self.extend_deadline(now.saturating_duration_since(since));
        }
        turn.begin_poll(now);
        engine.wake_ticker();
        Poll::Ready(now)
    }

    /// Moves the deadline: the call does not pay for the time in which others run.
    fn extend_deadline(&mut self, by: Duration) {
        self.runner.turn.extend_deadline(by);
        self.moved += by;
    }

    fn poll_timer(&mut self, now: Instant, context: &mut Context<'_>) -> Poll<()> {
        let turn = &self.runner.turn;
        let timer = match &mut self.timer {
            Some(timer) => timer,
            None => {
                // The grace begins at the deadline, not with each turn after it.
                let left = turn.time_left(GRACE, now);
                if left.is_zero() {
                    return Poll::Ready(());
                }
                (self.moved, self.was_ready_for) = Default::default();
                self.timer.insert(Box::pin(tokio::time::sleep(left)))
            }
        };
        while timer.as_mut().poll(context).is_ready() {
            if self.moved.is_zero() {
                return Poll::Ready(());
            }
            let deadline = timer.deadline() + std::mem::take(&mut self.moved);
            timer.as_mut().reset(deadline);
        }
        self.moved += std::mem::take(&mut self.was_ready_for);
        Poll::Pending
    }
}

impl<F> Drop for Run<'_, F> {
    fn drop(&mut self) {
        let Runner { engine, share, turn, .. } = self.runner;
        if turn.state() != TurnState::Idle {
            engine.scheduler().forget(share, turn);
        }
    }
}

#[cfg(test)]
mod tests;
