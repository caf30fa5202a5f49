//! Runs one case.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use oarlock_controller::config::PluginFile;
use oarlock_controller::yaml;
use oarlock_dev_cluster::{Clock, Config, InProcess};
use oarlock_plugin::EngineConfig;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::api::CaseApi;
use crate::case::{Action, Case};
use crate::clock::CaseClock;
use crate::compare::{self, Actual, Difference};
use crate::happened::{Happened, Metrics};
use crate::host::{Host, settle};
use crate::watcher::Watcher;

/// The shortest deadlines. They count real time, which passes while a busy machine runs others.
const SHORTEST_DEADLINE: Duration = Duration::from_secs(60);

/// A plugin, and a case for it.
#[derive(Debug, Clone)]
pub struct Job {
    /// The plugin's file, whose component must have been compiled with `engine` before: a case has no time to
    /// compile.
    pub plugin: PluginFile,
    /// The case.
    pub case: Case,
    /// How components are run. Needs a folder for compiled code.
    pub engine: EngineConfig,
}

/// A case that ran to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The start, and each step, in order.
    pub checkpoints: Vec<Checkpoint>,
}

/// The start or a step, and what was seen after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Which one.
    pub place: Place,
    /// What differs from `expect`.
    pub differences: Vec<Difference>,
    /// What the plugin logged as an error, such as the traceback of a failed call.
    pub errors: Vec<String>,
    /// Calls of the plugin that failed, and why, if `expect` has no `failures`: often the cause of
    /// differences.
    pub failures: Vec<String>,
    /// What `expect` has to be so that nothing differs; none if it need not be there.
    pub(crate) accepted: Option<Map<String, Value>>,
    /// A key of `accepted` that still differs, because only its author can change it.
    pub(crate) unacceptable: Option<String>,
}

/// A place in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The start of the plugin.
    Start,
    /// A step, counted from 0.
    Step(usize),
}

/// Why a case did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A host would refuse the plugin.
    #[error("the host refuses the plugin: {message}")]
    Refused {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The plugin did not serve within five minutes of the case's time.
    #[error("the plugin does not start to serve{}", waiting(waits_for))]
    NotServing {
        /// What it waits for.
        waits_for: Vec<String>,
    },
    /// A request of the case failed.
    #[error("{place}: {error}")]
    Request {
        /// The place in the case.
        place: Place,
        /// The error, with its causes.
        error: String,
        /// What was seen before, which often is the cause.
        before: Vec<Checkpoint>,
    },
    /// The host cannot run, or failed.
    #[error("the host failed: {0}")]
    Host(String),
}

/// Runs a case, on a thread of its own. Blocks.
///
/// # Errors
///
/// When the plugin is refused or does not start, or a request of the case fails.
pub fn run(job: Job) -> Result<Ran, RunError> {
    let failed = |error: String| RunError::Host(error);
    let run = move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // A task that yields runs when no other can, and not after a number of polls: threads for blocking
        // work wake tasks sooner or later, so that number differs from run to run.
        builder.event_interval(u32::MAX).global_queue_interval(u32::MAX);
        let runtime = builder.enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error| RunError::Host(error.to_string()))?;
        runtime.block_on(in_runtime(job))
    };
    let thread = thread::Builder::new().name("case".to_owned()).spawn(run);
    let thread = thread.map_err(|error| failed(error.to_string()))?;
    thread.join().unwrap_or_else(|_| Err(failed("it panicked, which is a defect of oarlock".to_owned())))
}

