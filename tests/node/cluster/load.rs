//! Changes of objects while something happens to the host, and the check that nothing was lost: in the end
//! there is a copy of each object, and no other, whatever happened meanwhile. If the API server runs all the
//! time, a recorder can also judge each version of the objects and of their copies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use kube::Client;
use oarlock_node::LIMIT;
use oarlock_tests::copies::history::{self, Checked, Violation};
use oarlock_tests::recorder::Recorder;
use oarlock_tests::wait::wait_until;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::COPIES;

/// The namespace of the objects.
const SOURCES: &str = "default";
/// The label of the objects.
const LABEL: &str = "oarlock.dev/load";

/// The pause between two changes, and between two lists of the copies.
const PAUSE: Duration = Duration::from_millis(50);

/// Changes that go on until [`Load::finish`].
pub(crate) struct Load {
    client: Client,
    state: Arc<Mutex<State>>,
    stop: watch::Sender<bool>,
    writer: JoinHandle<Result<()>>,
    observer: JoinHandle<()>,
    recorder: Option<Recorder>,
}

/// What was seen at the end.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) n_changes: usize,
    /// The longest time from the creation of an object until its copy was seen. A recorder also counts the
    /// changes and deletes.
    pub(crate) longest: Duration,
    lost: Difference,
}

/// How the copies differ from what they should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Difference {
    missing_or_different: Vec<String>,
    superfluous: Vec<String>,
}

#[derive(Default)]
struct State {
    /// The objects that exist, with their content.
    expected: BTreeMap<String, String>,
    n_changes: usize,
    /// When each object was created, and when its copy was seen.
    created: BTreeMap<String, Instant>,
    copied: BTreeMap<String, Instant>,
}

/// One change.
enum Change {
    Create(usize),
    Update(usize),
    Delete(usize),
}

// === impl Load ===

impl Load {
    /// Starts to create, change and delete objects.
    pub(crate) fn start(client: &Client) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let (stop, stopped) = watch::channel(false);
        let writing = write(client.clone(), state.clone(), stopped.clone());
        let observing = observe(client.clone(), state.clone(), stopped);
        #[expect(clippy::disallowed_methods, reason = "ends with the load, which waits for it")]
        let (writer, observer) = (tokio::spawn(writing), tokio::spawn(observing));
        Self { client: client.clone(), state, stop, writer, observer, recorder: None }
    }

    /// Starts as [`Load::start`] does, and records every version of the objects and of their copies.
    pub(crate) async fn start_recorded(client: &Client) -> Result<Self> {
        let recorder = Recorder::start(client.clone(), "/api/v1/configmaps").await?;
        Ok(Self { recorder: Some(recorder), ..Self::start(client) })
    }

    /// Waits until an object that was created after `since` has a copy. Returns the time between.
    pub(crate) async fn first_copy_since(&self, since: Instant) -> Result<Duration> {
        wait_until("the first copy of a new object", async || {
            let state = self.state.lock();
            let later = state.created.iter().filter(|(_, created_at)| **created_at >= since);
            let copied = later.filter_map(|(name, _)| state.copied.get(name)).min();
            copied
                .map(|copied_at| *copied_at - since)
                .ok_or_else(|| format!("{} objects, {} copies", state.created.len(), state.copied.len()))
        })
        .await
    }

    /// Ends the changes, waits until the copies are those of the objects, and removes all of them. The report
    /// has the copies that never are right.
    pub(crate) async fn finish(self) -> Result<Report> {
        let Self { client, state, stop, writer, observer, recorder } = self;
        let _ = stop.send(true);
        writer.await.context("the writer of the load panicked")??;
        let expected = state.lock().expected.clone();
        let lost = until_copied(&client, &expected).await?;
        if lost != Difference::default() {
            observer.abort();
            return Ok(state.lock().report(lost));
        }
        // The observer has seen the copies now, or sees them with its next list.
        wait_until("the times of all copies", async || {
            let state = state.lock();
            let missing = expected.keys().filter(|name| !state.copied.contains_key(*name)).count();
            if missing == 0 { Ok(()) } else { Err(format!("{missing} are missing")) }
        })
        .await?;
        observer.abort();
        let mut report = state.lock().report(lost);
        if let Some(recorder) = recorder {
            report.longest = judged(&recorder, report.n_changes).await?.longest;
        }
        let path = format!("/api/v1/namespaces/{SOURCES}/configmaps?labelSelector={LABEL}");
        send(&client, "DELETE", &path, None).await?;
        report.lost = until_copied(&client, &BTreeMap::new()).await?;
        Ok(report)
    }
}

// === impl Report ===

impl Report {
    /// Returns how many copies never were right.
    pub(crate) fn n_lost(&self) -> usize {
        self.lost.missing_or_different.len() + self.lost.superfluous.len()
    }

    /// Fails if a change was lost.
    pub(crate) fn check(self) -> Result<Self> {
        ensure!(self.n_lost() == 0, "{self}");
        Ok(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_changes, longest, lost } = self;
        match self.n_lost() {
            0 => write!(f, "none of {n_changes} changes was lost; a copy was {longest:.1?} late at most"),
            n => write!(f, "{n} copies are not right after {n_changes} changes: {lost:?}"),
        }
    }
}

// === impl Difference ===

impl Difference {
    fn between(expected: &BTreeMap<String, String>, copies: &BTreeMap<String, String>) -> Self {
        let is_right = |name: &String, value: &String| copies.get(name) == Some(value);
        let missing_or_different = expected.iter().filter(|(name, value)| !is_right(name, value));
        let superfluous = copies.keys().filter(|name| !expected.contains_key(*name));
        Self {
            missing_or_different: missing_or_different.map(|(name, _)| name.clone()).collect(),
            superfluous: superfluous.cloned().collect(),
        }
    }
}

