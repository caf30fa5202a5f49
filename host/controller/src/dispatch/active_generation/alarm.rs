//! One timer for all that a dispatcher waits for.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep};

/// Wakes the dispatcher at a time. It may wake earlier: a timer that is set stays until it fires, so that a
/// dispatcher that is idle for a moment after each event does not set one each time.
#[derive(Default)]
pub(super) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    /// When the timer fires; none while it is not set.
    set_to: Option<Instant>,
}

// === impl Alarm ===

impl Alarm {
    /// Polls for the time, or an earlier one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if self.set_to.is_none_or(|set_to| at < set_to) {
            sleep.as_mut().reset(at);
            self.set_to = Some(at);
        }
        let fired = sleep.as_mut().poll(cx);
        if fired.is_ready() {
            self.set_to = None;
        }
        fired
    }
}
