//! Records: all calls of one plugin, and everything that crossed the border meanwhile, in one file.
//!
//! ```text
//! instance ── CallLog ──┐ one message for each call, when it ends
//! instance ── CallLog ──┴── bounded queue ──> Writer: replaces values of Secrets, compresses, writes
//! ```
//!
//! A call is never delayed: when the queue is full, the call is left out, and the next one says so. When the
//! file has reached its limit, the record ends, since a replay needs the beginning.

mod call_log;
mod entry;
mod format;
mod pseudonyms;
mod redaction;
mod writer;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use tokio::sync::mpsc;

pub use self::entry::{Call, End, EndReason, Ended, Entry, File, Generation, Gone, Import, Kind, Start};
pub use self::format::{Error, Reader, VERSION};
pub use self::writer::Writer;
use self::{call_log::CallLog, redaction::Sources};
use crate::{Interception, component, contract::Description};

/// The messages that may wait for the writer.
const MOST_WAITING: usize = 4_096;

/// The bytes of calls that may wait for the writer.
const MOST_WAITING_BYTES: u64 = 64 << 20;

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
}

/// What the interceptors and the writer share.
pub(crate) struct Shared {
    config: Config,
    bytes: AtomicU64,
    calls: AtomicU64,
    lost: AtomicU64,
    waiting_bytes: AtomicU64,
    instances: AtomicU64,
    is_full: AtomicBool,
    has_failed: AtomicBool,
}

/// An entry on its way to the writer.
pub(crate) struct Message {
    entry: Entry,
    /// Which answers are values of Secrets.
    sources: Arc<Sources>,
    bytes: u64,
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
            waiting_bytes: AtomicU64::new(0),
            instances: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
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
        self.send(Entry::Generation(generation), &sources, 0);
        let recorder = self.clone();
        Interception::new(move || CallLog::new(recorder.clone(), number, sources.clone()))
    }

    /// Returns the access to its state, which does not keep the record open.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { shared: self.shared.clone() }
    }

    /// Passes an entry to the writer. Returns false if it was left out.
    fn send(&self, entry: Entry, sources: &Arc<Sources>, bytes: u64) -> bool {
        let waiting = &self.shared.waiting_bytes;
        let message = Message { entry, sources: sources.clone(), bytes };
        if waiting.fetch_add(bytes, Relaxed) + bytes <= MOST_WAITING_BYTES
            && self.queue.try_send(message).is_ok()
        {
            return true;
        }
        waiting.fetch_sub(bytes, Relaxed);
        self.shared.lost.fetch_add(1, Relaxed);
        false
    }
}

// === impl Progress ===

impl Progress {
    /// Returns the state.
    #[must_use]
    pub fn view(&self) -> RecorderView {
        let Shared { config, bytes, calls, lost, waiting_bytes: _, instances: _, is_full, has_failed } =
            &*self.shared;
        RecorderView {
            file: config.file.clone(),
            bytes: bytes.load(Relaxed),
            limit: config.limit,
            calls: calls.load(Relaxed),
            lost: lost.load(Relaxed),
            exact: config.secrets,
            state: match (has_failed.load(Relaxed), is_full.load(Relaxed)) {
                (true, _) => RecordState::Failed,
                (false, true) => RecordState::Full,
                (false, false) => RecordState::Recording,
            },
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Returns whether calls are still recorded.
    fn goes_on(&self) -> bool {
        !self.is_full.load(Relaxed) && !self.has_failed.load(Relaxed)
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
