//! From a prepared version to one that passed its probation, or back to the version before.
//!
//! A version that loses too many instances within its probation is switched back and put in quarantine, if
//! there is a version to go back to: the one before, or the last good one on disk. Without one it stays, and
//! its lost instances are replaced as always.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_flow_control::clock;
use oarlock_plugin::component::MAX_COMPONENT_BYTES;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::load::{prepare_and_switch, prepare_complete, report_example, switch_to};
use super::prepare::{self, Origin, Prepared};
use super::rollback::{RollbackError, RolledBack};
use super::versions::Version;
use super::{Host, PluginSlot};
use crate::config::{PluginFile, Probation};
use crate::dispatch::HealthView;
use crate::generations::GenerationState;
use crate::regular_file::{self, Stamp};
use crate::report::{HostEvent, Timestamp};
use crate::state_folder::{self, LastGood};
use crate::status::RecordedError;

/// How long after a failure the host loads a plugin again whose active generation has lost its account.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

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
    health: watch::Receiver<HealthView>,
    /// The losses before the period that runs.
    losses_before: u32,
    /// When the period ends; `None` before the first one.
    ends_at: Option<Instant>,
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
    /// Reads which versions of the plugin are in quarantine, once.
    pub(super) async fn read_quarantine(&self, file: &PluginFile) {
        if self.slot.quarantine.lock().is_some() {
            return;
        }
        let (state, name, path) = (self.host.state.clone(), self.slot.name.clone(), file.path.clone());
        let read = self.host.tasks.blocking(move || state.quarantine(&name, &path)).await;
        let Some((quarantine, error)) = read else { return };
        self.report_trouble(error);
        // Another task may have read it, and added to it, meanwhile.
        self.slot.quarantine.lock().get_or_insert(quarantine);
    }

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
            Ok(prepared) => drop(self.serve(prepared, false, false, token).await),
            Err(prepare::Error::Unchanged) => slot.accept(&host.reporter, &file.component, None),
            // The host is ending.
            Err(prepare::Error::Stopped { .. }) => return ControlFlow::Break(()),
            Err(error) => {
                slot.refuse(&host.reporter, file, &error);
                if slot.active.get().is_none() || slot.has_lost_its_account() {
                    self.serve_last_good(file).await;
                }
                if slot.has_lost_its_account() {
                    tokio::select! {
                        biased;
                        () = token.cancelled() => return ControlFlow::Break(()),
                        () = tokio::time::sleep(AFTER_FAILURE) => slot.load_again.store(true, Ordering::Release),
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

    /// Loads the version that can serve while the newest one cannot: the one that serves for an account that
    /// is gone, or the last good one.
    async fn serve_last_good(&self, newest: &PluginFile) {
        prepare_and_switch(&self.token, self.prepare_last_good(newest), |found, token| async move {
            if let Some((prepared, is_good)) = found {
                self.serve(prepared, true, is_good, &token).await;
            }
        })
        .await;
    }

    /// Prepares that version. Returns with it whether it needs no probation.
    async fn prepare_last_good(&self, newest: &PluginFile) -> Option<(Prepared, bool)> {
        let Self { host, slot, .. } = self;
        let serving = slot.versions.lock().serving.clone();
        let (file, origin, is_good) = match serving {
            Some(Version { file, component, is_good, .. }) => (file, Origin::Before(component), is_good),
            None => {
                let LastGood { file, version, digest, bytes } = self.read_last_good(newest, |_| true).await?;
                let event = HostEvent::PluginLastGood { version, digest: digest.to_string() };
                host.reporter.about(&slot.name, slot.next_number()).report(event);
                (Arc::new(file), Origin::LastGood(bytes), true)
            }
        };
        // The operator's newest word on writes counts, whichever version serves.
        let file = with_suspend(file, newest.suspend);
        match prepare::prepare(host, slot, &file, origin).await {
            Ok(prepared) => Some((prepared, is_good)),
            Err(error) => {
                let message = format!("the last good version cannot be loaded: {error}");
                slot.generations.fail(GenerationState::Failed, &message);
                slot.status.update(|status| status.waits_for.clear());
                self.report(HostEvent::StateTrouble { message });
                None
            }
        }
    }

    /// Goes back to the version before the one that serves, which is put in quarantine.
    pub(super) async fn go_back(&self, message: &str) -> Result<RolledBack, RollbackError> {
        let Self { host, slot, token } = self;
        let serving = slot.versions.lock().serving.clone().ok_or(RollbackError::NothingServes)?;
        let from = slot.active.get().ok_or(RollbackError::NothingServes)?.number;
        let before = slot.versions.lock().before().filter(|before| !slot.is_quarantined(before.id));
        let (file, origin, is_good) = match before {
            Some(Version { file, component, is_good, .. }) => (file, Origin::Before(component), is_good),
            None => {
                let left = serving.id;
                let found = self.read_last_good(&serving.file, move |id| id != left).await;
                let LastGood { file, bytes, .. } = found.ok_or(RollbackError::NothingToGoBackTo)?;
                (Arc::new(file), Origin::LastGood(bytes), true)
            }
        };
        let file = with_suspend(file, serving.file.suspend);
        let prepare = prepare::prepare(host, slot, &file, origin);
        let switch = |prepared: Result<Prepared, prepare::Error>, token| async move {
            let prepared = prepared.map_err(|error| {
                slot.generations.fail(GenerationState::Failed, &error.to_string());
                slot.status.update(|status| status.waits_for.clear());
                RollbackError::Failed(error.to_string())
            })?;
            self.leave(serving, from, prepared, is_good, message, &token).await
        };
        let switched = prepare_and_switch(token, prepare, switch).await;
        switched.unwrap_or(Err(RollbackError::Interrupted))
    }

    /// Puts the version that serves in quarantine, and switches to a prepared one.
    async fn leave(
        &self,
        serving: Version,
        from: u64,
        prepared: Prepared,
        is_good: bool,
        message: &str,
        token: &CancellationToken,
    ) -> Result<RolledBack, RollbackError> {
        let Self { host, slot, .. } = self;
        let Prepared { generation, component, .. } = &prepared;
        let result = RolledBack {
            from,
            to_version: generation.version.clone(),
            to_digest: component.digest().to_string(),
        };
        let digest = serving.component.digest().to_string();
        self.quarantine(&serving, message).await;
        slot.generations.quarantine(from, message);
        let refused = format!("version {} ({digest}) was rolled back: {message}", serving.stated);
        *slot.refused.lock() = Some(RecordedError { time: Timestamp::now(), message: refused });
        host.reporter.about(&slot.name, from).report(HostEvent::PluginRolledBack {
            version: serving.stated.clone(),
            digest,
            message: message.to_owned(),
            to_version: result.to_version.clone(),
            to_digest: result.to_digest.clone(),
        });
        let version = self.serve(prepared, true, is_good, token).await;
        let version = version.ok_or(RollbackError::Interrupted)?;
        slot.versions.lock().went_back(version);
        Ok(result)
    }

    /// Switches to a version, and begins its probation unless it is good. `is_fallback` says that it is not
    /// the newest one, which stays refused. The token stops it before the switch has begun.
    async fn serve(
        &self,
        prepared: Prepared,
        is_fallback: bool,
        is_good: bool,
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
        if !switch_to(slot, generation, token).await {
            return None;
        }
        *slot.made_of.lock() = Some(made_of);
        if !is_fallback {
            *slot.refused.lock() = None;
        }
        let refused = slot.refused.lock().clone();
        slot.status.update(|status| status.refused = refused);
        slot.versions.lock().switched(version.clone());
        *slot.on_probation.lock() = Some(OnProbation {
            number,
            version: version.clone(),
            health,
            losses_before: 0,
            ends_at: None,
            is_staged: false,
        });
        report_example(host, slot);
        Some(version)
    }

    async fn verdict_if_any(&self, watched: Option<&mut OnProbation>) -> Verdict {
        match watched {
            Some(watched) => self.verdict(watched).await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the end of the period that runs. Cancel-safe.
    async fn verdict(&self, watched: &mut OnProbation) -> Verdict {
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
        self.slot.generations.set_on_probation(watched.number, true);
        let ends_at = *watched.ends_at.get_or_insert_with(|| clock::after(Instant::now(), time));
        let most = watched.losses_before.saturating_add(max_losses);
        tokio::select! {
            biased;
            health = watched.health.wait_for(|health| health.losses > most) => match health {
                Ok(health) => Verdict::TooManyLosses(health.losses),
                Err(_) => Verdict::Ended,
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
                slot.generations.set_on_probation(watched.number, false);
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
        let message =
            format!("it lost {} instances within {} s", losses - watched.losses_before, time.as_secs_f64());
        match self.go_back(&message).await {
            Ok(_) => return,
            Err(RollbackError::Failed(error)) => {
                let message = format!("{message}, and the version before cannot be loaded: {error}");
                self.report(HostEvent::StateTrouble { message });
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

    async fn read_last_good(
        &self,
        file: &PluginFile,
        may_be_used: impl Fn(state_folder::VersionId) -> bool + Send + 'static,
    ) -> Option<LastGood> {
        let Self { host, slot, .. } = self;
        let (state, name, path) = (host.state.clone(), slot.name.clone(), file.path.clone());
        let quarantine = slot.quarantine.lock().clone().unwrap_or_default();
        let read =
            move || state.last_good(&name, &path, |id| quarantine.find(id).is_none() && may_be_used(id));
        let (found, errors) = host.tasks.blocking(read).await?;
        errors.into_iter().for_each(|error| self.report_trouble(Some(error)));
        found
    }

    async fn quarantine(&self, version: &Version, reason: &str) {
        let Self { host, slot, .. } = self;
        let quarantine = {
            let mut quarantine = slot.quarantine.lock();
            let quarantine = quarantine.get_or_insert_default();
            let digest = version.component.digest().to_string();
            quarantine.add(version.id, &version.stated, &digest, reason, Timestamp::now().to_string());
            quarantine.clone()
        };
        let saved = host.tasks.blocking(move || quarantine.save()).await;
        self.report_trouble(saved.and_then(Result::err));
    }

    fn report_trouble(&self, error: Option<state_folder::Error>) {
        if let Some(error) = error {
            self.report(HostEvent::StateTrouble { message: error.to_string() });
        }
    }

    fn report(&self, event: HostEvent) {
        let number = self.slot.active.get().map_or_else(|| self.slot.next_number(), |active| active.number);
        self.host.reporter.about(&self.slot.name, number).report(event);
    }
}

/// Returns the settings of a version, with its writes suspended or not.
fn with_suspend(mut file: Arc<PluginFile>, suspend: bool) -> Arc<PluginFile> {
    if file.suspend != suspend {
        Arc::make_mut(&mut file).suspend = suspend;
    }
    file
}
