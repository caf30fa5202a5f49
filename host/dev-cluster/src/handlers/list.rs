//! GET of many objects: versions, and pages that show one version.

use crate::call::Call;
use crate::cluster::Cluster;
use crate::form::Form;
use crate::negotiation::{Notation, Shape};
use crate::protobuf;
use crate::query::{ListOptions, Version, VersionMatch};
use crate::resource::Resource;
use crate::respond::{self, Body, full, streamed};
use crate::selector::Selection;
use crate::status::StatusError;
use crate::store::{Compacted, Snapshot, Stored};
use crate::table;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::{Duration, timeout};

/// The time that a list waits for a version that this server has not reached.
const FRESHNESS_WAIT: Duration = Duration::from_secs(3);
/// The approximate size of the pieces of a body.
const CHUNK: usize = 64 * 1024;

/// The start of the next page, and its version.
#[derive(Debug, Deserialize, Serialize)]
struct Token {
    v: String,
    /// -1 for a page whose version may differ from the earlier pages.
    rv: i64,
    start: String,
}

/// One page.
struct Page {
    revision: u64,
    objects: Vec<Arc<Stored>>,
    next: Option<String>,
    remaining: Option<usize>,
}

pub(crate) async fn list(call: &Call) -> Result<Response<Body>, StatusError> {
    let options = call.query.list_options()?;
    let selection = call.selection()?;
    let include = table::Include::parse(call.query.get("includeObject"))?;
    let page = page(&call.cluster, &call.resource, &options, &selection).await?;
    let resource = &call.resource;
    if call.accepted.shape == Shape::Table {
        let objects: Vec<&Stored> = page.objects.iter().map(|object| &**object).collect();
        let columns = table::Columns::Named;
        let table = table::table(resource, &objects, page.metadata(), columns, include)?;
        return Ok(respond::json(200, &table));
    }
    if call.accepted.notation == Notation::Yaml {
        let mut whole = Vec::new();
        let mut chunks = Chunks::new(resource.clone(), call.accepted.shape, page);
        while let Some(chunk) = chunks.next()? {
            whole.extend_from_slice(&chunk);
        }
        let value: Value = serde_json::from_slice(&whole).unwrap_or_default();
        return Ok(respond::document(200, Notation::Yaml, &value, None));
    }
    if call.accepted.notation == Notation::Protobuf {
        let form = Form { resource, shape: call.accepted.shape };
        let list = form.list(&page.metadata(), &page.objects)?;
        return Ok(respond::with_type(200, protobuf::MEDIA_TYPE, full(list)));
    }
    let chunks = Chunks::new(resource.clone(), call.accepted.shape, page);
    let body = futures::stream::unfold(chunks, |mut chunks| async move {
        // Stored objects were serialized by this server, so decoding them does not fail.
        let chunk = chunks.next().unwrap_or_default()?;
        Some((Ok(chunk), chunks))
    });
    Ok(respond::with_type(200, "application/json", streamed(body)))
}

/// Waits up to `FRESHNESS_WAIT` until the store has reached a version.
pub(super) async fn wait_for(cluster: &Cluster, wanted: u64) -> Result<(), StatusError> {
    let mut revision = cluster.store.subscribe();
    let reached = timeout(FRESHNESS_WAIT, revision.wait_for(|revision| *revision >= wanted)).await;
    match reached {
        Ok(Ok(_)) => Ok(()),
        _ => Err(StatusError::too_large_resource_version(wanted, cluster.store.revision())),
    }
}

