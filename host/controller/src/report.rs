//! What happens, as it happens: the typed stream behind every line that `oarlock run` and `oarlock dev` print.
//!
//! A [`Reporter`] is handed to every part of the host, [`Reports`] is read by one printer. The channel between them is bounded in bytes,
//! and nobody ever waits for the printer: a line that finds the channel full is counted, and the count is a line once the printer
//! reads again. The lines of one plugin fill a part of the channel only, those of all plugins leave room for the host's own.

mod host_event;
mod human;
mod json;
mod terminal;
mod timestamp;
mod weight;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;

pub use self::host_event::{CallOutcome, HostEvent, Level, Mode, NextTry, NotificationType, Pairs};
pub use self::json::{to_json, write_json};
pub use self::terminal::{Lines, OneLine};
pub use self::timestamp::Timestamp;

/// How much is reported, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// Lines below this level are not made.
    pub level: Level,
    /// How much memory the lines that wait for the printer may take: all together; those about plugins three quarters of it, those about one
    /// generation of a plugin a quarter.
    pub max_bytes: usize,
}

/// One thing that happened. Serialises to one JSON object, displays as one line for people.
#[derive(Clone, Debug)]
pub struct Line {
    /// When.
    pub time: Timestamp,
    /// What.
    pub event: HostEvent,
    /// To which plugin; none when it is about the host.
    pub plugin: Option<Arc<str>>,
    /// To which loaded version of it.
    pub generation: Option<u64>,
}

/// Where lines go in. Cheap to clone; may be bound to one plugin.
#[derive(Clone, Debug)]
pub struct Reporter {
    shared: Arc<Shared>,
    sender: mpsc::UnboundedSender<Waiting>,
    about: Option<About>,
}

/// Where lines come out.
#[derive(Debug)]
pub struct Reports {
    shared: Arc<Shared>,
    receiver: mpsc::UnboundedReceiver<Waiting>,
}

/// One generation of a plugin.
#[derive(Clone, Debug)]
struct About {
    plugin: Arc<str>,
    generation: u64,
    /// What its lines take that wait.
    bytes: Arc<AtomicUsize>,
}

/// A line that waits for the printer, and what it takes.
#[derive(Debug)]
struct Waiting {
    line: Line,
    bytes: usize,
    about: Option<Arc<AtomicUsize>>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    /// What all lines that wait take.
    bytes: AtomicUsize,
    /// What those of them take that are about plugins.
    plugins_bytes: AtomicUsize,
    dropped: AtomicU64,
    dropped_ever: AtomicU64,
}

/// Makes the two ends.
#[must_use]
pub fn channel(config: Config) -> (Reporter, Reports) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        config,
        bytes: AtomicUsize::new(0),
        plugins_bytes: AtomicUsize::new(0),
        dropped: AtomicU64::new(0),
        dropped_ever: AtomicU64::new(0),
    });
    (Reporter { shared: shared.clone(), sender, about: None }, Reports { shared, receiver })
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { level: Level::Info, max_bytes: 16 << 20 }
    }
}

// === impl Reporter ===

impl Reporter {
    /// Returns a reporter whose lines are about one generation of a plugin.
    #[must_use]
    pub fn about(&self, plugin: &Arc<str>, generation: u64) -> Self {
        let about = About { plugin: plugin.clone(), generation, bytes: Arc::default() };
        Self { about: Some(about), ..self.clone() }
    }

    /// Whether lines of this level are made at all.
    #[must_use]
    pub fn enabled(&self, level: Level) -> bool {
        level >= self.shared.config.level
    }

    /// Reports one event. Never waits: when the channel is full, or nobody reads it any more, the line is counted instead.
    pub fn report(&self, event: HostEvent) {
        if !self.enabled(event.level()) {
            return;
        }
        let bytes = weight::of(&event);
        if !self.shared.admit(bytes, self.about.as_ref().map(|about| &*about.bytes)) {
            self.shared.dropped(1);
            return;
        }
        let (plugin, generation) = match &self.about {
            Some(About { plugin, generation, .. }) => (Some(plugin.clone()), Some(*generation)),
            None => (None, None),
        };
        let line = Line { time: Timestamp::now(), event, plugin, generation };
        let about = self.about.as_ref().map(|about| about.bytes.clone());
        if let Err(mpsc::error::SendError(waiting)) = self.sender.send(Waiting { line, bytes, about }) {
            self.shared.release(&waiting);
            self.shared.dropped(1);
        }
    }

    /// Lines that were counted instead of printed, since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped_ever.load(Ordering::Relaxed)
    }

    /// What the lines that wait for the printer take.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.shared.bytes.load(Ordering::Relaxed)
    }
}

// === impl Reports ===

impl Reports {
    /// Returns the next line, or none when every reporter is gone.
    pub async fn next(&mut self) -> Option<Line> {
        if let Some(line) = self.loss() {
            return Some(line);
        }
        match self.receiver.recv().await {
            Some(waiting) => {
                self.shared.release(&waiting);
                Some(waiting.line)
            }
            // Lines may have been lost while the last ones were taken out.
            None => self.loss(),
        }
    }

    /// Counts lines that were taken out and could not be printed.
    pub fn lost(&self, n_lines: u64) {
        self.shared.dropped(n_lines);
    }

    fn loss(&self) -> Option<Line> {
        let count = self.shared.dropped.swap(0, Ordering::Relaxed);
        let event = HostEvent::ReportsDropped { count };
        (count > 0).then(|| Line { time: Timestamp::now(), event, plugin: None, generation: None })
    }
}

// === impl Shared ===

impl Shared {
    /// Takes so much of the channel, or nothing if there is not so much.
    fn admit(&self, bytes: usize, of_plugin: Option<&AtomicUsize>) -> bool {
        let max = self.config.max_bytes;
        let take = |account: &AtomicUsize, limit: usize| {
            let taken = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
            account.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
        };
        let give_back = |account: &AtomicUsize| {
            account.fetch_sub(bytes, Ordering::Relaxed);
        };
        let Some(of_plugin) = of_plugin else {
            return take(&self.bytes, max);
        };
        if !take(of_plugin, max / 4) {
            return false;
        }
        if !take(&self.plugins_bytes, max / 4 * 3) {
            give_back(of_plugin);
            return false;
        }
        if !take(&self.bytes, max) {
            give_back(&self.plugins_bytes);
            give_back(of_plugin);
            return false;
        }
        true
    }

    fn release(&self, waiting: &Waiting) {
        self.bytes.fetch_sub(waiting.bytes, Ordering::Relaxed);
        if let Some(of_plugin) = &waiting.about {
            self.plugins_bytes.fetch_sub(waiting.bytes, Ordering::Relaxed);
            of_plugin.fetch_sub(waiting.bytes, Ordering::Relaxed);
        }
    }

    fn dropped(&self, n_lines: u64) {
        self.dropped.fetch_add(n_lines, Ordering::Relaxed);
        self.dropped_ever.fetch_add(n_lines, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
