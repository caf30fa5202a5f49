//! Lists and watches over HTTP: the only file with its submodules that speaks to a real API server.
//!
//! Makes the request, cuts the body into objects as it arrives, and looks no further into them than the door does. It has
//! no retry of its own (RL-74), and needs a client that has none either: `transport` makes one.

mod body;
mod event;
mod glimpse;
mod lines;
mod page;
mod request;
mod status;
mod unanswered;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use kube::client::Body;

use crate::list_watch::{
    ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::names::{GroupVersionResource, TypeMeta};
use crate::object::{Content, Pruning};
use crate::selector::LabelSelector;
use body::Chunks;
use lines::Lines;
use page::PageDecoder;

/// What to list and watch, and within which limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The resource.
    pub resource: GroupVersionResource,
    /// What its objects are, for items that do not say it themselves in lists that do not say it either. From discovery.
    pub type_meta: Option<TypeMeta>,
    /// Only this namespace. None: the whole cluster.
    pub namespace: Option<String>,
    /// Only what this selects, chosen by the server.
    pub label_selector: LabelSelector,
    /// Only what this field selector selects, in the API's syntax, chosen by the server; empty for all.
    pub field_selector: String,
    /// How much of the objects is asked for. A server that sends more than metadata, though asked for that alone, is put up with.
    pub content: Content,
    /// What is left out of the objects.
    pub pruning: Pruning,
    /// The longest event of a watch and the longest item of a list, in bytes.
    pub max_object_bytes: usize,
    /// How long the server may take to begin its answer. It gives up by itself after 60 s.
    pub response_timeout: Duration,
    /// How long the server may pause within a list.
    pub idle_timeout: Duration,
}

/// Lists and watches a resource of an API server.
pub struct ApiListWatch {
    client: kube::Client,
    config: Arc<Config>,
}

// === impl Config ===

impl Config {
    /// Takes all objects of a resource, with the usual limits.
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
    /// Makes one that asks through `client`, which should retry nothing.
    pub fn new(client: kube::Client, config: Config) -> Self {
        Self { client, config: Arc::new(config) }
    }

    /// Sends a GET and returns the body of its answer, if that is a success.
    async fn get(&self, path_and_query: &str, accept: &'static str) -> Result<Body, ApiError> {
        let request = request::get(path_and_query, accept)?;
        let response = within(self.config.response_timeout, "no answer", self.client.send(request))
            .await
            .map_err(unanswered::timed_out)?
            .map_err(unanswered::classify)?;
        let (parts, body) = response.into_parts();
        if parts.status.is_success() {
            return Ok(body);
        }
        let text = within(self.config.response_timeout, "no end of an answer", status::read(body)).await??;
        Err(status::from_answer(parts.status.as_u16(), &parts.headers, &text).into())
    }
}

#[async_trait]
impl ListWatch for ApiListWatch {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        let body = self
            .get(&request::list(&self.config, &options), request::list_accept(self.config.content))
            .await?;
        let mut chunks = Chunks::new(body);
        let mut decoder = PageDecoder::new(&self.config, keep);
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
        let state = Some((lines, self.config.clone()));
        let events = stream::unfold(state, async |state| {
            let (mut lines, config) = state?;
            match next_event(&mut lines, &config).await? {
                Ok(event) => Some((Ok(event), Some((lines, config)))),
                // Nothing comes after an error.
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(events.boxed())
    }
}

/// Returns the next event of a watch; none at its end.
async fn next_event(lines: &mut Lines, config: &Config) -> Option<Result<WatchEvent, ApiError>> {
    let line = match lines.next().await? {
        Ok(line) => line,
        Err(error) => return Some(Err(error)),
    };
    match event::parse(&line.bytes, config) {
        // The connection ended in the middle of an event: that is an end like any other, the event comes again.
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
