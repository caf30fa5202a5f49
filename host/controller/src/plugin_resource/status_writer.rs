//! Writes the status of Plugin objects, and Events about their transitions. The number of writes is bounded:
//! in all, and for each object.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use oarlock_event_recorder::EventRecorder;
use oarlock_flow_control::TokenBucket;
use serde_json::json;

use super::conditions::{self, shortened};
use super::definitions::PluginKey;
use super::resolve::{Problem, Resolved};
use super::rolled_back;
use super::shadow_status::Shadow;
use super::transitions::{self, Transition};
use super::types::{self, LastError, PluginStatus, SubscriptionSummary};
use crate::config::PluginFile;
use crate::status::{self, Phase};

/// The most writes of a second, of all objects together.
const WRITES_PER_SECOND: u32 = 20;

/// How long a write may take.
const LONGEST_WRITE: Duration = Duration::from_secs(10);

/// The manager of the fields of a status.
const FIELD_MANAGER: &str = "oarlock-status";

/// The most subscriptions that a status shows.
const MAX_SUBSCRIPTIONS: usize = 64;

/// Writes statuses. One for all objects.
pub(super) struct StatusWriter {
    client: kube::Client,
    bucket: TokenBucket,
    recorder: EventRecorder,
}

/// The object that a status is about.
pub(super) struct Subject<'a> {
    pub(super) key: &'a PluginKey,
    pub(super) uid: &'a str,
    /// Its `metadata.generation` when it was resolved.
    pub(super) generation: Option<i64>,
}

/// What a status is made of.
pub(super) struct View<'a> {
    pub(super) resolution: &'a Result<Resolved, Problem>,
    /// What the host does with the plugin, if it has begun to load it.
    pub(super) loaded: Option<&'a status::PluginStatus>,
    /// What the host is to do: the last spec that could be resolved.
    pub(super) definition: Option<&'a PluginFile>,
    /// The shadow, if the spec has one.
    pub(super) shadow: Option<Shadow<'a>>,
}

// === impl View ===

impl View<'_> {
    /// Returns whether the newest spec neither serves yet nor was refused.
    pub(super) fn is_in_progress(&self) -> bool {
        match self.resolution {
            Err(problem) => problem.is_unknown,
            Ok(_) => {
                let settled = self.loaded.and_then(|it| it.settled.as_deref());
                // A shadow is no part of a version.
                let is_it =
                    |it: &PluginFile| self.definition.is_some_and(|now| now.is_same_apart_from_shadow(it));
                !settled.is_some_and(is_it)
            }
        }
    }
}

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("the API server did not answer within {} s", LONGEST_WRITE.as_secs())]
    NoAnswer,
}

// === impl StatusWriter ===

impl StatusWriter {
    pub(super) fn new(client: kube::Client, recorder: EventRecorder) -> Self {
        let bucket = TokenBucket::per_second(f64::from(WRITES_PER_SECOND), WRITES_PER_SECOND);
        Self { client, bucket, recorder }
    }

    /// Writes a status when the rate allows it, and records Events about the transitions.
    pub(super) async fn write(
        &self,
        subject: &Subject<'_>,
        before: &PluginStatus,
        status: &PluginStatus,
    ) -> Result<(), Error> {
        if let Ok(delay) = self.bucket.reserve(Duration::MAX) {
            tokio::time::sleep(delay).await;
        }
        let PluginKey { namespace, name } = subject.key;
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk(types::GROUP, types::VERSION, subject.key.kind()));
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        // With the uid, so that an object that was created again does not get the status of the old one.
        let patch = json!({ "metadata": { "uid": subject.uid }, "status": complete(before, status) });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(patch);
        let answer = tokio::time::timeout(LONGEST_WRITE, api.patch_status(name, &params, &patch)).await;
        answer.map_err(|_| Error::NoAnswer)??;
        self.record(subject, before, status);
        Ok(())
    }

    /// Records an Event about each transition.
    fn record(&self, subject: &Subject<'_>, before: &PluginStatus, status: &PluginStatus) {
        let Subject { key, uid, .. } = subject;
        for Transition { event_type, reason, message } in transitions::between(before, status) {
            let regarding = ObjectReference {
                api_version: Some(format!("{}/{}", types::GROUP, types::VERSION)),
                kind: Some(key.kind().to_owned()),
                namespace: key.namespace.as_deref().map(str::to_owned),
                name: Some(key.name.to_string()),
                uid: Some((*uid).to_owned()),
                ..ObjectReference::default()
            };
            // The recorder counts the Events that it drops.
            let _ = self.recorder.event(regarding, event_type, &reason, &message);
        }
    }
}

