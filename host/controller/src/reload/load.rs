//! The task that loads one version of a plugin: prepares it, and passes it to the dispatcher.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::channel::mpsc;
use oarlock_plugin::guest;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::prepare::{self, Origin, Prepared};
use super::roll_out::RollOut;
use super::rollback::{Reply, RolledBack};
use super::{Host, PluginSlot};
use crate::config::PluginFile;
use crate::dispatch::{Generation, RollBack, Switch};
use crate::provision::Example;
use crate::regular_file::Stamp;
use crate::report::HostEvent;
use crate::shadow;
use crate::tasks::Task;

/// A component that has not changed for this long is complete.
const SETTLED: Duration = Duration::from_secs(2);

/// Spawns the task that loads a version. It cancels the task before it first.
pub(super) fn begin(
    host: &Arc<Host>,
    slot: &Arc<PluginSlot>,
    file: Arc<PluginFile>,
    stamp: Option<Stamp>,
    before: Option<Task>,
) -> Task {
    let (host, slot) = (host.clone(), slot.clone());
    let (tasks, name) = (host.tasks.clone(), slot.name.clone());
    let (panicked_host, panicked_slot, panicked_file) = (host.clone(), slot.clone(), file.clone());
    let on_panic = move |message: String| {
        report_panic(&panicked_host, &panicked_slot.name, "its loading", &message);
        let error = prepare::Error::Panicked(message);
        panicked_slot.refuse(&panicked_host.reporter, &panicked_file, &error);
        if panicked_slot.has_lost_its_account() {
            panicked_slot.load_again.store(true, Ordering::Release);
        }
    };
    let load = |token: CancellationToken| async move {
        let roll_out = RollOut { host, slot, token };
        // In a box that ends before the probation: a task that only watches is small.
        let load = async {
            if let Some(before) = before {
                before.cancel();
                before.gone().await;
            }
            if shadow::serving_of(&roll_out.slot.name).is_none() {
                roll_out.slot.status.set_shadow(roll_out.host.shadows.of(&roll_out.slot.name));
            }
            roll_out.slot.status.update(|status| {
                status.file = file.path.display().to_string();
                status.component = file.component.display().to_string();
                status.service_account = file.service_account.to_string();
                status.waits_for.clear();
            });
            if let Some(commands) = roll_out.slot.status.commands() {
                commands.declare(file.is_suspended).await;
            }
            roll_out.slot.apply_write_settings(&file).await;
            roll_out.read_quarantine(&file).await;
            roll_out.follow_leader().await;
            roll_out.newest(&file, stamp).await
        };
        if Box::pin(load).await.is_continue() {
            roll_out.watch().await;
        }
    };
    tasks.spawn_contained(format!("loading {name}"), load, on_panic)
}

/// Spawns the task that goes back to the version before the one that serves. It cancels the task before it
/// first, and goes on with its work when it does not go back.
pub(super) fn begin_rollback(
    host: &Arc<Host>,
    slot: &Arc<PluginSlot>,
    file: Arc<PluginFile>,
    before: Task,
    reply: Reply<RolledBack>,
) -> Task {
    let (tasks, name) = (host.tasks.clone(), slot.name.clone());
    let (panicked_host, of) = (host.clone(), name.clone());
    let on_panic = move |message: String| report_panic(&panicked_host, &of, "its rollback", &message);
    let (host, slot) = (host.clone(), slot.clone());
    let go_back = |token: CancellationToken| async move {
        let roll_out = RollOut { host, slot, token };
        let go_back = async {
            let was_busy = !before.is_gone();
            before.cancel();
            before.gone().await;
            roll_out.read_quarantine(&file).await;
            let result = roll_out.go_back("an operator asked for it").await;
            if result.is_err() && was_busy {
                // The version that was being loaded is loaded again.
                roll_out.slot.load_again.store(true, Ordering::Release);
            }
            // The operator may have gone.
            let _ = reply.send(result);
        };
        Box::pin(go_back).await;
        roll_out.watch().await;
    };
    tasks.spawn_contained(format!("rolling back {name}"), go_back, on_panic)
}

