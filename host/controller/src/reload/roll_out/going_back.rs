//! The way back to an earlier version: the one before, or the last good one on disk.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::load::prepare_and_switch;
use super::super::prepare::{self, Origin, Prepared};
use super::super::rollback::{RollbackError, RolledBack};
use super::super::versions::Version;
use super::RollOut;
use crate::config::PluginFile;
use crate::dispatch::RollBack;
use crate::generations::GenerationState;
use crate::report::{HostEvent, Timestamp};
use crate::state_folder::{self, LastGood};
use crate::status::RecordedError;

// === impl RollOut ===

impl RollOut {
    /// Loads the version that can serve while the newest one cannot: the one that serves for an account that
    /// is gone, or the last good one.
    pub(super) async fn serve_last_good(&self, newest: &PluginFile) {
        prepare_and_switch(&self.token, self.prepare_last_good(newest), |found, token| async move {
            if let Some((prepared, is_good)) = found {
                self.serve(prepared, true, is_good, None, &token).await;
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
        let file = with_brakes(file, newest);
        match prepare::prepare(host, slot, &file, origin).await {
            Ok(prepared) => Some((prepared, is_good)),
            Err(error) => {
                let message = format!("the last good version cannot be loaded: {error}");
                slot.generations.fail(GenerationState::Failed, &message);
                slot.status.update(|status| status.waits_for.clear());
                self.report(HostEvent::version_before_refused(message, error.hint(&slot.name)));
                None
            }
        }
    }

    /// Goes back to the version before the one that serves, which is put in quarantine.
    pub(in super::super) async fn go_back(&self, message: &str) -> Result<RolledBack, RollbackError> {
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
        let file = with_brakes(file, &serving.file);
        let prepare = prepare::prepare(host, slot, &file, origin);
        let switch = |prepared: Result<Prepared, prepare::Error>, token| async move {
            let prepared = prepared.map_err(|error| {
                slot.generations.fail(GenerationState::Failed, &error.to_string());
                slot.status.update(|status| status.waits_for.clear());
                RollbackError::Failed { message: error.to_string(), hint: error.hint(&slot.name) }
            })?;
            self.leave(serving, from, prepared, is_good, message, &token).await
        };
        let switched = prepare_and_switch(token, prepare, switch).await;
        switched.unwrap_or(Err(RollbackError::Interrupted))
    }

    /// Puts the version that serves in quarantine, and switches to a prepared one. Nothing is reported before
    /// the switch is made.
    async fn leave(
        &self,
        serving: Version,
        from: u64,
        prepared: Prepared,
        is_good: bool,
        message: &str,
        token: &CancellationToken,
    ) -> Result<RolledBack, RollbackError> {
        let Self { slot, .. } = self;
        let Prepared { generation, component, .. } = &prepared;
        let result = RolledBack {
            from,
            to_version: generation.version.clone(),
            to_digest: component.digest().to_string(),
        };
        let digest = serving.component.digest().to_string();
        // The verdict is on disk before the switch. A host that dies in between reads at its next start that
        // this version is not tried, and serves the last good one; else it would try the bad version at each
        // start. The verdict stays if the switch is not made: the plugin is unloaded, the host ends, or a bug
        // of the host made the dispatcher refuse it.
        self.quarantine(&serving, message).await;
        let event = HostEvent::PluginRolledBack {
            version: serving.stated.clone(),
            digest: digest.clone(),
            message: message.to_owned(),
            to_version: result.to_version.clone(),
            to_digest: result.to_digest.clone(),
        };
        // What people read says what has happened: the dispatcher reports the roll-back with the switch,
        // before it calls the other version, and the rest follows.
        let roll_back = RollBack { reason: message.to_owned(), event };
        let version = self.serve(prepared, true, is_good, Some(roll_back), token).await;
        let version = version.ok_or(RollbackError::Interrupted)?;
        let refused = format!("version {} ({digest}) was rolled back: {message}", serving.stated);
        let refused = RecordedError { time: Timestamp::now(), message: refused };
        *slot.refused.lock() = Some(refused.clone());
        slot.status.update(|status| status.refused = Some(refused));
        slot.versions.lock().went_back(version);
        Ok(result)
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
}

/// Returns the settings of a version, with its writes suspended as those of another one, and sent as dry runs
/// if those of either are.
fn with_brakes(mut file: Arc<PluginFile>, other: &PluginFile) -> Arc<PluginFile> {
    let dry_run = file.dry_run || other.dry_run;
    if (file.suspend_writes, file.dry_run) != (other.suspend_writes, dry_run) {
        let file = Arc::make_mut(&mut file);
        file.suspend_writes = other.suspend_writes;
        file.dry_run = dry_run;
    }
    file
}
