//! Handles a lost instance: schedules the next instance and the next try of the call, and reports both.

use std::time::Duration;

use oarlock_plugin::CallError;
use tokio::time::Instant;

use super::active_generation::{ActiveGeneration, DrainingGeneration};
use super::crash_backoff::Loss;
use super::due_call::DueCall;
use super::health::GenerationHealth;
use super::parked::ParkedNote;
use super::{Dispatcher, milliseconds};
use crate::generations::GenerationHandle;
use crate::report::{HostEvent, NextTry};

/// The reasons for the loss of an instance, as metrics and reports name them.
pub(crate) const LOSS_REASONS: [&str; 9] =
    ["trap", "exit", "deadline", "memory", "table", "invalid-data", "cannot-start", "host-panic", "other"];

/// Returns the [reason](LOSS_REASONS) of an error.
pub(super) fn loss_reason(error: &CallError) -> &'static str {
    match error {
        CallError::Trap { .. } => "trap",
        CallError::Exit { .. } => "exit",
        CallError::DeadlineExceeded { .. } => "deadline",
        CallError::MemoryLimit { .. } => "memory",
        CallError::TableLimit { .. } => "table",
        CallError::InvalidData { .. } => "invalid-data",
        CallError::CannotStart { .. } => "cannot-start",
        CallError::HostPanicked { .. } => "host-panic",
        CallError::NotExported { .. } | CallError::Mismatch { .. } | CallError::Dead => "other",
    }
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Settles a call that began at the given time and cost the instance of a lane. The next instance is made
    /// at once if the call was in crash back-off already, else after a wait that grows while no call is
    /// answered.
    pub(super) fn settle_loss(
        &self,
        active: &mut ActiveGeneration,
        due: &DueCall,
        lane: usize,
        began: Instant,
        error: &CallError,
    ) -> Loss {
        let about = due.describe(active);
        let mut loss = active.crash_backoff.lost(due.key(), due.version(&self.queue), &active.retry);
        if loss.again_after.is_none() && active.is_superseded(due) {
            active.crash_backoff.release(&due.key());
            loss.again_after = Some(active.retry.back_off(loss.losses));
        }
        if loss.again_after.is_none() {
            let note = ParkedNote::new("instance-lost", loss.losses, &error.to_string());
            active.note_parked(due.key(), note, &self.queue);
        }
        self.instance_lost(active, due.function(), about, Some(loss), lane, began, error);
        loss
    }

    /// Notes that no instance could be made for a lane.
    pub(super) fn cannot_start(&self, active: &mut ActiveGeneration, lane: usize, error: &CallError) {
        self.instance_lost(active, "start", String::new(), None, lane, Instant::now(), error);
    }

    /// Notes that a call of a generation that drains cost it an instance. Nothing replaces the instance: the
    /// version that serves gets the call.
    pub(super) fn lost_while_draining(
        &self,
        draining: &DrainingGeneration,
        due: &DueCall,
        error: &CallError,
    ) {
        let function = match error {
            CallError::CannotStart { .. } => "start",
            _ => due.function(),
        };
        let reason = self.count_loss(&draining.health, &draining.progress, function, error);
        let name = |subscription: usize| draining.listeners[subscription].name().to_owned();
        draining.reporter.report(HostEvent::InstanceLost {
            function,
            about: due.describe_with(name),
            reason,
            message: error.to_string(),
            output: error.output().to_owned(),
            backtrace: error.backtrace().to_owned(),
            losses: 1,
            restart_after_ms: None,
            next_try: None,
        });
    }

    /// Counts an instance of a generation that was lost in a function, and returns the reason.
    pub(super) fn count_loss(
        &self,
        health: &GenerationHealth,
        progress: &GenerationHandle,
        function: &str,
        error: &CallError,
    ) -> &'static str {
        progress.instance_lost();
        let reason = loss_reason(error);
        health.lost(matches!(error, CallError::DeadlineExceeded { .. }));
        self.metrics.lost(function, reason);
        self.status.update(|status| status.instances_lost += 1);
        reason
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of one loss, which end in one report")]
    fn instance_lost(
        &self,
        active: &mut ActiveGeneration,
        function: &'static str,
        about: String,
        loss: Option<Loss>,
        lane: usize,
        began: Instant,
        error: &CallError,
    ) {
        let (losses, wait) = match loss {
            Some(Loss { was_in_backoff: true, .. }) => (active.restarts.in_a_row(), Duration::ZERO),
            _ => active.restarts.lost(&self.shared.restart, began),
        };
        active.lanes.lost(lane, Instant::now() + wait);
        active.expect_parked();
        let reason = self.count_loss(&active.health, &active.progress, function, error);
        self.show_phase(Some(active));
        let of = if about.is_empty() { "" } else { " of " };
        self.status.record_loss(&format!("{function}{of}{about}: {error}"), error.output());
        let next_try = loss.map(|Loss { losses, again_after, .. }| NextTry {
            tries: losses,
            // Not before there is an instance.
            after_ms: again_after.map(|after| milliseconds(after.max(wait))),
        });
        active.reporter.report(HostEvent::InstanceLost {
            function,
            about,
            reason,
            message: error.to_string(),
            output: error.output().to_owned(),
            backtrace: error.backtrace().to_owned(),
            losses,
            restart_after_ms: Some(milliseconds(wait)),
            next_try,
        });
    }
}

// === impl Loss ===

impl Loss {
    /// Returns why the host stops retrying the call.
    pub(super) fn reason(self) -> String {
        match self.losses {
            1 => "it cost the plugin its instance, and too many other calls that did so still wait for a try"
                .to_owned(),
            losses => format!("it cost the plugin its instance {losses} times"),
        }
    }
}
