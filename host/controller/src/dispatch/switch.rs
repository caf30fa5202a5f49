//! The switch of a dispatcher to another generation.

use std::sync::Arc;

use oarlock_plugin::guest;
use tokio_util::sync::CancellationToken;

use super::active_generation::{ActiveGeneration, DrainingGeneration};
use super::calls::Calls;
use super::generation::{Generation, RollBack};
use super::{Dispatcher, milliseconds};
use crate::report::{HostEvent, Mode, Reporter};
use crate::schedule::{self, SchedulePlan};

// === impl Dispatcher ===

impl Dispatcher {
    /// Switches to another generation, and returns whether it did. The calls of the old one that are in
    /// progress end beside the new one's. The old one is put in quarantine if this is a roll-back.
    pub(super) fn switch(
        &mut self,
        mut old: Option<ActiveGeneration>,
        draining: &mut Vec<DrainingGeneration>,
        calls: &mut Calls,
        generation: Generation,
        roll_back: Option<RollBack>,
    ) -> (Option<ActiveGeneration>, bool) {
        if ActiveGeneration::lacks_listener(old.as_ref(), &generation) {
            // Only a bug of the host gets here. The old generation stays active.
            tracing::error!(plugin = %self.plugin, "a new generation inherits a listener that does not exist; the old one keeps serving");
            return (old, false);
        }
        let took = generation.began.elapsed();
        let (took_ms, took_us) = (milliseconds(took), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        let (version, digest) = (generation.version.clone(), generation.digest.clone());
        let writes = generation.writes.clone();
        let view = generation.view();
        let inherited = generation.inherited();
        // A generation that was active on standby alone has not begun to serve.
        let has_started = old.is_some() && self.leads;
        self.take_schedules(generation.schedules.clone(), has_started, &generation.reporter);
        let held = calls.switch();
        if let Some(old) = &mut old {
            held.iter().for_each(|due| old.give_back(due, &self.queue));
        }
        let waited = old.as_ref().is_some_and(|old| old.waits_for_drain);
        let rolled_back = old.as_ref().zip(roll_back).map(|(old, RollBack { reason, event })| {
            old.progress.quarantined(&reason);
            (old.reporter.clone(), event)
        });
        let (mut active, mode, drained) = ActiveGeneration::replace(old, generation, &self.queue, self.leads);
        draining.extend(drained);
        // A plugin with state has one instance that is called, whichever of the two versions has the state.
        active.waits_for_drain = !draining.is_empty() && (waited || mode == Mode::Replay);
        self.serve_readers(&active, &inherited);
        self.active_view.set(view);
        // The new version may be able to handle what the old one could not.
        self.queue.release_deferred();
        self.queue.retry_parked();
        self.queue.retry_failed();
        self.status.update(|status| {
            status.generation = active.number;
            status.version = Some(version.clone());
            status.digest = Some(digest.clone());
            status.writes = writes.writes();
            status.waits_for.clear();
            status.last_error = None;
        });
        let stands_by = !self.leads;
        let loaded = HostEvent::PluginLoaded { version, digest, mode, took_ms, took_us, stands_by };
        active.reporter.report(loaded);
        if let Some((reporter, event)) = rolled_back {
            reporter.report(event);
        }
        active.publish(&self.status, &self.queue);
        self.show_phase(Some(&active));
        (Some(active), true)
    }

    /// Has the schedules of a generation run, in a task that ends with the dispatcher.
    fn take_schedules(&mut self, schedules: Arc<[SchedulePlan]>, has_started: bool, reporter: &Reporter) {
        if schedules.is_empty() && self.schedules.is_none() {
            return;
        }
        let running = self.schedules.get_or_insert_with(|| {
            let (plugin, queue) = (self.plugin.clone(), self.queue.clone());
            let (runner, sender) =
                schedule::Runner::new(plugin, queue, self.shared.wall_clock.clone(), has_started);
            let name = format!("schedules of {}", self.plugin);
            let leadership = self.shared.leadership.clone();
            let abandoned = runner.abandoned();
            let run = |token: CancellationToken| async move {
                tokio::select! {
                    biased;
                    () = token.cancelled() => {}
                    () = abandoned => {}
                    () = leadership.led() => runner.run(token.clone()).await,
                }
            };
            let (plugin, metrics, status) =
                (self.plugin.clone(), self.shared.metrics.clone(), self.status.clone());
            let reporter = reporter.clone();
            self.shared.tasks.spawn_contained(name, run, move |message| {
                let (doing, message) = ("its schedules".to_owned(), guest::text::one_line(&message));
                metrics.panicked(&plugin);
                status.record_error(&format!("the host panicked in {doing}: {message}"));
                reporter.report(HostEvent::PluginPanicked { doing, message });
            });
            sender
        });
        running.send_replace(schedules);
    }
}