async fn in_runtime(Job { plugin, case, engine }: Job) -> Result<Ran, RunError> {
    let clock = Arc::new(CaseClock::new(case.time));
    let server = InProcess::start(Config {
        clock: Clock::controlled({
            let clock = clock.clone();
            move || clock.now()
        }),
        seed: Some(0),
        ..Config::default()
    })
    .map_err(|error| RunError::Host(error.to_string()))?;
    let mut api = CaseApi::new(Client::new(server.as_admin(), "default"));
    for object in &case.cluster {
        api.apply(object).await.map_err(|error| RunError::request(Place::Start, &error, Vec::new()))?;
    }
    let (_folder, file) =
        plugin_file(&plugin, &case).map_err(|error| RunError::Host(format!("{error:#}")))?;
    let watcher = Arc::new(Watcher::new(clock.clone()));
    let host = Host::start(&server, file, engine, watcher.clone(), clock.clone()).await?;
    let mut metrics = Metrics::default();
    let is_new = case.expect.is_none() && case.steps.iter().all(|step| step.expect.is_none());
    let mut checkpoints = Vec::with_capacity(case.steps.len() + 1);
    let mut check = async |place, expect: Option<&Map<String, Value>>, api: &mut CaseApi| {
        let happened = Happened::of(&watcher.take(), &mut metrics);
        let actual = look(expect, happened, api).await;
        let actual =
            actual.map_err(|error| RunError::request(place, &error, std::mem::take(&mut checkpoints)))?;
        let names_failures = expect.is_some_and(|it| it.contains_key("failures"));
        let accepted = compare::accepted(expect, &actual, &metrics, is_new);
        let differences = |expect: &Map<String, Value>| compare::differences(expect, &actual, &metrics);
        let unacceptable = accepted.as_ref().and_then(|it| differences(it).into_iter().next());
        checkpoints.push(Checkpoint {
            place,
            errors: actual.happened.errors(),
            failures: if names_failures { vec![] } else { actual.happened.failed_calls() },
            differences: expect.map_or_else(Vec::new, differences),
            accepted,
            unacceptable: unacceptable.map(|it| it.key),
        });
        Ok::<_, RunError>(())
    };
    check(Place::Start, case.expect.as_ref(), &mut api).await?;
    for (idx, step) in case.steps.iter().enumerate() {
        let place = Place::Step(idx);
        let done = match &step.action {
            Action::Apply(object) => api.apply(object).await,
            Action::Patch(patch) => api.patch(patch).await,
            Action::Delete(object) => api.delete(object).await,
            Action::Advance(by) => {
                tokio::time::sleep(*by).await;
                Ok(())
            }
        };
        if let Err(error) = done {
            return Err(RunError::request(place, &error, checkpoints));
        }
        settle().await;
        check(place, step.expect.as_ref(), &mut api).await?;
    }
    host.stop().await?;
    server.shut_down().await;
    Ok(Ran { checkpoints })
}

/// Looks at the objects that `expect` names.
async fn look(expect: Option<&Map<String, Value>>, happened: Happened, api: &mut CaseApi) -> Result<Actual> {
    let named = |key: &str| expect.and_then(|it| it.get(key)).and_then(Value::as_array).into_iter().flatten();
    let mut actual = Actual { happened, ..Actual::default() };
    for object in named("objects") {
        actual.objects.push(api.get(object).await?);
    }
    for object in named("gone") {
        if !api.get(object).await?.is_null() {
            actual.not_gone.push(object.clone());
        }
    }
    Ok(actual)
}

/// Writes the plugin's file with the case's configuration, into a folder that is removed at the end.
fn plugin_file(plugin: &PluginFile, case: &Case) -> Result<(TempDir, PathBuf)> {
    let text = std::fs::read_to_string(&plugin.path)
        .with_context(|| format!("cannot read {}", plugin.path.display()))?;
    let text = yaml::without_byte_order_mark(&text);
    let is_toml = plugin.path.extension().is_some_and(|extension| extension == "toml");
    let mut file: Map<String, Value> =
        if is_toml { toml::from_str(text)? } else { serde_norway::from_str(text)? };
    let component = std::path::absolute(&plugin.component)?;
    file.insert("component".to_owned(), component.to_string_lossy().into());
    file.remove("shadow");
    let limits = file.entry("limits").or_insert_with(|| Value::Object(Map::new()));
    let PluginFile { limits: given, .. } = plugin;
    for (key, deadline) in [("callDeadline", given.call_deadline), ("startDeadline", given.start_deadline)] {
        limits[key] = format!("{}ms", deadline.max(SHORTEST_DEADLINE).as_millis()).into();
    }
    if let Some(config) = &case.config {
        file.insert("config".to_owned(), config.clone().into());
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("plugin.yaml");
    std::fs::write(&path, serde_norway::to_string(&file)?)?;
    Ok((folder, path))
}

fn waiting(waits_for: &[String]) -> String {
    if waits_for.is_empty() { String::new() } else { format!(": it waits for {}", waits_for.join("; ")) }
}

// === impl Ran ===

impl Ran {
    /// Returns whether the plugin did what the case expects.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checkpoints.iter().all(|checkpoint| checkpoint.differences.is_empty())
    }
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Step(idx) => write!(f, "steps[{idx}]"),
        }
    }
}

// === impl RunError ===

impl RunError {
    fn request(place: Place, error: &anyhow::Error, before: Vec<Checkpoint>) -> Self {
        Self::Request { place, error: format!("{error:#}"), before }
    }

    /// Returns what to do, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint, .. } => hint.as_deref(),
            Self::NotServing { .. } => Some(
                "add what it waits for to `cluster`, such as the CustomResourceDefinition of a resource that it watches",
            ),
            Self::Request { .. } | Self::Host(_) => None,
        }
    }
}
