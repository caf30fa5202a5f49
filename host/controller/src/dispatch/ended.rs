//! What follows the end of a call: its lane is free again, and its notification or key is settled.

use std::time::Duration;

use tokio::time::Instant;

use super::Dispatcher;
use super::active_generation::{ActiveGeneration, DrainingGeneration};
use super::calls::{Calls, Ended, EndedJob};
use super::due_call::DueCall;
use crate::report::{HostEvent, Mode};

// === impl Dispatcher ===

impl Dispatcher {
    /// Applies the end of a job to its lane and to what it was for.
    pub(super) fn ended(
        &self,
        active: Option<&mut ActiveGeneration>,
        draining: &mut Vec<DrainingGeneration>,
        calls: &mut Calls,
        ended: Ended,
    ) {
        let released = calls.free(ended.id);
        let Some(active) = active else { return };
        if ended.generation == active.number {
            self.ended_in(active, ended);
        } else if let Some(index) = draining.iter().position(|it| it.number == ended.generation) {
            self.ended_after_switch(&mut draining[index], ended);
            // It may have read what no lister follows any more.
            active.note_woken();
            if draining[index].n_calls == 0 {
                draining.swap_remove(index);
                active.waits_for_drain &= !draining.is_empty();
            }
        }
        released.iter().for_each(|due| active.give_back(due, &self.queue));
    }

    fn ended_in(&self, active: &mut ActiveGeneration, ended: Ended) {
        let Ended { lane, instance, is_fresh, at, what, .. } = ended;
        active.note_time(at);
        active.deferred_lane.take_if(|deferred| *deferred == lane);
        if is_fresh && !matches!(what, EndedJob::CannotStart { .. }) {
            self.made(active, lane, at);
        }
        if let Some(instance) = instance {
            active.lanes.put_back(lane, instance, at);
        }
        match what {
            EndedJob::Made => {}
            EndedJob::CannotStart { due, error } => {
                self.cannot_start(active, lane, &error);
                if let Some(due) = due {
                    self.note_end(active.exported.reconciler, &due);
                    active.give_back(&due, &self.queue);
                }
            }
            EndedJob::Called { due, began, result } => {
                self.note_end(active.exported.reconciler, &due);
                match result {
                    Ok(answer) => {
                        self.settle(active, &due, answer, at.saturating_duration_since(began));
                    }
                    Err(error) => self.settle_lost(active, &due, lane, began, &error),
                }
            }
        }
    }

    fn ended_after_switch(&self, draining: &mut DrainingGeneration, ended: Ended) {
        draining.n_calls = draining.n_calls.saturating_sub(1);
        match ended.what {
            EndedJob::Made => {}
            EndedJob::CannotStart { due, error } => {
                if let Some(due) = due {
                    self.note_end(draining.has_reconciler, &due);
                    self.settle_drained(draining, &due, Err(error), Duration::ZERO);
                }
            }
            EndedJob::Called { due, began, result } => {
                self.note_end(draining.has_reconciler, &due);
                let took = ended.at.saturating_duration_since(began);
                self.settle_drained(draining, &due, result, took);
            }
        }
    }

    fn note_end(&self, has_reconciler: bool, due: &DueCall) {
        if has_reconciler {
            self.queue.call_ends(due.is_replay());
        }
    }

    /// Notes that a fresh instance serves a lane. If it replaces a lost one, and unless the plugin is
    /// stateless, it receives everything again. Listers that wake stay synced.
    fn made(&self, active: &mut ActiveGeneration, lane: usize, now: Instant) {
        let Some(lost_at) = active.lanes.made(lane) else { return };
        let mode = active.restart();
        if mode == Mode::Replay {
            self.status.update(|status| {
                for (shown, subscription) in status.subscriptions.iter_mut().zip(&active.subscriptions) {
                    shown.synced = subscription.is_synced();
                }
            });
        }
        self.show_phase(Some(active));
        self.metrics.restarted();
        let took_us = u64::try_from(now.saturating_duration_since(lost_at).as_micros()).unwrap_or(u64::MAX);
        active.reporter.report(HostEvent::InstanceRestarted { mode, took_us });
    }
}
