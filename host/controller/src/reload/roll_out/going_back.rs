//! The way back to an earlier version: the one before, or the last good one on disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use oarlock_plugin::component::{Digest, MAX_COMPONENT_BYTES};
use tokio_util::sync::CancellationToken;

use super::super::load::prepare_and_switch;
use super::super::prepare::{self, Origin, Prepared};
use super::super::rollback::{RollbackError, RolledBack};
use super::super::versions::Version;
use super::RollOut;
use crate::config::PluginFile;
use crate::dispatch::RollBack;
use crate::generations::GenerationState;
use crate::plugin_resource::{StatedVersion, is_of_object};
use crate::regular_file;
use crate::report::{HostEvent, Timestamp};
use crate::state_folder::{LastGood, VersionId};
use crate::status::RecordedError;

/// A good version cannot be fetched now, and perhaps later.
pub(super) struct NotFetched;

// === impl RollOut ===

impl RollOut {
    /// Loads the version that can serve while the newest one cannot: the one that serves for an account that
    /// is gone, or the last good one.
    pub(super) async fn serve_last_good(&self, newest: &PluginFile) -> Result<(), NotFetched> {
        let switch = |found: Result<Option<(Prepared, bool)>, NotFetched>, token| async move {
            if let Some((prepared, is_good)) = found? {
                self.serve(prepared, true, is_good, None, &token).await;
            }
            Ok(())
        };
        let served = prepare_and_switch(&self.token, self.prepare_last_good(newest), switch).await;
        served.unwrap_or(Ok(()))
    }

    /// Prepares that version. Returns with it whether it needs no probation.
    async fn prepare_last_good(&self, newest: &PluginFile) -> Result<Option<(Prepared, bool)>, NotFetched> {
        let Self { host, slot, .. } = self;
        let serving = slot.versions.lock().serving.clone();
        let (file, origin, is_good) = match serving {
            Some(Version { file, component, is_good, .. }) => (file, Origin::Before(component), is_good),
            None => {
                let found = self.last_good(newest, None).await.map_err(|message| {
                    self.report(HostEvent::version_before_refused(message, None));
                    NotFetched
                })?;
                let Some(LastGood { file, version, digest, bytes, has_passed }) = found else {
                    return Ok(None);
                };
                let event = HostEvent::PluginLastGood { version, digest: digest.to_string(), has_passed };
                host.reporter.about(&slot.name, slot.next_number()).report(event);
                (Arc::new(file), Origin::LastGood(bytes), has_passed)
            }
        };
        let file = without_suspension(file);
        match prepare::prepare(host, slot, &file, origin).await {
            Ok(prepared) => Ok(Some((prepared, is_good))),
            Err(error) => {
                let message = format!("the last good version cannot be loaded: {error}");
                slot.generations.fail(GenerationState::Failed, &message);
                slot.status.update(|status| status.waits_for.clear());
                self.report(HostEvent::version_before_refused(message, error.hint(&slot.name)));
                Ok(None)
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
                let found = self.last_good(&serving.file, Some(serving.id)).await;
                let found = found.map_err(|message| RollbackError::Failed { message, hint: None })?;
                let Some(LastGood { file, bytes, has_passed, .. }) = found else {
                    let is_back = slot.versions.lock().is_back();
                    return Err(match is_back {
                        true => RollbackError::IsBack,
                        false => RollbackError::NothingToGoBackTo,
                    });
                };
                (Arc::new(file), Origin::LastGood(bytes), has_passed)
            }
        };
        let file = without_suspension(file);
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

    /// Returns the newest good version that is neither in quarantine nor the one that is left: of the folder
    /// for state, else one that the status of the plugin's object names. Without any, returns the version
    /// that was on probation when the host ended: it has to pass one. The error says why a version that the
    /// object names cannot be had.
    async fn last_good(
        &self,
        file: &PluginFile,
        left: Option<VersionId>,
    ) -> Result<Option<LastGood>, String> {
        let Self { host, slot, .. } = self;
        let of = || (host.state.clone(), slot.name.clone(), file.path.clone());
        let quarantine = slot.quarantine.lock().clone().unwrap_or_default();
        let mut unwanted: BTreeSet<_> = quarantine.entries().iter().map(|it| it.id.clone()).collect();
        unwanted.extend(left.map(|id| id.to_string()));
        let may_be_used = {
            let unwanted = unwanted.clone();
            move |id: VersionId| !unwanted.contains(&id.to_string())
        };
        let ((state, name, path), is_wanted) = (of(), may_be_used.clone());
        let read = move || state.last_good(&name, &path, is_wanted);
        let Some((found, errors)) = host.tasks.blocking(read).await else { return Ok(None) };
        errors.into_iter().for_each(|error| self.report_trouble(Some(error)));
        if found.is_some() {
            return Ok(found);
        }
        if is_of_object(&file.path) {
            let stated = self.stated(file, unwanted).await?;
            if stated.is_some() {
                return Ok(stated);
            }
        }
        let (state, name, path) = of();
        let found = host.tasks.blocking(move || state.on_probation(&name, &path, may_be_used)).await;
        Ok(found.and_then(|found| found.map_err(|error| self.report_trouble(Some(error))).ok()).flatten())
    }

    /// Returns a version that the status of the plugin's object names, save for the unwanted ones.
    async fn stated(
        &self,
        file: &PluginFile,
        unwanted: BTreeSet<String>,
    ) -> Result<Option<LastGood>, String> {
        let Self { host, slot, .. } = self;
        let fetched = host.good_versions.fetch(&slot.name, unwanted).await;
        let not_fetched = |why: String| {
            format!("a version that passed its probation on another host cannot be fetched: {why}")
        };
        // A version of another object, or of another account, is never gone back to.
        let Some(stated) = fetched.map_err(not_fetched)?.filter(|it| it.file.path == file.path) else {
            return Ok(None);
        };
        let read = move || {
            let StatedVersion { file, version, component } = stated;
            let bytes = regular_file::read(component.path(), MAX_COMPONENT_BYTES as u64)?;
            Ok(LastGood { file, version, digest: Digest::of(&bytes), bytes, has_passed: true })
        };
        let read: Option<Result<_, regular_file::Error>> = host.tasks.blocking(read).await;
        read.transpose().map_err(|error| not_fetched(error.to_string()))
    }
}

/// Returns the settings of a version that is gone back to: the newest file alone says whether its writes are
/// suspended.
fn without_suspension(mut file: Arc<PluginFile>) -> Arc<PluginFile> {
    if file.suspend_writes {
        Arc::make_mut(&mut file).suspend_writes = false;
    }
    file
}
