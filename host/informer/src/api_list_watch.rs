//! Lists and watches over HTTP. Only this file and its submodules talk to a real API server.
//!
//! It sends the request, and decodes the objects while the body arrives. It never retries (RL-74), and needs
//! a client that does not retry either: `transport` makes one.

mod answer;
mod event;
mod identity;
mod lines;
mod page;
mod request;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use kube::client::Body;
use oarlock_label_selector::LabelSelector;

use crate::list_watch::{
    ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::names::{GroupVersionResource, TypeMeta};
use crate::object::{Content, Pruning, SharedPointers};
use answer::Chunks;
use lines::Lines;
pub use page::PageDecoder;

/// The resource to list and watch, and the limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The resource.
    pub resource: GroupVersionResource,
    /// The type of its objects, from discovery. Used for items without a type in lists without a type, and
    /// for `PartialObjectMetadata`, which keeps that type if this is none (GI-01).
    pub type_meta: Option<TypeMeta>,
    /// Only this namespace. None: the whole cluster.
    pub namespace: Option<String>,
    /// Only objects that this selects; the server selects.
    pub label_selector: LabelSelector,
    /// Only objects that this field selector, in the syntax of the API, selects; empty for all. The server
    /// selects.
    pub field_selector: String,
    /// Full objects or metadata only. With `Metadata`, the rest of an object is dropped if the server sends
    /// it all the same.
    pub content: Content,
    /// The fields to remove from the objects.
    pub pruning: Pruning,
    /// The longest event of a watch and the longest item of a list, in bytes.
    pub max_object_bytes: usize,
    /// The limit of the time before the answer begins. API servers themselves stop after 60 s.
    pub response_timeout: Duration,
    /// The limit of a pause within the body of a list.
    pub idle_timeout: Duration,
}

/// Lists and watches a resource of an API server.
pub struct ApiListWatch {
    client: kube::Client,
    config: Arc<Config>,
}

// === impl Config ===

impl Config {
    /// Returns the configuration for all objects of a resource, with the default limits.
    pub fn new(resource: GroupVersionResource, type_meta: Option<TypeMeta>) -> Self {
        Self {
            resource,
            type_meta,
            namespace: None,
            label_selector: LabelSelector::everything(),
            field_selector: String::new(),
            content: Content::Full,
            pruning: Pruning::default(),
            max_object_bytes: 32 << 20,
            response_timeout: Duration::from_secs(70),
            idle_timeout: Duration::from_secs(60),
        }
    }
}

// === impl ApiListWatch ===

impl ApiListWatch {
    /// Makes a source that sends its requests through `client`, which must not retry.
    pub fn new(client: kube::Client, config: Config) -> Self {
        Self { client, config: Arc::new(config) }
    }

    /// Sends a GET, and returns the body of a successful answer.
    async fn get(&self, path_and_query: &str, accept: &'static str) -> Result<Body, ApiError> {
        let request = request::get(path_and_query, accept)?;
        let response = within(self.config.response_timeout, "no answer", self.client.send(request))
            .await
            .map_err(answer::answer_timeout)?
            .map_err(answer::request_error)?;
        let (parts, body) = response.into_parts();
        if parts.status.is_success() {
            return Ok(body);
        }
        let text =
            within(self.config.response_timeout, "no end of an answer", answer::read_status(body)).await??;
        Err(answer::status_of(parts.status.as_u16(), &parts.headers, &text).into())
    }
}

#[async_trait]
impl ListWatch for ApiListWatch {
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError> {
        let body = self
            .get(&request::list(&self.config, &options), request::list_accept(self.config.content))
            .await?;
        let mut chunks = Chunks::new(body);
        let mut decoder = PageDecoder::new(&self.config, hook);
        while let Some(chunk) = within(self.config.idle_timeout, "pause within a list", chunks.next()).await?
        {
            decoder.push(&chunk?)?;
        }
        Ok(decoder.finish()?)
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        let body = self
            .get(&request::watch(&self.config, &options), request::watch_accept(self.config.content))
            .await?;
        let lines = Lines::new(Chunks::new(body), self.config.max_object_bytes);
        let state = Some((lines, self.config.clone(), options.copied));
        let events = stream::unfold(state, async |state| {
            let (mut lines, config, copied) = state?;
            match next_event(&mut lines, &config, copied.as_ref()).await? {
                Ok(event) => Some((Ok(event), Some((lines, config, copied)))),
                // An error is the last item.
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(events.boxed())
    }
}

/// Returns the next event of a watch; none at its end.
async fn next_event(
    lines: &mut Lines,
    config: &Config,
    copied: Option<&SharedPointers>,
) -> Option<Result<WatchEvent, ApiError>> {
    let line = match lines.next().await? {
        Ok(line) => line,
        Err(error) => return Some(Err(error)),
    };
    match event::decode(&line.bytes, config, copied) {
        // The connection ended within an event. The watch ends; the next watch brings the event again.
        Err(_) | Ok(WatchEvent::Undecodable { .. }) if !line.is_whole => None,
        result => Some(result.map_err(ApiError::from)),
    }
}

async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> Result<T, ApiError> {
    tokio::time::timeout(limit, future).await.map_err(|_| {
        let message = format!("{what} for {limit:?}");
        ApiError::Transport(io::Error::new(io::ErrorKind::TimedOut, message).into())
    })
}

#[cfg(test)]
mod tests;
