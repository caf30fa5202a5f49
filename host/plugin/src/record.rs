//! Records: all calls of one plugin, and everything that crossed the border meanwhile, in one file.
//!
//! ```text
//! instance ── CallLog ──┐ one message for each call, when it ends
//! instance ── CallLog ──┴── bounded queue ──> Writer: replaces values of Secrets, compresses, writes
//! ```
//!
//! A call is never delayed: when the queue is full, the call is left out, and the next one says so; when the
//! calls in progress are too large, their last imports are cut off. When the file has reached its limit, the
//! record ends, since a replay needs the beginning. It also ends when a call is left out or cut that may have
//! seen Secrets: their values would be in later calls, and nothing would know them.

mod call_log;
mod ended;
mod pseudonyms;
mod redaction;
mod writer;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

pub use oarlock_record_format::entry::{
    Call, End, EndReason, Ended, Entry, File, Generation, Gone, Import, Kind, Start,
};
pub use oarlock_record_format::file::{Error, Reader, VERSION};
use serde::Serialize;
use tokio::sync::{Notify, mpsc};

pub(crate) use self::ended::ended;
pub use self::writer::Writer;
use self::{call_log::CallLog, redaction::Sources};
use crate::{Interception, component, contract::Description};

/// The messages that may wait for the writer.
const MOST_WAITING: usize = 4_096;

/// The bytes of calls that may be in progress or wait for the writer.
const MOST_HELD_BYTES: usize = 64 << 20;

/// Configures a record.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file, which must not exist. It contains objects of the cluster: only the owner may read it.
    pub file: PathBuf,
    /// The maximum size of the file, in bytes.
    pub limit: u64,
    /// Records values of Secrets as they are.
    pub secrets: bool,
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// The version of the host.
    pub host: &'static str,
}

/// The record of one plugin, for all its generations and instances. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Message>,
}

/// The access to the state of a record. Cheap to clone.
#[derive(Clone)]
pub struct Progress {
    shared: Arc<Shared>,
}

/// The state of a record, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RecorderView {
    /// The file.
    pub file: PathBuf,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The maximum size.
    pub limit: u64,
    /// The calls in it.
    pub calls: u64,
    /// The calls that are missing, since the writer did not keep up.
    pub lost: u64,
    /// False if values of Secrets are replaced.
    pub exact: bool,
    /// Whether it goes on.
    pub state: RecordState,
}

/// Whether a record goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// Calls are recorded.
    Recording,
    /// The file has reached its limit. Further calls are not recorded.
    Full,
    /// The file cannot be written. Further calls are not recorded.
    Failed,
    /// A call with Secrets is missing, so their values could not be replaced in later calls. Further calls
    /// are not recorded.
    SecretsMissed,
}

/// What the interceptors and the writer share.
pub(crate) struct Shared {
    config: Config,
    bytes: AtomicU64,
    calls: AtomicU64,
    lost: AtomicU64,
    /// The bytes of the calls that are in progress or wait for the writer.
    held_bytes: AtomicUsize,
    instances: AtomicU64,
    is_full: AtomicBool,
    has_failed: AtomicBool,
    /// A call that may have seen Secrets is missing.
    has_missed_secrets: AtomicBool,
    /// Tells the writer so.
    missed_secrets: Notify,
}

/// An entry on its way to the writer.
pub(crate) struct Message {
    entry: Entry,
    /// Which answers are values of Secrets.
    sources: Arc<Sources>,
    /// The bytes that are held for it.
    bytes: usize,
}

// === impl Recorder ===

impl Recorder {
    /// Creates the file, and the writer that the caller has to run.
    ///
    /// # Errors
    ///
    /// When the file exists, or cannot be created.
    pub fn create(config: Config) -> std::io::Result<(Self, Writer)> {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let shared = Arc::new(Shared {
            config,
            bytes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            held_bytes: AtomicUsize::new(0),
            instances: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            has_missed_secrets: AtomicBool::new(false),
            missed_secrets: Notify::new(),
        });
        let writer = Writer::create(shared.clone(), waiting)?;
        Ok((Self { shared, queue }, writer))
    }

