//! An independent recorder: a list and a watch of one resource, which records every event.
//!
//! It shares no code with the informers that it checks. If it may have missed an event, it fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::io::AsyncBufReadExt;
use futures::{StreamExt, TryStreamExt};
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::chain_check::since_creation;

/// The versions of each object, in the order of the watch.
pub type History = BTreeMap<String, Vec<Version>>;

/// One state of one object.
#[derive(Clone, Debug)]
pub struct Version {
    /// True for the last state of a deleted object.
    pub deleted: bool,
    /// When the recorder received it.
    pub seen_at: Instant,
    /// The whole object.
    pub object: Arc<Value>,
}

/// A watch of one resource in all namespaces, from its start.
#[derive(Debug)]
pub struct Recorder {
    recorded: Arc<Mutex<Recorded>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Recorded {
    history: History,
    failure: Option<String>,
}

// === impl Version ===

impl Version {
    /// Returns the object's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.object["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// Returns the object's resourceVersion.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }
}

// === impl Recorder ===

impl Recorder {
    /// Lists the resource at a path such as `/api/v1/configmaps`, then keeps watching it.
    ///
    /// # Errors
    ///
    /// The list's.
    pub async fn start(client: Client, path: &str) -> anyhow::Result<Self> {
        let list: Value = serde_json::from_str(&client.request_text(get(path)?).await?)?;
        let mut recorded = Recorded::default();
        let seen_at = Instant::now();
        for object in list["items"].as_array().context("a list has items")? {
            recorded.push(false, object.clone(), seen_at);
        }
        let resource_version = text(&list["metadata"]["resourceVersion"])?;
        let recorded = Arc::new(Mutex::new(recorded));
        let watch = watch(client, path.to_owned(), resource_version, recorded.clone());
        #[expect(clippy::disallowed_methods, reason = "owned by the Recorder, which aborts it")]
        let task = tokio::spawn(watch);
        Ok(Self { recorded, task })
    }

    /// Returns the history so far.
    ///
    /// # Errors
    ///
    /// When the recorder may have missed something.
    pub fn history(&self) -> anyhow::Result<History> {
        let recorded = self.recorded.lock();
        match &recorded.failure {
            Some(failure) => bail!("the recorder lost its watch: {failure}"),
            None => Ok(recorded.history.clone()),
        }
    }

    /// Forgets the versions before the last creation of each object in this history, which was checked. Later
    /// versions stay.
    pub fn forget(&self, checked: &History) {
        let mut recorded = self.recorded.lock();
        for (key, versions) in checked {
            if let Some(recorded) = recorded.history.get_mut(key) {
                recorded.drain(..since_creation(versions).min(recorded.len()));
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Recorded ===

impl Recorded {
    fn push(&mut self, deleted: bool, object: Value, seen_at: Instant) {
        let versions = self.history.entry(key(&object)).or_default();
        versions.push(Version { deleted, seen_at, object: Arc::new(object) });
    }
}

/// Returns `namespace/name`, or the name alone.
#[must_use]
pub fn key(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// Watches until it cannot continue without a gap. Retries while the server does not answer.
async fn watch(client: Client, path: String, mut resource_version: String, recorded: Arc<Mutex<Recorded>>) {
    loop {
        if let Err(error) = watch_once(&client, &path, &mut resource_version, &recorded).await {
            recorded.lock().failure = Some(format!("{error:#}"));
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Follows one stream to its end. An error means that events may have been missed.
async fn watch_once(
    client: &Client,
    path: &str,
    resource_version: &mut String,
    recorded: &Mutex<Recorded>,
) -> anyhow::Result<()> {
    let query = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={resource_version}");
    let Ok(stream) = client.request_stream(get(&query)?).await else {
        return Ok(());
    };
    let mut lines = stream.lines().into_stream();
    while let Some(Ok(line)) = lines.next().await {
        // An interrupted connection leaves an incomplete line. The next watch has the complete event.
        let Ok(event) = serde_json::from_str::<Value>(&line) else {
            return Ok(());
        };
        let object = &event["object"];
        match event["type"].as_str() {
            Some("BOOKMARK") => {}
            Some("ADDED" | "MODIFIED") => recorded.lock().push(false, object.clone(), Instant::now()),
            Some("DELETED") => recorded.lock().push(true, object.clone(), Instant::now()),
            _ if object["code"] == 410 => bail!("expired: {line}"),
            _ => return Ok(()),
        }
        *resource_version = text(&object["metadata"]["resourceVersion"])?;
    }
    Ok(())
}

fn get(path: &str) -> anyhow::Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().context("a resourceVersion is a string")?.to_owned())
}
