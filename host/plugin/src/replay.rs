//! Replays a record: calls a component as the record says, answers its imports from the record, and reports
//! the first difference.
//!
//! Nothing outside of the record answers an import, so a replay needs no cluster, and two replays of one
//! component are equal. Instances run as they did: one after the other or at once, in the order in which
//! their calls ended.

mod compare;
mod interceptor;

use std::{collections::HashMap, io::Read, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use self::interceptor::CallReplay;
use crate::{
    CallError, Component, Instance, InstanceConfig, Interception, Limits,
    contract::{Error, Level},
    describe::no_access::NoAccess,
    engine::DEFAULT_WEIGHT,
    guest::{GuestLog, GuestMetrics, LogLine, LogSink, Usage},
    intercept,
    kube_access::{EventObject, KubeAccess},
    limits,
    record::{self, Call, Ended, Entry, File, Reader, Start},
};

pub use self::compare::shorten;

/// A replay is given this many times the recorded time for a call, since the machine may be slower.
const PATIENCE: u32 = 4;

/// The maximum number of instances that are alive at once: more than one plugin has in a host.
const MOST_INSTANCES: usize = 1_024;

/// The maximum number of differences in a report. The replay stops there.
const MOST_DIFFERENCES: usize = 1_000;

/// Configures a replay.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Stops after this call.
    pub until: Option<u64>,
    /// Goes on after a difference. A new instance replaces one whose imports diverged.
    pub keep_going: bool,
    /// Interfaces whose imports are not compared, such as `log`.
    pub ignore: Vec<String>,
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The plugin in the record.
    pub plugin: String,
    /// Whether the record has all values as they were. If not, a guest that looks at a value of a Secret may
    /// differ without a fault.
    pub exact: bool,
    /// The calls that were replayed, with the starts of instances.
    pub calls: u64,
    /// The imports that were answered.
    pub imports: u64,
    /// The calls that could not be replayed, since the record lacks a part of them.
    pub skipped: u64,
    /// The differences, in the order of the record: the first one, or up to 1,000 with
    /// [`Options::keep_going`].
    pub differences: Vec<Difference>,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
}

/// A difference between the record and the replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    /// The number of the call; 0 for the start of an instance.
    pub call: u64,
    /// The instance.
    pub instance: u64,
    /// The exported function.
    pub function: String,
    /// The number of the import in the call, from 1 on; `None` for the answer of the call.
    pub import: Option<usize>,
    /// What differs: the name of the import, `answer`, or an argument and a JSON pointer in it.
    pub at: String,
    /// The recorded value, shortened.
    pub recorded: String,
    /// The value in the replay, shortened.
    pub actual: String,
    /// Whether the rest of the call can still be compared.
    pub comparable: bool,
}

/// Why a record cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("the record {0}")]
    Record(#[from] record::Error),
    /// The first entry is another one.
    #[error("the record is damaged: its first entry does not say what it is")]
    NoFile,
    /// The limits of an instance are not what a host wrote.
    #[error("the record is damaged: the limits of instance {instance}: {reason}")]
    Limits {
        /// The instance.
        instance: u64,
        /// What is wrong.
        reason: limits::OutOfRange,
    },
    /// More instances than a host has.
    #[error("the record is damaged: more than {MOST_INSTANCES} instances are alive at once")]
    TooManyInstances,
    /// The engine cannot link the component.
    #[error("the component cannot be replayed: {0}")]
    Component(String),
    /// A recorded value does not have the type of this contract.
    #[error(
        "call {call}, {function}: the recorded {what} does not fit the contract of this oarlock: {reason}; replay it with the version that recorded it"
    )]
    OtherContract {
        /// The number of the call.
        call: u64,
        /// The function.
        function: String,
        /// An argument or answer.
        what: String,
        /// What is wrong.
        reason: String,
    },
}

/// One call and its result, for a list.
#[derive(Debug, Clone)]
pub struct Step<'a> {
    /// The recorded call.
    pub call: &'a Call,
    /// How the call ended in the replay; `None` if it was skipped.
    pub ended: Option<&'a Ended>,
    /// The differences in it.
    pub differences: &'a [Difference],
}

/// One instance of the record.
struct Player {
    start: Call,
    limits: Limits,
    replay: Arc<CallReplay>,
    /// `None` after a difference or a failure.
    instance: Option<Instance>,
    /// The record lacks calls, so that the state of the instance is not known.
    has_gap: bool,
}

/// Writes no lines.
struct NoLines;

/// The object of a notification, which answers nothing: the interceptor does.
struct NoObject;

