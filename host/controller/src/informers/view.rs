//! The status of one informer, for `/plugins` and metrics.

use std::time::Duration;

use oarlock_informer::reflector::{Phase, UndecodableObject};
use oarlock_informer::{GroupVersionResource, SharedInformer, object::Content};
use serde::{Serialize, Serializer};

use super::resource_state::{ProblemKind, ResourceState};

/// The status of one informer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InformerView {
    /// The resource.
    pub resource: String,
    /// The phase: `waiting`, `listing`, `watching`, `failing`, `forbidden`, `absent` or `over-budget`.
    pub phase: &'static str,
    /// Whether the cache has had all objects once.
    pub synced: bool,
    /// The content of the cache: `full` or `metadata`.
    pub content: &'static str,
    /// Why the budget has no room for the wanted content, if it has none.
    pub over_budget: Option<String>,
    /// The number of handles.
    pub handles: usize,
    /// The number of objects in the cache.
    pub objects: usize,
    /// The length of their JSON, before compression.
    pub bytes: usize,
    /// The memory of the texts that are not compressed.
    pub plain_bytes: usize,
    /// The memory of the compressed texts.
    pub compressed_bytes: usize,
    /// The memory of the indices.
    pub index_bytes: usize,
    /// The memory of the dictionaries for compression.
    pub dictionary_bytes: usize,
    /// The indices that left objects out because of their limits.
    pub incomplete_indices: Vec<IncompleteIndex>,
    /// The number of objects with changes in the queue of the informer.
    pub queued: usize,
    /// The number of subscriptions.
    pub listeners: usize,
    /// The time since the last event, bookmark or list.
    #[serde(rename = "last-sign-of-life-seconds", serialize_with = "seconds")]
    pub last_sign_of_life: Option<Duration>,
    /// The time since the informer has had a problem.
    #[serde(rename = "problem-seconds", serialize_with = "seconds")]
    pub trouble_for: Option<Duration>,
    /// Whether the problem is that requests fail, not that the resource is absent or forbidden.
    pub unreachable: bool,
    /// The last error.
    pub last_error: Option<String>,
    /// The number of lists after the first.
    pub relists: u64,
    /// The number of watches that were started.
    pub watches: u64,
    /// The number of objects that cannot be decoded. The cache keeps the last state of each that could be.
    pub undecodable: usize,
    /// The first of them, with the errors.
    pub undecodable_objects: Vec<String>,
    /// The number of watch events whose object could not be decoded.
    pub undecodable_events: u64,
    /// The plugins that use it.
    pub wanted_by: Vec<String>,
    /// Whether the host itself needs it.
    pub needed_by_host: bool,
}

/// An index that left objects out: reads of their namespaces through it fail with `limit-exceeded`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct IncompleteIndex {
    /// The name: the plugin, its generation, and its own name for the index.
    pub index: String,
    /// The number of objects that it left out.
    pub objects: usize,
    /// The number of their namespaces.
    pub namespaces: usize,
}

// === impl InformerView ===

impl InformerView {
    pub(super) fn of(
        resource: &GroupVersionResource,
        informer: Option<&SharedInformer>,
        state: &ResourceState,
        content: Content,
    ) -> Self {
        let problem = state.problem.as_ref();
        let status = informer.map(SharedInformer::status);
        let status = status.as_ref();
        let memory = status.map(|it| it.memory).unwrap_or_default();
        let phase = match (problem.map(|it| it.kind), status.map(|it| &it.phase)) {
            (Some(ProblemKind::Absent { .. }), _) => "absent",
            (Some(ProblemKind::Forbidden), _) => "forbidden",
            (Some(ProblemKind::Unreachable), _) => "failing",
            (None, status) if state.over_budget.is_some() && status != Some(&Phase::Watching) => {
                "over-budget"
            }
            (None, None | Some(Phase::Waiting)) => "waiting",
            (None, Some(Phase::Watching)) => "watching",
            (None, Some(_)) => "listing",
        };
        let last_error = status.and_then(|it| it.last_error.as_ref()).map(|it| it.message.clone());
        Self {
            resource: resource.to_string(),
            phase,
            synced: status.is_some_and(|it| it.has_synced),
            content: match content {
                Content::Full => "full",
                Content::Metadata => "metadata",
            },
            over_budget: state.over_budget.clone(),
            handles: state.n_users(),
            objects: status.map_or(0, |it| it.objects),
            bytes: memory.text,
            plain_bytes: memory.plain,
            compressed_bytes: memory.compressed,
            index_bytes: memory.indices,
            dictionary_bytes: memory.dictionaries,
            incomplete_indices: informer.map(incomplete_indices).unwrap_or_default(),
            queued: status.map_or(0, |it| it.queued),
            listeners: status.map_or(0, |it| it.listeners),
            last_sign_of_life: status.and_then(|it| it.last_sign_of_life).map(|it| it.elapsed()),
            trouble_for: problem.map(|it| it.since.elapsed()),
            unreachable: problem.is_some_and(|it| it.kind == ProblemKind::Unreachable),
            last_error: problem.map(|it| it.message.clone()).or(last_error),
            relists: status.map_or(0, |it| it.relists),
            watches: status.map_or(0, |it| it.watches),
            undecodable: status.map_or(0, |it| it.undecodable),
            undecodable_objects: status
                .map_or_else(Vec::new, |it| it.undecodable_objects.iter().map(undecodable).collect()),
            undecodable_events: status.map_or(0, |it| it.undecodable_events),
            wanted_by: state.wanted_by(),
            needed_by_host: state.is_needed_by_host(),
        }
    }
}

fn incomplete_indices(informer: &SharedInformer) -> Vec<IncompleteIndex> {
    let indexer = informer.indexer();
    let incomplete = |index: String| {
        let status = indexer.index_status(&index).ok().filter(|status| status.left_out > 0)?;
        Some(IncompleteIndex { index, objects: status.left_out, namespaces: status.incomplete_namespaces })
    };
    indexer.index_names().into_iter().filter_map(incomplete).collect()
}

fn undecodable(object: &UndecodableObject) -> String {
    let UndecodableObject { key, message } = object;
    key.as_ref().map_or_else(|| format!("(unknown name): {message}"), |key| format!("{key}: {message}"))
}

fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|it| it.as_secs_f64()).serialize(serializer)
}
