//! Records: all calls of one plugin, and everything that crossed the border meanwhile, in one file.
//!
//! ```text
//! instance ── CallLog ──┐ one message for each call, when it ends
//! instance ── CallLog ──┴── bounded queue ──> Writer: replaces values of Secrets, compresses, writes
//!                       └── Unlearned ──────> (values of Secrets, at once)
//! ```
//!
//! A call is never delayed: when the queue is full, the call is left out, and the next one says so; when the
//! calls in progress are too large, their last imports are cut off. When the plugin's files have reached
//! their limit, the record ends, since a replay needs the beginning.
//!
//! Calls are written in the order in which they end, and a call that has received a value of a Secret may
//! take longer than another one that receives a copy of the value. So the writer receives the values at once,
//! also those of calls that are left out or cut, and learns them before it writes a call that ended later.
//! The record ends if the memory has no room for them: nothing would replace them in later calls.

mod budget;
mod call_log;
mod ended;
mod pseudonyms;
mod redaction;
mod writer;

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

pub use oarlock_record_format::entry::{
    Call, End, EndReason, Ended, Entry, File, Generation, Gone, Import, Kind, Start,
};
pub use oarlock_record_format::file::{Error, FIRST_BLOCK, Reader, VERSION};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{Notify, mpsc};

pub use self::budget::Budget;
pub(crate) use self::ended::ended;
pub(crate) use self::redaction::targets_secrets;
pub use self::writer::Writer;
use self::{
    call_log::CallLog,
    redaction::{SecretContent, Sources},
};
use crate::Configuration;
use crate::{Interception, component, contract::Description};

/// The messages that may wait for the writer.
const MOST_WAITING: usize = 4_096;

/// The bytes of calls that may be in progress or wait for the writer, and of unlearned contents of Secrets.
const MOST_HELD_BYTES: usize = 64 << 20;

/// The bytes of unlearned contents that wake the writer. Fewer wait for the next call.
const LEARN_AT_BYTES: usize = 1 << 20;

/// Configures a record.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file, which must not exist. It contains objects of the cluster: only the owner may read it.
    pub file: PathBuf,
    /// What all files of the plugin may have together.
    pub budget: Budget,
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
    /// The maximum size: what other files of the plugin leave of their limit.
    pub limit: u64,
    /// The calls in it.
    pub calls: u64,
    /// The calls that are missing: the writer did not keep up, or the record has failed.
    pub lost: u64,
    /// False if values of Secrets are replaced.
    pub exact: bool,
    /// Whether it goes on.
    pub state: RecordState,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a record goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// Calls are recorded.
    Recording,
    /// The files of the plugin have reached their limit. Further calls are not recorded.
    Full,
    /// The file cannot be created or written. Further calls are not recorded.
    Failed,
    /// The writer did not receive values of Secrets, so it could not replace them in later calls. Further
    /// calls are not recorded.
    SecretsMissed,
}

/// What the interceptors and the writer share.
pub(crate) struct Shared {
    config: Config,
    bytes: AtomicU64,
    /// What the file has taken of the budget.
    taken: AtomicU64,
    calls: AtomicU64,
    lost: AtomicU64,
    /// The calls and starts that began, also those after the end of the record.
    begun: AtomicU64,
    /// The calls and starts in the blocks that were written.
    saved: AtomicU64,
    /// The bytes of the calls that are in progress or wait for the writer, and of the unlearned contents.
    held_bytes: AtomicUsize,
    unlearned: Mutex<Unlearned>,
    /// Wakes the writer, since many contents are unlearned.
    must_learn: Notify,
    instances: AtomicU64,
    is_full: AtomicBool,
    /// Why the record has failed.
    failure: OnceLock<String>,
    /// The writer did not receive values of Secrets.
    has_missed_secrets: AtomicBool,
    /// Wakes the writer when it is so.
    missed_secrets: Notify,
}

/// Contents of Secrets that the writer has not learned yet.
#[derive(Default)]
struct Unlearned {
    contents: Vec<SecretContent>,
    /// The bytes that are held for them.
    bytes: usize,
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
    /// When the file exists, or cannot be created, or the [`Budget`] is used up.
    pub fn create(config: Config) -> std::io::Result<(Self, Writer)> {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let shared = Arc::new(Shared::new(config));
        let writer = Writer::create(shared.clone(), waiting)?;
        Ok((Self { shared, queue }, writer))
    }