/// Replays the entries of a record with a component. `each` sees every call.
///
/// # Errors
///
/// When the record cannot be read or does not fit the contract. A record that ends within a block is replayed
/// up to there.
pub async fn replay<R: Read>(
    reader: &mut Reader<R>,
    component: &Component,
    options: &Options,
    mut each: impl FnMut(Step<'_>),
) -> Result<Report, ReplayError> {
    let Some(Entry::File(file)) = reader.next_entry()? else { return Err(ReplayError::NoFile) };
    let mut replayer = Replayer::new(component, options, file);
    while let Some(entry) = reader.next_entry()? {
        let is_last = replayer.entry(entry, &mut each).await?;
        if is_last {
            break;
        }
    }
    if reader.is_truncated() {
        replayer.note("the record ends within a block: the host was ended while it wrote".to_owned());
    }
    Ok(replayer.report)
}

struct Replayer<'a> {
    component: &'a Component,
    options: &'a Options,
    players: HashMap<u64, Player>,
    report: Report,
}

// === impl Replayer ===

impl<'a> Replayer<'a> {
    fn new(component: &'a Component, options: &'a Options, file: File) -> Self {
        let File { plugin, exact, host: _, time_ms: _ } = file;
        let report = Report {
            plugin,
            exact,
            calls: 0,
            imports: 0,
            skipped: 0,
            differences: Vec::new(),
            notes: Vec::new(),
        };
        Self { component, options, players: HashMap::new(), report }
    }

