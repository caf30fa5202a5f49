//! Writes the statuses of all objects when they change.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::jiff;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::conditions::Stage;
use super::controller::PluginResources;
use super::definitions::PluginKey;
use super::good_versions;
use super::record::{Attempt, Record};
use super::resolve::Problem;
use super::shadow_status::Shadow;
use super::status_writer::{Error, StatusWriter, Subject, View, status_of};
use super::types::PluginStatus;
use crate::config::PluginFile;
use crate::report::HostEvent;
use crate::shadow;
use crate::status::{self, PluginStatusHandle};

/// How often statuses are compared with what was written. At most one write for an object in this time.
const LOOK: Duration = Duration::from_secs(1);

/// One of so many looks compares all statuses: work may be parked, and writes compared with those of a
/// shadow, without a change of the host's status.
const LOOKS_PER_WHOLE_LOOK: u64 = 10;

/// How many statuses are written at once, so that a slow write delays few others.
const AT_ONCE: usize = 8;

/// How long after a write the cache may not have it yet.
const SETTLES: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct ReadStatus {
    #[serde(default)]
    status: PluginStatus,
}

#[derive(Deserialize)]
struct ReadSpec {
    spec: Map<String, Value>,
}

/// Returns the status that an object has.
pub(super) fn read(json: &str) -> Option<PluginStatus> {
    serde_json::from_str::<ReadStatus>(json).ok().map(|it| it.status)
}

// === impl PluginResources ===

impl PluginResources {
    /// Writes the statuses that have changed, until it is dropped. On standby it writes none.
    pub(super) async fn write_statuses(&self, writer: &StatusWriter) {
        self.host.dispatch.leadership.led().await;
        self.read_statuses();
        for n_looks in 1_u64.. {
            tokio::time::sleep(LOOK).await;
            let is_whole = n_looks.is_multiple_of(LOOKS_PER_WHOLE_LOOK);
            let keys: Vec<_> = self.records.lock().keys().cloned().collect();
            let write = |key| async move { self.write_status(writer, &key, is_whole).await };
            stream::iter(keys).for_each_concurrent(AT_ONCE, write).await;
        }
    }

    /// Reads the statuses that the objects have now: another leader has written them meanwhile.
    fn read_statuses(&self) {
        let keys: Vec<_> = self.records.lock().keys().cloned().collect();
        for key in keys {
            let read = self.object(&key).and_then(|object| read(&object.json()));
            if let (Some(read), Some(record)) = (read, self.records.lock().get_mut(&key)) {
                record.written = read;
                record.seen_changes = None;
                record.seen_good = None;
            }
        }
    }

    /// Notes that another client has changed a status, so that it is written again.
    fn note_changed_by_others(&self, key: &PluginKey) {
        let Some(object) = self.object(key) else { return };
        let mut records = self.records.lock();
        let Some(record) = records.get_mut(key).filter(|it| *it.uid == *object.uid()) else { return };
        if record.writes.last.is_some_and(|last| last.elapsed() < SETTLES) {
            return;
        }
        if let Some(read) = read(&object.json()).filter(|read| !says_the_same(read, &record.written)) {
            record.written = read;
            record.seen_good = None;
        }
    }

    /// Returns the spec that an object has, if it is still the one that the subject is about.
    fn spec(&self, subject: &Subject<'_>) -> Option<Map<String, Value>> {
        let object = self.object(subject.key)?;
        let is_it = *object.uid() == *subject.uid && object.generation() == subject.generation;
        serde_json::from_str::<ReadSpec>(&object.json()).ok().filter(|_| is_it).map(|it| it.spec)
    }

