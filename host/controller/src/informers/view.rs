//! One informer as status and metrics show it.

use std::time::Duration;

use oarlock_informer::reflector::{Phase, UndecodableObject};
use oarlock_informer::{GroupVersionResource, SharedInformer, object::Content};
use serde::{Serialize, Serializer};

use super::resource_state::{ResourceState, TroubleKind};

/// A look at one informer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InformerView {
    /// What it watches.
    pub resource: String,
    /// What it is at, in one word.
    pub phase: &'static str,
    /// Whether the cache holds, or held, everything there is.
    pub synced: bool,
    /// How much of each object the cache holds: `full` or `metadata`.
    pub content: &'static str,
    /// Why the host's budget has no room for what is wanted, if it has none.
    pub over_budget: Option<String>,
    /// Rights to it that are held.
    pub handles: usize,
    /// Objects in the cache.
    pub objects: usize,
    /// The length of their text, in whatever form it is kept.
    pub bytes: usize,
    /// What the texts take that are kept as they are.
    pub plain_bytes: usize,
    /// What the others take, compressed.
    pub compressed_bytes: usize,
    /// What it takes to find objects.
    pub index_bytes: usize,
    /// What the dictionaries take with which texts are compressed.
    pub dictionary_bytes: usize,
    /// Indices that lack objects which are beyond their limits.
    pub incomplete_indices: Vec<IncompleteIndex>,
    /// Objects whose changes wait to be put into the cache.
    pub queued: usize,
    /// Subscriptions.
    pub listeners: usize,
    /// Age of the last event, bookmark or answer.
    #[serde(rename = "last-sign-of-life-seconds", serialize_with = "seconds")]
    pub last_sign_of_life: Option<Duration>,
    /// For how long something has been wrong.
    #[serde(rename = "trouble-seconds", serialize_with = "seconds")]
    pub trouble_for: Option<Duration>,
    /// Whether what is wrong is that the API server is not to be reached.
    pub unreachable: bool,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Lists beyond the first.
    pub relists: u64,
    /// Watches begun.
    pub watches: u64,
    /// Objects that the API server has and that cannot be decoded. The cache keeps the last state of each that could be.
    pub undecodable: usize,
    /// The first of them, with what is wrong.
    pub undecodable_objects: Vec<String>,
    /// Events that brought an object that could not be decoded.
    pub undecodable_events: u64,
    /// Plugins that want it.
    pub wanted_by: Vec<String>,
    /// Whether the host itself cannot do without it.
    pub needed_by_host: bool,
}

/// An index that lacks objects: who reads their namespaces through it is answered `limit-exceeded`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct IncompleteIndex {
    /// The plugin, its generation, and its name for the index.
    pub index: String,
    /// How many objects it lacks.
    pub objects: usize,
    /// In how many namespaces these are.
    pub namespaces: usize,
}

// === impl InformerView ===

impl InformerView {
    pub(super) fn of(
        resource: &GroupVersionResource,
        informer: Option<&SharedInformer>,
        state: &ResourceState,
        held: Content,
    ) -> Self {
        let trouble = state.trouble.as_ref();
        let status = informer.map(SharedInformer::status);
        let status = status.as_ref();
        let memory = status.map(|it| it.memory).unwrap_or_default();
        let phase = match (trouble.map(|it| it.kind), status.map(|it| &it.phase)) {
            (Some(TroubleKind::Absent), _) => "absent",
            (Some(TroubleKind::Forbidden), _) => "forbidden",
            (Some(TroubleKind::Unreachable), _) => "failing",
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
            content: match held {
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
            trouble_for: trouble.map(|it| it.since.elapsed()),
            unreachable: trouble.is_some_and(|it| it.kind == TroubleKind::Unreachable),
            last_error: trouble.map(|it| it.message.clone()).or(last_error),
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
    let look = |index: String| {
        let status = indexer.index_status(&index).ok().filter(|status| status.left_out > 0)?;
        Some(IncompleteIndex { index, objects: status.left_out, namespaces: status.incomplete_namespaces })
    };
    indexer.index_names().into_iter().filter_map(look).collect()
}

fn undecodable(object: &UndecodableObject) -> String {
    let UndecodableObject { key, message } = object;
    key.as_ref().map_or_else(|| format!("(name not readable): {message}"), |key| format!("{key}: {message}"))
}

fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|it| it.as_secs_f64()).serialize(serializer)
}