    /// Records the instances of one generation.
    #[must_use]
    pub fn generation(
        &self,
        number: u64,
        digest: component::Digest,
        description: &Description,
    ) -> Interception {
        let sources = Arc::new(Sources::of(description));
        let generation = Generation {
            generation: number,
            digest: digest.to_string(),
            version: description.version.clone(),
            stateless: description.stateless,
        };
        self.send(Entry::Generation(generation), &sources, 0, 0);
        let recorder = self.clone();
        Interception::new(move || CallLog::new(recorder.clone(), number, sources.clone()))
    }

    /// Returns the access to its state, which does not keep the record open.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { shared: self.shared.clone() }
    }

    /// Holds bytes of a call. Returns false, and holds nothing, if more would be held than may be.
    fn hold(&self, bytes: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|held| *held <= MOST_HELD_BYTES);
        self.shared.held_bytes.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// Holds bytes that are few and needed.
    fn hold_always(&self, bytes: usize) {
        self.shared.held_bytes.fetch_add(bytes, Relaxed);
    }

    fn release(&self, bytes: usize) {
        self.shared.held_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Passes an entry to the writer, for which so many bytes are held and `more` are to be held. Returns
    /// false if it was left out.
    fn send(&self, entry: Entry, sources: &Arc<Sources>, held: usize, more: usize) -> bool {
        if !self.shared.goes_on() {
            self.release(held);
            return false;
        }
        let has_room = self.hold(more);
        let bytes = if has_room { held + more } else { held };
        let message = Message { entry, sources: sources.clone(), bytes };
        let left_out = match self.queue.try_reserve() {
            Ok(place) if has_room => {
                place.send(message);
                return true;
            }
            _ => message,
        };
        self.release(bytes);
        self.leave_out(&left_out.entry, sources);
        false
    }

    /// Ends the record if a call that is cut may have seen Secrets. Returns whether it does: then the call is
    /// left out.
    fn cut(&self, call: &Call, has_cut_secrets: bool, sources: &Sources) -> bool {
        let ends = !self.shared.config.secrets && (has_cut_secrets || sources.may_be_in(call));
        if ends {
            self.shared.lost.fetch_add(1, Relaxed);
            self.shared.miss_secrets();
        }
        ends
    }

    /// Counts an entry that is left out. Ends the record if the call may have seen Secrets.
    fn leave_out(&self, entry: &Entry, sources: &Sources) {
        self.shared.lost.fetch_add(1, Relaxed);
        let call = match entry {
            Entry::Start(Start { call, .. }) | Entry::Call(call) => call,
            Entry::File(_) | Entry::Generation(_) | Entry::Gone(_) | Entry::End(_) => return,
        };
        if !self.shared.config.secrets && sources.may_be_in(call) {
            self.shared.miss_secrets();
        }
    }
}

// === impl Progress ===

impl Progress {
    /// Returns the state.
    #[must_use]
    pub fn view(&self) -> RecorderView {
        let Shared { config, bytes, calls, lost, .. } = &*self.shared;
        RecorderView {
            file: config.file.clone(),
            bytes: bytes.load(Relaxed),
            limit: config.limit,
            calls: calls.load(Relaxed),
            lost: lost.load(Relaxed),
            exact: config.secrets,
            state: self.shared.state(),
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Returns whether calls are still recorded.
    fn goes_on(&self) -> bool {
        self.state() == RecordState::Recording
    }

    /// Ends the record, since a call that may have seen Secrets is missing.
    fn miss_secrets(&self) {
        self.has_missed_secrets.store(true, Relaxed);
        self.missed_secrets.notify_one();
    }

    fn state(&self) -> RecordState {
        if self.has_failed.load(Relaxed) {
            RecordState::Failed
        } else if self.is_full.load(Relaxed) {
            RecordState::Full
        } else if self.has_missed_secrets.load(Relaxed) {
            RecordState::SecretsMissed
        } else {
            RecordState::Recording
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