    /// Writes the status of one object if it changed. Only a whole look sees what changes with every event.
    async fn write_status(&self, writer: &StatusWriter, key: &PluginKey, is_whole: bool) {
        if is_whole {
            self.note_changed_by_others(key);
        }
        let name = key.host_name();
        let handle = self.host.statuses.handle(&name);
        let handle_of_shadow = self.host.statuses.handle(&shadow::name_of(&name));
        let handles = [&handle, &handle_of_shadow];
        let n_changes: u64 = handles.into_iter().flatten().map(PluginStatusHandle::n_changes).sum();
        {
            let mut records = self.records.lock();
            let Some(record) = records.get_mut(key).filter(|it| it.writes.may_begin()) else { return };
            if record.seen_changes.replace(n_changes) == Some(n_changes) && !is_whole {
                return;
            }
        }
        let path = key.path();
        // A plugin file may have the same name.
        let is_of_object = |it: &status::PluginStatus| Path::new(&it.file).starts_with(&path);
        let mut loaded = handle.map(|handle| handle.snapshot()).filter(is_of_object);
        let mut loaded_shadow = handle_of_shadow.map(|handle| handle.snapshot()).filter(is_of_object);
        let definition = self.definitions.get(&name);
        if definition.is_none() {
            // They are being unloaded.
            loaded = None;
            loaded_shadow = None;
        }
        let taken = if loaded.is_none() { self.host.statuses.why_refused(&path) } else { None };
        let (uid, generation, written, status) = {
            let mut records = self.records.lock();
            let Some(record) = records.get_mut(key) else { return };
            let Record { uid, generation, resolution, shadow, written, seen_good, .. } = record;
            let subject = Subject { key, uid, generation: *generation };
            let taken = taken.filter(|_| resolution.is_ok()).map(|message| Err(name_taken(message)));
            let resolution = taken.as_ref().unwrap_or(&*resolution);
            if let (Ok(resolved), Some(loaded)) = (resolution, &mut loaded) {
                hide_path(loaded, &resolved.component.path().to_string_lossy());
            }
            let component_of_shadow = shadow.as_ref().and_then(|it| it.component.as_ref());
            if let (Some(component), Some(loaded)) = (component_of_shadow, &mut loaded_shadow) {
                hide_path(loaded, &component.path().to_string_lossy());
            }
            let view = View {
                resolution,
                loaded: loaded.as_ref(),
                definition: definition.as_deref(),
                shadow: shadow.as_ref().map(|record| Shadow {
                    record,
                    loaded: loaded_shadow.as_ref(),
                    comparison: loaded.as_ref().and_then(|it| it.shadow.as_deref()),
                    with_numbers: is_whole,
                }),
            };
            let mut status = status_of(&subject, &view, written, jiff::Timestamp::now());
            let is_seen = |it: &Arc<PluginFile>| seen_good.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, it));
            if !definition.as_ref().is_some_and(is_seen)
                && let Some(versions) = good_versions::after(written, &view, || self.spec(&subject))
            {
                if versions == written.good_versions {
                    seen_good.clone_from(&definition);
                }
                status.good_versions = versions;
            }
            if status == *written {
                return;
            }
            (uid.clone(), *generation, written.clone(), status)
        };
        let subject = Subject { key, uid: &uid, generation };
        // Another host that leads writes it.
        let write = writer.write(&subject, &written, &status);
        let Ok(result) = self.host.dispatch.leadership.fenced(write).await else { return };
        let attempt = match &result {
            Ok(()) => Attempt::Written,
            // 409: another object has the name.
            Err(Error::Kube(kube::Error::Api(error))) if matches!(error.code, 404 | 409) => Attempt::NotFound,
            Err(_) => Attempt::Failed,
        };
        let mut reports = false;
        if let Some(record) = self.records.lock().get_mut(key).filter(|record| record.uid == uid) {
            reports = record.writes.ended(attempt);
            if attempt == Attempt::Written {
                record.written = status;
            } else {
                record.seen_changes = None;
            }
        }
        if let Err(error) = result
            && reports
        {
            let message = format!("the status of {key}: {}", crate::chain::text(&error));
            self.host.reporter.report(HostEvent::StatusNotWritten { message });
        }
    }
}

fn name_taken(message: String) -> Problem {
    Problem { stage: Stage::Ready, reason: "NameTaken", message, is_unknown: false }
}

/// Returns whether two statuses have the same phase, and conditions with the same statuses and reasons. A
/// definition of an older version may not store the rest.
fn says_the_same(one: &PluginStatus, other: &PluginStatus) -> bool {
    let summary = |it: &PluginStatus| {
        let conditions = it.conditions.iter();
        let conditions = conditions.map(|it| (it.type_.clone(), it.status.clone(), it.reason.clone()));
        (it.phase.clone(), conditions.collect::<Vec<_>>())
    };
    summary(one) == summary(other)
}

/// Removes the path of the component from all texts: it is a path of the host.
fn hide_path(status: &mut status::PluginStatus, path: &str) {
    let errors =
        [&mut status.refused, &mut status.last_error].into_iter().flatten().map(|it| &mut it.message);
    let reasons = status.generations.iter_mut().map(|it| &mut it.reason);
    for text in errors.chain(reasons).chain(&mut status.waits_for) {
        if text.contains(path) {
            *text = text.replace(path, "the component");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(phase: &str, reason: &str, message: &str) -> PluginStatus {
        let condition = json!({
            "type": "Ready", "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        read(&json!({"status": {"phase": phase, "conditions": [condition]}}).to_string()).unwrap()
    }

    #[test]
    fn a_status_that_another_client_changed_says_something_else() {
        let written = status("Serving", "Serving", "version 1");
        assert!(says_the_same(&written, &status("Serving", "Serving", "cut off by an older definition")));
        assert!(!says_the_same(&written, &status("Loading", "Serving", "version 1")));
        assert!(!says_the_same(&written, &status("Serving", "Restarting", "version 1")));
        assert!(!says_the_same(&written, &PluginStatus::default()));
    }

    #[test]
    fn an_object_without_a_status_has_an_empty_one() {
        assert_eq!(read(r#"{"spec": {}}"#), Some(PluginStatus::default()));
        assert_eq!(read(r#"{"status": {"conditions": 1}}"#), None);
    }
}