/// Prepares a version, and prepares it again for as long as its component is being written.
pub(super) async fn prepare_complete(
    host: &Arc<Host>,
    slot: &Arc<PluginSlot>,
    file: &Arc<PluginFile>,
    mut stamp: Option<Stamp>,
) -> Result<Prepared, prepare::Error> {
    let component = file.component.display().to_string();
    loop {
        let prepared = prepare::prepare(host, slot, file, Origin::Newest).await;
        let unfinished = match &prepared {
            Err(error) if error.may_be_half_written(slot.active.get().is_some()) => error.to_string(),
            _ => return prepared,
        };
        if stamp.is_some_and(|stamp| !stamp.is_younger_than(SETTLED)) {
            return prepared;
        }
        // Another process writes it at this moment. The complete file has another stamp, so that it is read
        // again; only a file that stays as it is is refused.
        slot.status.update(|status| {
            status.waits_for = vec![format!("{component}, which is being written: {unfinished}")];
        });
        let event = HostEvent::ComponentUnfinished { file: component.clone(), message: unfinished };
        host.reporter.about(&slot.name, slot.next_number()).report(event);
        tokio::time::sleep(SETTLED).await;
        let path = file.component.clone();
        let now = host.tasks.blocking(move || Stamp::of(&path)).await.flatten();
        if now == stamp {
            return prepared;
        }
        stamp = now;
    }
}

/// Prepares a version, and switches to it. The token stops the preparation, then this returns `None`.
///
/// Nothing stops a switch that has begun: a version that was put in quarantine must not go on serving, and
/// the task that loads the next version has to know which one serves. So `switch` gets a token of its own,
/// which is never cancelled.
pub(super) async fn prepare_and_switch<P, T, Switched: Future<Output = T>>(
    token: &CancellationToken,
    prepare: impl Future<Output = P>,
    switch: impl FnOnce(P, CancellationToken) -> Switched,
) -> Option<T> {
    let prepared = tokio::select! {
        biased;
        () = token.cancelled() => return None,
        prepared = prepare => prepared,
    };
    // The last poll of the preparation may have taken a while.
    if token.is_cancelled() {
        return None;
    }
    Some(switch(prepared, CancellationToken::new()).await)
}

/// Passes a generation to the dispatcher, and waits until it is active. Returns whether it is. A roll-back
/// puts the generation before in quarantine.
pub(super) async fn switch_to(
    slot: &PluginSlot,
    generation: Generation,
    roll_back: Option<RollBack>,
    token: &CancellationToken,
) -> bool {
    let (mut switch, switched) = Switch::new(generation);
    if let Some(roll_back) = roll_back {
        switch = switch.rolls_back(roll_back);
    }
    let has_switched = pass(&slot.switches, switch, switched, token).await;
    if has_switched && let Some(active) = slot.active.get() {
        active.identity.report_again();
    }
    has_switched
}

/// Passes something to its receiver, unless the token is cancelled, and waits until it is done.
///
/// From then on it belongs to the receiver, and the task that loads the next version has to know whether it
/// is done: this waits even when the token is cancelled. A receiver that ends drops the sender of `done`.
async fn pass<T>(
    receiver: &mpsc::Sender<T>,
    what: T,
    done: oneshot::Receiver<()>,
    token: &CancellationToken,
) -> bool {
    // A clone has a place in the channel. `send` would wait until the receiver has taken it.
    !token.is_cancelled() && receiver.clone().try_send(what).is_ok() && done.await.is_ok()
}

/// Reports and counts a panic of the host in a task that serves one plugin.
pub(super) fn report_panic(host: &Host, plugin: &Arc<str>, doing: &str, message: &str) {
    let message = guest::text::one_line(message);
    host.metrics.panicked(plugin);
    host.statuses.record_error(plugin, &format!("the host panicked in {doing}: {message}"));
    host.reporter.about(plugin, 0).report(HostEvent::PluginPanicked { doing: doing.to_owned(), message });
}

/// Notes the switch where the host's user grants rights, and reports the command that makes the plugin act.
pub(super) async fn report_example(host: &Host, slot: &PluginSlot) {
    let Some(provision) = &host.provision else { return };
    let example = provision.serves(&slot.name).await;
    if let (Some(Example { text, command }), Some(active)) = (example, slot.active.get()) {
        host.reporter.about(&slot.name, active.number).report(HostEvent::PluginExample { text, command });
    }
}

#[cfg(test)]
mod tests;