// === impl State ===

impl State {
    fn report(&self, lost: Difference) -> Report {
        let times = self.copied.iter().filter_map(|(name, at)| Some(*at - *self.created.get(name)?));
        Report { n_changes: self.n_changes, longest: times.max().unwrap_or_default(), lost }
    }
}

// === impl Change ===

impl Change {
    /// Returns the changes of one step: a new object; of the older ones some change, once soon and once
    /// later, and some are deleted.
    fn of_step(step: usize) -> Vec<Self> {
        let mut changes = vec![Self::Create(step)];
        if step.is_multiple_of(3) {
            changes
                .extend([2, 11].into_iter().filter_map(|before| step.checked_sub(before)).map(Self::Update));
        }
        if step >= 20 && step.is_multiple_of(4) {
            changes.push(Self::Delete(step - 19));
        }
        changes
    }
}

async fn write(client: Client, state: Arc<Mutex<State>>, stopped: watch::Receiver<bool>) -> Result<()> {
    for step in 0.. {
        if *stopped.borrow() {
            return Ok(());
        }
        for change in Change::of_step(step) {
            make(&client, &state, change).await?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Makes a change, and tries again until the API server has accepted it.
async fn make(client: &Client, state: &Mutex<State>, change: Change) -> Result<()> {
    let folder = format!("/api/v1/namespaces/{SOURCES}/configmaps");
    let (Change::Create(step) | Change::Update(step) | Change::Delete(step)) = change;
    let name = format!("load-{step}");
    // Another one for each change, so that it names the version.
    let value = state.lock().n_changes.to_string();
    let path = format!("{folder}/{name}");
    let (method, path, body, accepted) = match change {
        Change::Create(_) => {
            let object = json!({
                "metadata": {
                    "name": name,
                    "labels": {LABEL: "true"},
                    "annotations": {"oarlock.dev/mirror-to": COPIES},
                },
                "data": {"value": value},
            });
            // A try whose answer was lost has created it.
            ("POST", folder, Some(object), 409)
        }
        Change::Update(_) => ("PATCH", path, Some(json!({"data": {"value": value}})), 0),
        Change::Delete(_) => ("DELETE", path, None, 404),
    };
    // The host may see the object before the answer has arrived here.
    let begun_at = Instant::now();
    loop {
        match send(client, method, &path, body.as_ref()).await {
            Ok(_) => break,
            Err(kube::Error::Api(status)) if status.code == accepted => break,
            Err(error) if begun_at.elapsed() > LIMIT => {
                bail!("no {method} {path} for {LIMIT:?}: {error}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    let mut state = state.lock();
    state.n_changes += 1;
    match change {
        Change::Create(_) => {
            state.expected.insert(name.clone(), value);
            state.created.insert(name, begun_at);
        }
        Change::Update(_) => drop(state.expected.insert(name, value)),
        Change::Delete(_) => drop(state.expected.remove(&name)),
    }
    Ok(())
}

/// Notes when each copy is seen first.
async fn observe(client: Client, state: Arc<Mutex<State>>, stopped: watch::Receiver<bool>) {
    loop {
        // A list that fails says nothing: the API server may be what was killed.
        if let Ok(copies) = copies(&client).await {
            let (mut state, now) = (state.lock(), Instant::now());
            for name in copies.into_keys() {
                state.copied.entry(name).or_insert(now);
            }
        }
        if *stopped.borrow() && stopped.has_changed().is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until there is a copy of each object, and no other. Returns what differs at the end of the wait.
async fn until_copied(client: &Client, expected: &BTreeMap<String, String>) -> Result<Difference> {
    let mut last = None;
    let waited = wait_until("a copy of each object, and no other", async || {
        let copies = copies(client).await.map_err(|error| error.to_string())?;
        let difference = Difference::between(expected, &copies);
        let is_equal = difference == Difference::default();
        let shown = format!("{difference:?}");
        last = Some(difference);
        if is_equal { Ok(()) } else { Err(shown) }
    })
    .await;
    match (waited, last) {
        (_, Some(difference)) => Ok(difference),
        (waited, None) => waited.map(|()| Difference::default()),
    }
}

/// Waits until the recorder has seen all changes, and returns what its history shows about the copies.
async fn judged(recorder: &Recorder, n_changes: usize) -> Result<Checked> {
    let checked = wait_until("the record of all changes", async || {
        let history = match recorder.history() {
            Ok(history) => history,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        match history::check(&history) {
            Ok(checked) if checked.n_changes == n_changes => Ok(Ok(checked)),
            Ok(checked) => Err(format!("{} of {n_changes} changes are recorded", checked.n_changes)),
            Err(violations) => {
                let shown = violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n");
                if violations.iter().all(Violation::may_resolve) { Err(shown) } else { Ok(Err(shown)) }
            }
        }
    })
    .await?;
    checked.map_err(|violations| anyhow!("the recorded copies are not right:\n{violations}"))
}

/// Returns the copies, with their content.
async fn copies(client: &Client) -> Result<BTreeMap<String, String>, kube::Error> {
    let selector = "app.kubernetes.io/managed-by%3Doarlock-mirror";
    let path = format!("/api/v1/namespaces/{COPIES}/configmaps?labelSelector={selector}");
    let list = send(client, "GET", &path, None).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.map(|copy| (text(&copy["metadata"]["name"]), text(&copy["data"]["value"]))).collect())
}

async fn send(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(body).map_err(kube::Error::HttpError)?;
    client.request(request).await
}