    /// Returns the record of a file that cannot be created. It counts the calls that it lacks.
    #[must_use]
    pub fn failed(config: Config, reason: String) -> Self {
        let (queue, _) = mpsc::channel(1);
        let shared = Shared::new(config);
        shared.fail(reason);
        Self { shared: Arc::new(shared), queue }
    }

    /// Records the instances of one generation. `secret_config` is its configuration if that is of a Secret.
    #[must_use]
    pub fn generation(
        &self,
        number: u64,
        digest: component::Digest,
        description: &Description,
        secret_config: Option<Configuration>,
    ) -> Interception {
        let sources = Arc::new(Sources::of(description, secret_config.is_some()));
        if let Some(config) = secret_config {
            self.learn(SecretContent::Config(config));
        }
        let generation = Generation {
            generation: number,
            digest: digest.to_string(),
            version: description.version.clone(),
            stateless: description.stateless,
            declares_secrets: sources.are_any(),
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
        self.leave_out(&left_out.entry);
        false
    }

    /// Counts an entry that is left out, if it is a call.
    fn leave_out(&self, entry: &Entry) {
        if matches!(entry, Entry::Start(_) | Entry::Call(_)) {
            self.shared.lost.fetch_add(1, Relaxed);
        }
    }

    /// Returns whether the writer replaces values of Secrets.
    fn redacts(&self) -> bool {
        !self.shared.config.secrets
    }

    /// Passes a content to the writer, which learns it before it writes any call that ends from now on.
    /// Without room for it the record ends.
    fn learn(&self, content: SecretContent) {
        if !self.redacts() || !self.shared.goes_on() {
            return;
        }
        let bytes = content.size();
        if !self.hold(bytes) {
            self.shared.miss_secrets();
            return;
        }
        let mut unlearned = self.shared.unlearned.lock();
        unlearned.contents.push(content);
        unlearned.bytes += bytes;
        if unlearned.bytes >= LEARN_AT_BYTES {
            self.shared.must_learn.notify_one();
        }
    }
}

// === impl Progress ===

impl Progress {
    /// Returns the state.
    #[must_use]
    pub fn view(&self) -> RecorderView {
        let Shared { config, bytes, taken, calls, lost, begun, saved, failure, .. } = &*self.shared;
        let by_others = config.budget.taken().saturating_sub(taken.load(Relaxed));
        let state = self.shared.state();
        let lost = match state {
            // The file has no call that was in progress or waited when it failed, and no later one.
            RecordState::Failed => begun.load(Relaxed).saturating_sub(saved.load(Relaxed)),
            RecordState::Recording | RecordState::Full | RecordState::SecretsMissed => lost.load(Relaxed),
        };
        RecorderView {
            file: config.file.clone(),
            bytes: bytes.load(Relaxed),
            limit: config.budget.limit().saturating_sub(by_others),
            calls: calls.load(Relaxed),
            lost,
            exact: config.secrets,
            state,
            reason: failure.get().cloned(),
        }
    }

    /// Ends the record, whose writer has ended with a panic.
    pub fn fail(&self, reason: String) {
        self.shared.fail(reason);
    }
}

// === impl Shared ===

impl Shared {
    fn new(config: Config) -> Self {
        Self {
            config,
            bytes: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            saved: AtomicU64::new(0),
            held_bytes: AtomicUsize::new(0),
            unlearned: Mutex::default(),
            must_learn: Notify::new(),
            instances: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            failure: OnceLock::new(),
            has_missed_secrets: AtomicBool::new(false),
            missed_secrets: Notify::new(),
        }
    }

    /// Notes why the record has failed. The first reason stays.
    fn fail(&self, reason: String) {
        let _ = self.failure.set(reason);
    }

    /// Returns whether calls are still recorded.
    fn goes_on(&self) -> bool {
        self.state() == RecordState::Recording
    }

    /// Ends the record, since the writer does not receive values of Secrets.
    fn miss_secrets(&self) {
        self.has_missed_secrets.store(true, Relaxed);
        self.missed_secrets.notify_one();
    }

    fn state(&self) -> RecordState {
        if self.failure.get().is_some() {
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