    /// Replays one entry. Returns whether it is the last one to replay.
    async fn entry(&mut self, entry: Entry, each: &mut impl FnMut(Step<'_>)) -> Result<bool, ReplayError> {
        match entry {
            Entry::File(_) | Entry::Generation(_) => Ok(false),
            Entry::Start(Start { limits, call, generation: _ }) => self.start(call, limits, each).await,
            Entry::Call(call) => self.call(call, each).await,
            Entry::Gone(gone) => {
                self.players.remove(&gone.instance);
                Ok(false)
            }
            Entry::End(end) => {
                if end.reason == record::EndReason::Limit {
                    self.note("the record reached its limit: later calls are not in it".to_owned());
                }
                if end.reason == record::EndReason::SecretsMissed {
                    self.note(
                        "the record ends where a call with Secrets is missing: their values could not be \
                         replaced in later calls"
                            .to_owned(),
                    );
                }
                if end.forgotten_values > 0 {
                    let n = end.forgotten_values;
                    self.note(format!("copies of {n} values of Secrets were not replaced: too many values"));
                }
                Ok(true)
            }
        }
    }

    async fn start(
        &mut self,
        call: Call,
        limits: Limits,
        each: &mut impl FnMut(Step<'_>),
    ) -> Result<bool, ReplayError> {
        let id = call.instance;
        limits.check().map_err(|reason| ReplayError::Limits { instance: id, reason })?;
        if self.players.len() >= MOST_INSTANCES && !self.players.contains_key(&id) {
            return Err(ReplayError::TooManyInstances);
        }
        let patient = |limit: Duration| (limit * PATIENCE).min(Duration::from_secs(600));
        let limits = Limits {
            call_deadline: patient(limits.call_deadline),
            start_deadline: patient(limits.start_deadline),
            ..limits
        };
        let mut player =
            Player { start: call.clone(), limits, replay: Arc::default(), instance: None, has_gap: false };
        if call.cut {
            player.has_gap = true;
            self.players.insert(id, player);
            return Ok(self.skip(&call, each));
        }
        let ended = player.start(self.component, self.options).await;
        let is_last = self.result(&call, &player, ended, each)?;
        self.players.insert(id, player);
        Ok(is_last)
    }

    async fn call(&mut self, call: Call, each: &mut impl FnMut(Step<'_>)) -> Result<bool, ReplayError> {
        let Some(mut player) = self.players.remove(&call.instance) else {
            return Ok(self.skip(&call, each));
        };
        player.has_gap |= call.lost_before > 0;
        if call.cut {
            player.has_gap = true;
            self.players.insert(call.instance, player);
            return Ok(self.skip(&call, each));
        }
        if player.instance.is_none() {
            // After a difference. The first start was compared already.
            player.start(self.component, self.options).await;
        }
        let ended = player.call(&call, self.options).await?;
        let has_gap = player.has_gap;
        let is_last = self.result(&call, &player, ended, each)?;
        if has_gap && is_last && !self.report.differences.is_empty() {
            self.note(format!(
                "calls of instance {} are missing in the record, so its state may differ",
                call.instance
            ));
        }
        self.players.insert(call.instance, player);
        Ok(is_last)
    }

    fn skip(&mut self, call: &Call, each: &mut impl FnMut(Step<'_>)) -> bool {
        self.report.skipped += 1;
        each(Step { call, ended: None, differences: &[] });
        self.ends_with(call)
    }

    fn ends_with(&self, call: &Call) -> bool {
        self.options.until.is_some_and(|until| call.number >= until)
    }

    /// Counts a call and its differences. Returns whether it is the last one to replay.
    fn result(
        &mut self,
        call: &Call,
        player: &Player,
        ended: Ended,
        each: &mut impl FnMut(Step<'_>),
    ) -> Result<bool, ReplayError> {
        let outcome = player.replay.finish();
        if let Some((import, reason)) = outcome.other_contract {
            return Err(other_contract(call, &format!("answer of {import}"), &reason));
        }
        let mut differences = outcome.differences;
        // A call that was stopped has no end of its own.
        if outcome.stop.is_none()
            && let Some((at, recorded, actual)) = compare::ended(&call.ended, &ended)
        {
            differences.push(Difference { import: None, at, recorded, actual, comparable: true, ..of(call) });
        }
        self.report.calls += 1;
        self.report.imports += outcome.n_imports;
        each(Step { call, ended: Some(&ended), differences: &differences });
        let differs = !differences.is_empty();
        if self.options.keep_going {
            differences.truncate(MOST_DIFFERENCES - self.report.differences.len());
            self.report.differences.append(&mut differences);
        } else {
            self.report.differences.extend(differences.into_iter().next());
        }
        let is_enough = self.report.differences.len() >= MOST_DIFFERENCES;
        if is_enough {
            self.note(format!("the replay stops after {MOST_DIFFERENCES} differences"));
        }
        Ok(self.ends_with(call) || is_enough || differs && !self.options.keep_going)
    }

    fn note(&mut self, note: String) {
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }
}

/// Returns a difference without content in a call.
fn of(call: &Call) -> Difference {
    Difference {
        call: call.number,
        instance: call.instance,
        function: call.function.clone(),
        import: None,
        at: String::new(),
        recorded: String::new(),
        actual: String::new(),
        comparable: true,
    }
}

fn other_contract(call: &Call, what: &str, reason: &str) -> ReplayError {
    ReplayError::OtherContract {
        call: call.number,
        function: call.function.clone(),
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}

// === impl Player ===

impl Player {
    async fn start(&mut self, component: &Component, options: &Options) -> Ended {
        self.replay.expect(&self.start, options);
        let replay = self.replay.clone();
        let log = GuestLog::new("replay".into(), 1, 0, Arc::new(NoLines));
        let config = InstanceConfig {
            config: Arc::new(Value::Null),
            limits: self.limits.clone(),
            access: KubeAccess::of(Arc::new(NoAccess)),
            log: Arc::new(log),
            metrics: Arc::new(GuestMetrics::new()),
            usage: Usage::default(),
            share: component.engine().share(DEFAULT_WEIGHT),
            interception: Some(Interception::shared(replay)),
        };
        match Instance::new(component, config).await {
            Ok(instance) => {
                self.instance = Some(instance);
                Ended::Answer(Value::Null)
            }
            Err(error) => Ended::from(Err(&error)),
        }
    }

    async fn call(&mut self, call: &Call, options: &Options) -> Result<Ended, ReplayError> {
        let Some(instance) = &mut self.instance else {
            self.replay.expect(call, options);
            return Ok(Ended::from(Err(&CallError::Dead)));
        };
        self.replay.expect(call, options);
        let nothing = || Arc::new(NoObject) as Arc<dyn EventObject>;
        let ended = match call.function.as_str() {
            "on-add" => answer(&instance.on_add(&argument(call)?, nothing()).await),
            "on-update" => answer(&instance.on_update(&argument(call)?, nothing(), nothing()).await),
            "on-delete" => answer(&instance.on_delete(&argument(call)?, nothing()).await),
            "on-synced" => answer(&instance.on_synced(&argument(call)?).await),
            "reconcile" => answer(&instance.reconcile(&argument(call)?).await),
            other => return Err(other_contract(call, "function", &format!("no function {other}"))),
        };
        if !instance.is_alive() {
            self.instance = None;
        }
        Ok(ended)
    }
}

fn argument<T: DeserializeOwned>(call: &Call) -> Result<T, ReplayError> {
    T::deserialize(&call.argument).map_err(|error| other_contract(call, "argument", &error.to_string()))
}

fn answer<T: Serialize>(answer: &Result<T, CallError>) -> Ended {
    answer.as_ref().map(intercept::value).into()
}

impl LogSink for NoLines {
    fn enabled(&self, _: &str, _: Level) -> bool {
        false
    }

    fn write(&self, _: LogLine<'_>) {}
}

impl EventObject for NoObject {
    fn field(&self, _: &str) -> Result<Option<String>, Error> {
        Err(no_object())
    }

    fn fields(&self, _: &[String]) -> Result<Vec<Option<String>>, Error> {
        Err(no_object())
    }

    fn json(&self) -> Result<String, Error> {
        Err(no_object())
    }
}

fn no_object() -> Error {
    Error::NotFound("a replay has no objects".to_owned())
}