async fn page(
    cluster: &Cluster,
    resource: &Resource,
    options: &ListOptions,
    selection: &Selection,
) -> Result<Page, StatusError> {
    let prefix = match selection.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let read = |at: Option<u64>| cluster.store.snapshot(&resource.storage, &prefix, at);
    if !options.continue_token.is_empty() {
        if matches!(options.resource_version, Version::At(_)) {
            return Err(StatusError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let token = Token::decode(&options.continue_token)?;
        let at = u64::try_from(token.rv).ok();
        let snapshot = read(at).map_err(|_| token.too_old(cluster.store.revision()))?;
        return Ok(Page::cut(snapshot, selection, &token.start, options.limit));
    }
    // Version 0 returns all objects at any version, without a limit.
    let mut limit = options.limit;
    let at = match (options.resource_version, options.version_match) {
        (Version::Unset, _) => None,
        (Version::Any, _) => {
            limit = 0;
            None
        }
        (Version::At(at), Some(VersionMatch::Exact)) => Some(at),
        (Version::At(at), None) if options.limit > 0 => Some(at),
        (Version::At(at), _) => {
            wait_for(cluster, at).await?;
            None
        }
    };
    if let Some(at) = at {
        wait_for(cluster, at).await?;
    }
    let snapshot = read(at).map_err(|Compacted { .. }| {
        StatusError::expired("The resourceVersion for the provided list is too old.")
    })?;
    Ok(Page::cut(snapshot, selection, "", limit))
}

// === impl Page ===

impl Page {
    /// Takes the matching objects from `start` on, at most `limit` (0 for all).
    fn cut(snapshot: Snapshot, selection: &Selection, start: &str, limit: usize) -> Self {
        let Snapshot { revision, objects } = snapshot;
        let from = objects.partition_point(|object| &*object.key < start);
        let total = objects.len();
        let mut page = Self { revision, objects: Vec::new(), next: None, remaining: None };
        for (at, object) in objects.into_iter().enumerate().skip(from) {
            if !selection.matches(&object) {
                continue;
            }
            if limit > 0 && page.objects.len() == limit {
                let last = page.objects.last().map(|last| last.key.to_string()).unwrap_or_default();
                page.next = Some(Token::encode(revision, &format!("{last}\0")));
                page.remaining = selection.is_everything().then_some(total - at);
                break;
            }
            page.objects.push(object);
        }
        page
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = next.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

// === impl Token ===

impl Token {
    fn encode(revision: u64, start: &str) -> String {
        let rv = i64::try_from(revision).unwrap_or(i64::MAX);
        let token = Self { v: "meta.k8s.io/v1".into(), rv, start: start.into() };
        URL_SAFE_NO_PAD.encode(json!(token).to_string())
    }

    fn decode(text: &str) -> Result<Self, StatusError> {
        let invalid = |why: String| {
            StatusError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let json =
            URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|error| invalid(error.to_string()))?;
        serde_json::from_slice(&json).map_err(|error| invalid(error.to_string()))
    }

    /// Returns the 410 with a token that continues the list at another version.
    fn too_old(&self, _now: u64) -> StatusError {
        let mut token = Self { v: self.v.clone(), rv: -1, start: self.start.clone() };
        token.v = "meta.k8s.io/v1".into();
        let mut error = StatusError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of \
             the results. Continuing with the provided token results in an inconsistent list - objects that were \
             created, modified, or deleted between the time the first chunk was returned and now may show up in the \
             list.",
        );
        error.continue_token = Some(URL_SAFE_NO_PAD.encode(json!(token).to_string()));
        error
    }
}

/// The text of a list, in pieces.
struct Chunks {
    resource: Arc<Resource>,
    shape: Shape,
    page: Page,
    at: usize,
    state: ChunkState,
}

#[derive(PartialEq)]
enum ChunkState {
    Head,
    Items,
    Done,
}

// === impl Chunks ===

impl Chunks {
    fn new(resource: Arc<Resource>, shape: Shape, page: Page) -> Self {
        Self { resource, shape, page, at: 0, state: ChunkState::Head }
    }

    fn next(&mut self) -> Result<Option<Bytes>, StatusError> {
        let mut chunk = Vec::with_capacity(4096);
        match self.state {
            ChunkState::Done => return Ok(None),
            ChunkState::Head => {
                let form = Form { resource: &self.resource, shape: self.shape };
                let (kind, api_version) = form.of_list();
                let mut metadata = self.page.metadata();
                if self.resource.custom.is_some() && self.page.next.is_none() {
                    // kube-apiserver writes these lists from maps, including empty fields.
                    metadata["continue"] = "".into();
                }
                chunk.extend_from_slice(
                    format!(
                        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
                    )
                    .as_bytes(),
                );
                self.state = ChunkState::Items;
            }
            ChunkState::Items => {}
        }
        let form = Form { resource: &self.resource, shape: self.shape };
        while chunk.len() < CHUNK {
            let Some(object) = self.page.objects.get(self.at) else {
                chunk.extend_from_slice(b"]}\n");
                self.state = ChunkState::Done;
                break;
            };
            if self.at > 0 {
                chunk.push(b',');
            }
            form.write(&mut chunk, object, true)?;
            self.at += 1;
        }
        Ok(Some(chunk.into()))
    }
}
