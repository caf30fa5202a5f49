//! The entries of a record.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum Entry {
    /// The first entry of every file.
    File(File),
    /// A generation of the plugin has its first instance.
    Generation(Generation),
    /// An instance started, or failed to start.
    Start(Start),
    /// A call of an instance ended.
    Call(Call),
    /// An instance was dropped.
    Gone(Gone),
    /// The record ends here. Missing if the host did not end it.
    End(End),
}

/// What the file is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct File {
    /// The plugin's name.
    pub plugin: String,
    /// The version of the host.
    pub host: String,
    /// Milliseconds since 1970 at which the record began.
    pub time_ms: u64,
    /// False if values of Secrets were replaced, so that a replay can differ where the guest looked at them.
    pub exact: bool,
}

/// A generation of the plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Generation {
    /// Its number.
    pub generation: u64,
    /// The component's digest.
    pub digest: String,
    /// The version that the component states.
    pub version: String,
    /// Whether the plugin is stateless.
    pub stateless: bool,
    /// False if neither what it declares nor its configuration is of Secrets. An earlier version did not
    /// write it.
    #[serde(default = "unknown")]
    pub declares_secrets: bool,
}

/// The start of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Start {
    /// The generation.
    pub generation: u64,
    /// The limits of the instance, as in its plugin's file.
    pub limits: Value,
    /// The start as a call, of the function `start`.
    pub call: Call,
}

/// One call of an export, with everything that crossed the border meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Call {
    /// The call's number in the file, from 1 on: in the order in which calls ended. 0 for a start.
    pub number: u64,
    /// The instance. Instances are numbered in the file from 1 on.
    pub instance: u64,
    /// Milliseconds since 1970 at which the call began.
    pub time_ms: u64,
    /// The function, such as `on-add`.
    pub function: String,
    /// Its argument.
    pub argument: Value,
    /// The imports that the guest called, in order.
    pub imports: Vec<Import>,
    /// How the call ended.
    pub ended: Ended,
    /// Calls of this instance before this one that are missing, since the writer did not keep up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_before: u64,
    /// The last imports are missing, and perhaps the argument: the call was larger than an entry may be, or
    /// the calls in progress were too large together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// One call of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Import {
    /// The function, such as `cache.get`.
    pub function: String,
    /// The arguments by name.
    pub arguments: Value,
    /// The host's answer; `None` if the call ended before.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Value>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// With the guest's answer.
    Answer(Value),
    /// Without.
    Failed {
        /// The kind of failure.
        kind: Kind,
        /// The error.
        message: String,
    },
    /// The host dropped the call, for example because it ended.
    Cancelled,
}

/// The kinds of failure, which are the errors of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named as the variants of CallError, which documents them")]
pub enum Kind {
    Trap,
    Exit,
    DeadlineExceeded,
    MemoryLimit,
    TableLimit,
    InvalidData,
    NotExported,
    Dead,
    Mismatch,
    HostPanicked,
    CannotStart,
}

/// An instance is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Gone {
    /// The instance.
    pub instance: u64,
    /// The last calls of this instance that are missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_before: u64,
}

/// Why a record ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct End {
    /// The reason.
    pub reason: EndReason,
    /// Calls and starts that are missing in the whole file, those in progress included when the host stopped.
    pub lost: u64,
    /// Values of Secrets that were too many to be remembered, so that copies of them elsewhere were not
    /// replaced.
    pub forgotten_values: u64,
}

/// Why a record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The plugin was unloaded, or the host stopped.
    Stopped,
    /// The files of the plugin reached their limit.
    Limit,
    /// The writer did not receive values of Secrets, so it could not replace them in later calls.
    SecretsMissed,
}

/// What is not known may be.
fn unknown() -> bool {
    true
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A present null is an answer.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

// === impl Call ===

impl Call {
    /// Returns the call without its argument and imports.
    #[must_use]
    pub fn without_content(&self) -> Self {
        let Self { number, instance, time_ms, function, argument: _, imports: _, ended, lost_before, cut } =
            self;
        Self {
            number: *number,
            instance: *instance,
            time_ms: *time_ms,
            function: function.clone(),
            argument: Value::Null,
            imports: Vec::new(),
            ended: ended.clone(),
            lost_before: *lost_before,
            cut: *cut,
        }
    }
}
