//! From a prepared version to one that passed its probation, or back to the version before.
//!
//! A version that loses too many instances within its probation is switched back and put in quarantine, if
//! there is a version to go back to: the one before, or the last good one on disk. Without one it stays, and
//! its lost instances are replaced as always.

mod going_back;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_flow_control::clock;
use oarlock_plugin::component::MAX_COMPONENT_BYTES;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::going_back::NotFetched;
use super::load::{prepare_complete, report_example, switch_to};
use super::prepare::{self, Prepared};
use super::rollback::RollbackError;
use super::versions::Version;
use super::{Host, PluginSlot};
use crate::config::{PluginFile, Probation};
use crate::dispatch::{HealthView, RollBack};
use crate::followed::Follower;
use crate::plugin_resource::is_of_object;
use crate::regular_file::{self, Stamp};
use crate::report::HostEvent;
use crate::state_folder;

/// How long after a failure the host loads a plugin again whose active generation has lost its account.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// How long after a failure to fetch a good version the host tries it again.
const FETCH_AGAIN: Duration = Duration::from_secs(60);

/// The work on the versions of one plugin, until the token is cancelled.
pub(super) struct RollOut {
    pub(super) host: Arc<Host>,
    pub(super) slot: Arc<PluginSlot>,
    pub(super) token: CancellationToken,
}

/// A version on probation.
pub(super) struct OnProbation {
    number: u64,
    version: Version,
    health: Follower<HealthView>,
    /// The losses before the period that runs.
    losses_before: u32,
    /// When the period ends; `None` before the first one.
    ends_at: Option<Instant>,
    /// The suspensions of the plugin before the period that runs.
    suspensions: u32,
    is_staged: bool,
}

/// How a period of probation ended.
enum Verdict {
    Passed,
    TooManyLosses(u32),
    /// Another version serves.
    Ended,
}

// === impl RollOut ===

