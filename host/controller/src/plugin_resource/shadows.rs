//! Fetches the shadows of specs: beside the specs themselves, so that the slow source of a shadow delays no
//! plugin.

use std::time::Duration;

use oarlock_component_source::{CachedComponent, Source};

use super::at_once;
use super::conditions::Stage;
use super::controller::{PluginResources, READ_AGAIN};
use super::definitions::{AtOnce, PluginKey};
use super::record::{FetchedAt, delay_after};
use super::resolve::{Problem, of_fetch};
use super::types::PluginSpec;
use crate::account::Account;
use crate::report::HostEvent;
use crate::shadow;
use crate::status::RefusedFile;

/// What the controller knows about the shadow of one object.
#[derive(Clone)]
pub(super) struct ShadowRecord {
    source: Source,
    account: Account,
    /// The component that the source had when it was asked last.
    fetched: Option<FetchedAt>,
    /// The component that runs as the shadow: that of an earlier source until this one's is fetched.
    pub(super) component: Option<CachedComponent>,
    /// Why the newest component of the source is not there, and in `Ok`, why it is one that was fetched
    /// before.
    pub(super) resolution: Result<Option<Problem>, Problem>,
    /// How often in sequence it could not be fetched.
    n_failures: u32,
}

// === impl ShadowRecord ===

impl ShadowRecord {
    /// Returns what is to be noted of the shadow of a spec: the record of before if it is the same shadow,
    /// else a new one. A component of an earlier source runs on, but never as another account.
    pub(super) fn of(spec: &PluginSpec, account: Account, before: Option<Self>) -> Option<Self> {
        let source = spec.shadow.as_ref()?.source.clone();
        let before = before.filter(|it| it.account == account);
        if let Some(same) = before.as_ref().filter(|it| it.source == source) {
            return Some(same.clone());
        }
        let component = before.and_then(|it| it.component);
        let resolution = Err(not_tried());
        Some(Self { source, account, fetched: None, component, resolution, n_failures: 0 })
    }

    fn is_of(&self, source: &Source, account: &Account) -> bool {
        self.source == *source && self.account == *account
    }

    /// Notes the result of an attempt. Returns when to make the next one.
    fn note(&mut self, result: Result<FetchedAt, Problem>) -> Duration {
        match result {
            Ok(fetched) => {
                self.component = Some(fetched.fetched.component.clone());
                self.resolution = Ok(fetched.fetched.stale.clone().map(of_fetch));
                self.fetched = Some(fetched);
                self.n_failures = 0;
                self.source.poll_interval().map_or(READ_AGAIN, |poll| poll.min(READ_AGAIN))
            }
            Err(problem) => {
                self.resolution = Err(problem);
                self.n_failures = self.n_failures.saturating_add(1);
                delay_after(self.n_failures)
            }
        }
    }
}

/// Returns what stands for the problem of a shadow that was not fetched yet.
fn not_tried() -> Problem {
    let message = "the host has not fetched the component yet".to_owned();
    Problem { stage: Stage::Fetched, reason: "Fetching", message, is_unknown: true }
}

// === impl PluginResources ===

impl PluginResources {
    /// Returns what is to be noted of the shadow of a spec, and queues it if it is to be fetched. Without a
    /// spec, which cannot be read, the shadow of before runs on, unless it is
    /// [gone](Self::forget_shadow_that_is_gone).
    pub(super) fn note_shadow(
        &self,
        key: &PluginKey,
        spec: Option<&PluginSpec>,
        before: Option<ShadowRecord>,
    ) -> Option<ShadowRecord> {
        let Some(spec) = spec else { return before };
        let is_new = |record: &ShadowRecord| {
            before.as_ref().is_none_or(|before| !record.is_of(&before.source, &before.account))
        };
        let record = ShadowRecord::of(spec, self.resolver().account(key, spec), before.clone());
        if record.as_ref().is_some_and(is_new) {
            self.shadows.add(key.clone());
        }
        record
    }

    /// Forgets the shadow of an object whose spec has none any more, or names another account, whether the
    /// rest of the spec can be used or not. Returns whether the shadow is forgotten.
    pub(super) fn forget_shadow_that_is_gone(&self, key: &PluginKey, spec: &AtOnce) -> bool {
        if let Some(record) = self.records.lock().get_mut(key)
            && let Some(shadow) = &record.shadow
        {
            if spec.has_shadow && shadow.account == spec.account {
                return false;
            }
            record.shadow = None;
            record.seen_changes = None;
        }
        self.host.statuses.set_refused_object(&shadow::name_of(&key.host_name()), None);
        true
    }

    /// Does the same for the newest spec, which may wait to be resolved.
    fn has_lost_shadow(&self, key: &PluginKey) -> bool {
        let namespace = self.resolver().host_namespace;
        let spec = self.object(key).and_then(|it| at_once::read(key, &it.json(), namespace));
        spec.is_some_and(|spec| self.forget_shadow_that_is_gone(key, &spec))
    }

    /// Fetches the shadow of one object. Returns when to do it again.
    pub(super) async fn fetch_shadow(&self, key: &PluginKey) -> Option<Duration> {
        if self.has_lost_shadow(key) {
            return None;
        }
        let ShadowRecord { source, account, fetched, .. } = self.records.lock().get(key)?.shadow.clone()?;
        let result = self.resolver().shadow(&source, &account, fetched).await;
        if self.has_lost_shadow(key) {
            return None;
        }
        let (component, before, now, again) = {
            let mut records = self.records.lock();
            let record = records.get_mut(key)?;
            // Another one is queued already.
            let shadow = record.shadow.as_mut().filter(|it| it.is_of(&source, &account))?;
            let before = shadow.resolution.clone();
            let again = shadow.note(result);
            if shadow.resolution != before {
                record.seen_changes = None;
            }
            (shadow.component.clone(), before, shadow.resolution.clone(), again)
        };
        let name = key.host_name();
        let file = || format!("the shadow of {key}");
        let older_version_serves = component.is_some();
        let refused = now.as_ref().err().filter(|_| !older_version_serves);
        let refused = refused.map(|it| RefusedFile { file: file(), message: it.message.clone() });
        self.host.statuses.set_refused_object(&shadow::name_of(&name), refused);
        if let Err(problem) = &now
            && now != before
        {
            self.host.reporter.report(HostEvent::PluginRefused {
                file: file(),
                message: problem.message.clone(),
                hint: None,
                older_version_serves,
            });
        }
        self.definitions.set_shadow(&name, component);
        Some(again)
    }
}
