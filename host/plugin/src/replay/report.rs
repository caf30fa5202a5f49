//! The options and the result of a replay.

use serde::Serialize;

use super::{MOST_INSTANCES, MOST_START_BYTES};
use crate::record::{self, Call, Ended};

/// Configures a replay.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Stops after this call, and goes on after a difference before it, as with `keep_going`.
    pub until: Option<u64>,
    /// Goes on after a difference. A new instance replaces one whose imports diverged.
    pub keep_going: bool,
    /// Interfaces whose imports are not compared, such as `log`.
    pub ignore: Vec<String>,
    /// The beginning of a digest: only the calls of the version that has it are replayed.
    pub of: Option<String>,
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The plugin in the record.
    pub plugin: String,
    /// Whether the record has all values as they were, as far as it was replayed. If not, a guest that looks
    /// at a value of a Secret may differ without a fault.
    pub exact: bool,
    /// The calls that were replayed, without the starts of instances.
    pub calls: u64,
    /// The starts of instances that were replayed.
    pub starts: u64,
    /// The imports that were answered.
    pub imports: u64,
    /// The calls and starts that could not be replayed, since the record lacks a part of them.
    pub skipped: u64,
    /// The differences, in the order of the record: the first one, or up to 1,000 with
    /// [`Options::keep_going`] or [`Options::until`].
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

const NO_VERSION: &str = "no version in the record has a digest that begins with";
const SEVERAL_VERSIONS: &str = "several versions in the record have a digest that begins with";

/// Why a record cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("the record {0}")]
    Record(#[from] record::Error),
    /// The first entry is another one.
    #[error("the record is damaged: its first entry does not say what it is")]
    NoFile,
    /// The host was ended before it wrote any entry, or the file was cut there.
    #[error("the record ends before its first entry")]
    NoEntries,
    /// Not exactly one version of the record has the digest.
    #[error("{} {of}: {versions}", if *are_several { SEVERAL_VERSIONS } else { NO_VERSION })]
    NoVersion {
        /// The beginning of the digest.
        of: String,
        /// Whether several versions have it.
        are_several: bool,
        /// The versions of the record.
        versions: String,
    },
    /// The version has made no calls.
    #[error("the record has no calls of the version whose digest begins with {of}")]
    NoCalls {
        /// The beginning of the digest.
        of: String,
    },
    /// The call is one of another version.
    #[error("call {call} was not made by the version whose digest begins with {of}")]
    OtherVersion {
        /// The number of the call.
        call: u64,
        /// The beginning of the version's digest.
        of: String,
    },
    /// The limits of an instance are not what a host wrote.
    #[error("the record is damaged: the limits of instance {instance}: {reason}")]
    Limits {
        /// The instance.
        instance: u64,
        /// What is wrong.
        reason: String,
    },
    /// More instances than a host has.
    #[error("the record is damaged: more than {MOST_INSTANCES} instances are alive at once")]
    TooManyInstances,
    /// The starts of the instances take more memory than those of a host's.
    #[error(
        "the record is damaged: the starts of instances that are alive at once have more than {} MiB",
        MOST_START_BYTES >> 20
    )]
    StartsTooLarge,
    /// A recorded value does not have the type of this contract.
    #[error(
        "call {call}, {function}: the recorded {what} does not fit the contract of this oarlock: {reason}"
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

// === impl Difference ===

impl Difference {
    /// Returns a difference without content in a call.
    pub(super) fn of(call: &Call) -> Self {
        Self {
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
}

// === impl ReplayError ===

impl ReplayError {
    /// Returns the error of a recorded value that is not what the contract says.
    pub(super) fn other_contract(call: &Call, what: &str, reason: &str) -> Self {
        Self::OtherContract {
            call: call.number,
            function: call.function.clone(),
            what: what.to_owned(),
            reason: reason.to_owned(),
        }
    }
}