impl RollOut {
    /// Loads the newest version, and watches the probation of the version that serves meanwhile. Continues if
    /// a version that serves now is to be [watched](Self::watch).
    pub(super) async fn newest(&self, file: &Arc<PluginFile>, stamp: Option<Stamp>) -> ControlFlow<()> {
        let Self { host, slot, token } = self;
        let prepare = || Box::pin(prepare_complete(host, slot, file, stamp));
        let mut preparing = prepare();
        let mut watched = slot.on_probation.lock().take();
        let prepared = loop {
            let verdict = tokio::select! {
                biased;
                () = token.cancelled() => {
                    *slot.on_probation.lock() = watched;
                    return ControlFlow::Break(());
                }
                prepared = &mut preparing => break prepared,
                verdict = self.verdict_if_any(watched.as_mut()) => verdict,
            };
            if matches!(verdict, Verdict::TooManyLosses(_)) {
                // One version is prepared at a time. The new one is next.
                preparing = prepare();
            }
            if let Some(watched) = watched.take() {
                self.conclude(watched, verdict).await;
            }
            watched = slot.on_probation.lock().take();
        };
        *slot.on_probation.lock() = watched;
        match prepared {
            Ok(prepared) => drop(self.serve(prepared, false, false, None, token).await),
            Err(prepare::Error::Unchanged) => {
                // The component of an object is a file of the host's cache.
                let of = if is_of_object(&file.path) { &file.path } else { &file.component };
                slot.accept(&host.reporter, of, None);
                slot.status.update(|status| status.settled = Some(file.clone()));
            }
            // The host is ending.
            Err(prepare::Error::Stopped { .. }) => return ControlFlow::Break(()),
            Err(error) => {
                slot.refuse(&host.reporter, file, &error);
                let mut fetch_again = None;
                if slot.active.get().is_none() || slot.has_lost_its_account() {
                    fetch_again = self.serve_last_good(file).await.err().map(|NotFetched| FETCH_AGAIN);
                }
                let again = fetch_again.or_else(|| slot.has_lost_its_account().then_some(AFTER_FAILURE));
                if let Some(delay) = again {
                    tokio::select! {
                        biased;
                        () = token.cancelled() => return ControlFlow::Break(()),
                        () = tokio::time::sleep(delay) => slot.load_again.store(true, Ordering::Release),
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Watches the version on probation, and the one that the host goes back to, until none is on probation.
    pub(super) async fn watch(&self) {
        loop {
            let Some(mut watched) = self.slot.on_probation.lock().take() else { return };
            let verdict = tokio::select! {
                biased;
                () = self.token.cancelled() => None,
                verdict = self.verdict(&mut watched) => Some(verdict),
            };
            match verdict {
                // In a box, so that a task that waits for the verdict is small.
                Some(verdict) => Box::pin(self.conclude(watched, verdict)).await,
                None => {
                    *self.slot.on_probation.lock() = Some(watched);
                    return;
                }
            }
        }
    }

    /// Switches to a version, and begins its probation unless it is good. `is_fallback` says that it is not
    /// the newest one, which stays refused. A roll-back puts the version before in quarantine. The token
    /// stops it before the switch has begun.
    async fn serve(
        &self,
        prepared: Prepared,
        is_fallback: bool,
        is_good: bool,
        roll_back: Option<RollBack>,
        token: &CancellationToken,
    ) -> Option<Version> {
        let Self { host, slot, .. } = self;
        let Prepared { generation, made_of, component, id } = prepared;
        let (number, health) = (generation.number, generation.health.follow());
        let version = Version {
            id,
            file: made_of.file.clone(),
            component,
            stated: generation.version.clone(),
            is_good,
        };
        if !switch_to(slot, generation, roll_back, token).await {
            return None;
        }
        let settled = (!is_fallback).then(|| made_of.file.clone());
        *slot.made_of.lock() = Some(made_of);
        if !is_fallback {
            *slot.refused.lock() = None;
        }
        let refused = slot.refused.lock().clone();
        slot.status.update(|status| {
            status.refused = refused;
            status.settled = settled.or_else(|| status.settled.take());
        });
        slot.versions.lock().switched(version.clone());
        *slot.on_probation.lock() = Some(OnProbation {
            number,
            version: version.clone(),
            health,
            losses_before: 0,
            ends_at: None,
            suspensions: slot.suspension.get().times,
            is_staged: false,
        });
        report_example(host, slot).await;
        Some(version)
    }

    async fn verdict_if_any(&self, watched: Option<&mut OnProbation>) -> Verdict {
        match watched {
            Some(watched) => self.verdict(watched).await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the end of the period that runs. Cancel-safe. On standby and while the plugin is suspended,
    /// where nothing is called, no period begins, and a suspension ends one without a verdict.
    async fn verdict(&self, watched: &mut OnProbation) -> Verdict {
        let suspension = &self.slot.suspension;
        loop {
            self.host.dispatch.leadership.led().await;
            let Some(now) = suspension.wait_for(|it| !it.is_suspended).await else {
                return Verdict::Ended;
            };
            if std::mem::replace(&mut watched.suspensions, now.times) != now.times {
                watched.losses_before = watched.health.get().losses;
                watched.ends_at = None;
            }
            tokio::select! {
                biased;
                verdict = self.verdict_of_period(watched) => return verdict,
                Some(_) = suspension.wait_for(|it| it.times != now.times) => {}
            }
        }
    }

    async fn verdict_of_period(&self, watched: &mut OnProbation) -> Verdict {
        let Probation { time, max_losses } = watched.version.file.probation;
        // In boxes, so that a task that waits for the end of the period is small.
        if watched.ends_at.is_none() && Box::pin(self.is_good(&watched.version)).await {
            return Verdict::Passed;
        }
        if !watched.is_staged && watched.ends_at.is_none() {
            watched.is_staged = Box::pin(self.stage(&watched.version)).await;
        }
        if time.is_zero() {
            return Verdict::Passed;
        }
        self.slot.generations.began_probation(watched.number);
        let ends_at = *watched.ends_at.get_or_insert_with(|| clock::after(Instant::now(), time));
        let most = watched.losses_before.saturating_add(max_losses);
        tokio::select! {
            biased;
            health = watched.health.wait_for(|health| health.losses > most) => match health {
                Some(health) => Verdict::TooManyLosses(health.losses),
                None => Verdict::Ended,
            },
            () = tokio::time::sleep_until(ends_at) => Verdict::Passed,
        }
    }

    /// Applies the end of a period: the version is kept, or the host goes back. Without a version to go back
    /// to, another period begins.
    async fn conclude(&self, mut watched: OnProbation, verdict: Verdict) {
        let Self { host, slot, .. } = self;
        let losses = match verdict {
            Verdict::Ended => return,
            Verdict::Passed => {
                slot.generations.passed_probation(watched.number);
                slot.versions.lock().passed(watched.version.id);
                // A version that is kept already was not staged.
                if watched.is_staged {
                    let state = host.state.clone();
                    let quarantine = slot.quarantine.lock().clone().unwrap_or_default();
                    let promote =
                        move || state.promote(watched.version.id, &watched.version.file, &quarantine);
                    let promoted = host.tasks.blocking(promote).await;
                    self.report_trouble(promoted.and_then(Result::err));
                }
                return;
            }
            Verdict::TooManyLosses(losses) => losses,
        };
        let time = watched.version.file.probation.time;
        let n_lost = losses - watched.losses_before;
        let instances = if n_lost == 1 { "instance" } else { "instances" };
        let message = format!("it lost {n_lost} {instances} within {} s", time.as_secs_f64());
        match self.go_back(&message).await {
            Ok(_) => return,
            Err(RollbackError::Failed { message: error, hint }) => {
                let message = format!("{message}, and the version before cannot be loaded: {error}");
                self.report(HostEvent::version_before_refused(message, hint));
            }
            // A newer version is loaded: its task goes on with this.
            Err(RollbackError::Interrupted) => {
                slot.on_probation.lock().get_or_insert(watched);
                return;
            }
            Err(_) => {}
        }
        watched.losses_before = losses;
        watched.ends_at = Some(clock::after(Instant::now(), time));
        slot.on_probation.lock().get_or_insert(watched);
    }

    /// Returns whether a version needs no probation: it passed it already, perhaps before a restart.
    async fn is_good(&self, version: &Version) -> bool {
        let Self { host, slot, .. } = self;
        let (state, of, before) = (host.state.clone(), version.clone(), slot.versions.lock().before());
        let _turn = host.state.turn().await;
        let check = move || {
            // The host may need the code of both.
            of.component.keep_code();
            before.iter().for_each(|before| before.component.keep_code());
            of.is_good || state.is_last_good(of.id, &of.file)
        };
        host.tasks.blocking(check).await.unwrap_or(false)
    }

    /// Keeps a version in the folder for state, for when it passes its probation. Returns whether it is kept.
    async fn stage(&self, version: &Version) -> bool {
        let (state, version) = (self.host.state.clone(), version.clone());
        if !state.keeps() {
            return false;
        }
        let _turn = self.host.state.turn().await;
        let stage = move || {
            let Version { file, component, stated, .. } = version;
            let bytes = regular_file::read(&file.component, MAX_COMPONENT_BYTES as u64).ok()?;
            // A newer component is another version.
            let is_same = oarlock_plugin::component::Digest::of(&bytes) == component.digest();
            is_same.then(|| state.stage(&file, &stated, component.digest(), &bytes))
        };
        match self.host.tasks.blocking(stage).await.flatten() {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                self.report_trouble(Some(error));
                false
            }
            None => false,
        }
    }

    pub(super) fn report_trouble(&self, error: Option<state_folder::Error>) {
        if let Some(error) = error {
            self.report(HostEvent::state_trouble(&error));
        }
    }

    fn report(&self, event: HostEvent) {
        let number = self.slot.active.get().map_or_else(|| self.slot.next_number(), |active| active.number);
        self.host.reporter.about(&self.slot.name, number).report(event);
    }
}