/// Returns the status of an object, without a good version that is new.
pub(super) fn status_of(
    subject: &Subject<'_>,
    view: &View<'_>,
    before: &PluginStatus,
    now: jiff::Timestamp,
) -> PluginStatus {
    let View { resolution, loaded: status, shadow, .. } = *view;
    let in_progress = view.is_in_progress();
    let mut findings = conditions::find(resolution, status, in_progress);
    findings.extend(shadow.map(|it| it.ready()));
    let serving = status.filter(|it| it.generation > 0);
    let subscriptions_of = serving.into_iter().flat_map(|it| &it.subscriptions);
    let watches: BTreeSet<_> = subscriptions_of.map(|it| it.resource.as_str()).collect();
    let watches: Vec<_> = watches.into_iter().collect();
    PluginStatus {
        observed_generation: if in_progress { before.observed_generation } else { subject.generation },
        phase: Some(phase(resolution.as_ref().map(drop), status).to_owned()),
        conditions: conditions::dated(findings, &before.conditions, subject.generation, in_progress, now),
        generation: serving.map(|it| i64::try_from(it.generation).unwrap_or(i64::MAX)),
        version: serving.and_then(|it| it.version.clone()),
        digest: serving.and_then(|it| it.digest.as_deref()).map(written),
        good_versions: before.good_versions.clone(),
        rolled_back: rolled_back::written(
            status.and_then(|it| it.rolled_back.as_deref()),
            before.rolled_back.as_ref(),
        ),
        resolved_source: match resolution {
            Ok(resolved) => resolved.resolved.clone(),
            Err(_) => before.resolved_source.clone(),
        },
        watches: (!watches.is_empty()).then(|| shortened(&watches.join(","))),
        parked: serving.map(|it| i64::try_from(it.n_parked()).unwrap_or(i64::MAX)),
        last_error: last_error(status, before),
        subscriptions: serving.map(subscriptions).unwrap_or_default(),
        shadow: shadow.map(|it| it.status(before.shadow.as_ref())),
    }
}

/// Returns a digest in the form of registries.
pub(super) fn written(digest: &str) -> String {
    format!("sha256:{digest}")
}

/// Returns the summary in one word.
pub(super) fn phase(resolution: Result<(), &Problem>, status: Option<&status::PluginStatus>) -> &'static str {
    match status.map(|it| it.phase) {
        Some(Phase::Serving) => "Serving",
        Some(Phase::Restarting) => "Restarting",
        Some(Phase::Suspended) => "Suspended",
        Some(Phase::Standby) => "Standby",
        Some(Phase::Refused) => "Refused",
        Some(Phase::Loading) if resolution.is_ok() => "Loading",
        _ => match resolution {
            Ok(()) => "Pending",
            Err(problem) if problem.is_unknown => "Pending",
            Err(_) => "Refused",
        },
    }
}

/// Returns the last error. One that repeats keeps its first time, so that it causes no further write.
fn last_error(status: Option<&status::PluginStatus>, before: &PluginStatus) -> Option<LastError> {
    let Some(error) = status.and_then(|it| it.last_error.as_ref()) else { return before.last_error.clone() };
    let message = shortened(&error.message);
    match &before.last_error {
        Some(same) if same.message == message => Some(same.clone()),
        _ => Some(LastError { time: Time(error.time.instant()), message }),
    }
}

fn subscriptions(status: &status::PluginStatus) -> Vec<SubscriptionSummary> {
    let summary = |it: &status::SubscriptionStatus| SubscriptionSummary {
        name: it.name.clone(),
        resource: it.resource.clone(),
        state: match (&it.forbidden, &it.paused, it.synced) {
            (Some(_), _, _) => "Forbidden",
            (None, Some(_), _) => "Paused",
            (None, None, true) => "Synced",
            (None, None, false) => "Syncing",
        }
        .to_owned(),
        message: it.forbidden.as_deref().or(it.paused.as_deref()).map(shortened),
    };
    status.subscriptions.iter().take(MAX_SUBSCRIPTIONS).map(summary).collect()
}

/// Returns a status as a merge patch: with null for each member that is gone.
fn complete(before: &PluginStatus, status: &PluginStatus) -> serde_json::Value {
    let mut patch = json!(status);
    if let (Some(patch), Some(before)) = (patch.as_object_mut(), json!(before).as_object()) {
        for key in before.keys().filter(|key| !patch.contains_key(*key)).cloned().collect::<Vec<_>>() {
            patch.insert(key, serde_json::Value::Null);
        }
    }
    patch
}
