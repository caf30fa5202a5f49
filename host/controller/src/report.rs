//! The events of the host and the channel to the printer: the source of every line that `oarlock run` and
//! `oarlock dev` print.
//!
//! Every part of the host has a [`Reporter`]; one printer reads [`Reports`]. The channel between them is
//! bounded in bytes. [`Reporter::report`] never waits: a line that does not fit is dropped and counted, and
//! the printer gets the count as a line when it reads again. The lines of one generation of a plugin may take
//! a quarter of the channel, those of all plugins three quarters.
//!
//! The newest lines about each plugin are also [kept](kept_lines), whether they are printed or not.

mod call_outcome;
mod counted;
mod hint;
mod host_event;
mod human;
mod json;
mod kept_lines;
mod level;
mod object_names;
mod terminal;
mod timestamp;
mod weight;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;

pub use self::call_outcome::{CallOutcome, NextTry};
pub use self::counted::Counted;
pub use self::host_event::{HostEvent, Mode, NotificationType, Pairs, Suspender};
pub(crate) use self::human::Named;
pub use self::json::{to_json, write_json, write_json_pretty};
use self::kept_lines::AllKeptLines;
pub(crate) use self::kept_lines::{KeptLines, LineReader};
pub use self::level::Level;
pub use self::object_names::with_object_names;
pub use self::terminal::{Lines, OneLine};
pub use self::timestamp::Timestamp;
pub use crate::generations::GenerationState;

/// Which events are reported, and how much memory their lines may take.
#[derive(Clone, Debug)]
pub struct Config {
    /// Events below this level make no line of the channel.
    pub level: Level,
    /// The memory that the lines in the channel may take. Lines about plugins may take three quarters of it,
    /// lines about one generation of a plugin a quarter.
    pub max_bytes: usize,
}

/// One reported event. Serialises as one JSON object; displays as one line for people.
#[derive(Clone, Debug)]
pub struct Line {
    /// The time of the event.
    pub time: Timestamp,
    /// The event.
    pub event: HostEvent,
    /// The plugin that the event is about; none when it is about the host.
    pub plugin: Option<Arc<str>>,
    /// The generation of that plugin.
    pub generation: Option<u64>,
}

/// The sending end. Cheap to clone; may be bound to one generation of a plugin.
#[derive(Clone, Debug)]
pub struct Reporter {
    shared: Arc<ChannelState>,
    sender: mpsc::UnboundedSender<Waiting>,
    about: Option<About>,
}

/// The receiving end.
#[derive(Debug)]
pub struct Reports {
    shared: Arc<ChannelState>,
    receiver: mpsc::UnboundedReceiver<Waiting>,
}

/// The generation of a plugin that a reporter is bound to.
#[derive(Clone, Debug)]
struct About {
    plugin: Arc<str>,
    generation: u64,
    /// The bytes of its lines in the channel.
    bytes: Arc<AtomicUsize>,
    kept: Option<Arc<KeptLines>>,
}

/// A line in the channel, and its bytes.
#[derive(Debug)]
struct Waiting {
    line: Line,
    bytes: usize,
    about: Option<Arc<AtomicUsize>>,
}

#[derive(Debug)]
struct ChannelState {
    config: Config,
    kept: AllKeptLines,
    /// The bytes of all lines in the channel.
    bytes: AtomicUsize,
    /// The bytes of the lines about plugins.
    plugins_bytes: AtomicUsize,
    /// Lines dropped since the last [`HostEvent::ReportsDropped`].
    dropped: AtomicU64,
    /// Lines dropped since the start.
    dropped_ever: AtomicU64,
}

/// Lines of this level and above are kept, and those below that are printed.
const KEPT_LEVEL: Level = Level::Info;

/// Returns the two ends of a channel.
#[must_use]
pub fn channel(config: Config) -> (Reporter, Reports) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(ChannelState {
        config,
        kept: AllKeptLines::default(),
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
        let kept = self.shared.kept.of(plugin);
        let about = About { plugin: plugin.clone(), generation, bytes: Arc::default(), kept };
        Self { about: Some(about), ..self.clone() }
    }

    /// Keeps the newest lines about a plugin from now on, for reporters that are bound to it later.
    pub(crate) fn keep_lines(&self, plugin: &Arc<str>) {
        self.shared.kept.keep(plugin);
    }

    /// Forgets the kept lines about a plugin.
    pub(crate) fn forget_lines(&self, plugin: &str) {
        self.shared.kept.forget(plugin);
    }

    /// Returns the kept lines about a plugin, if the host has such a plugin.
    pub(crate) fn kept_lines(&self, plugin: &str) -> Option<Arc<KeptLines>> {
        self.shared.kept.of(plugin)
    }

    /// Returns whether events of this level are printed, or kept when they are about a plugin.
    #[must_use]
    pub fn enabled(&self, level: Level) -> bool {
        if self.about.is_some() {
            self.enabled_about_plugins(level)
        } else {
            level >= self.shared.config.level
        }
    }

    /// Returns whether events of this level that are about a plugin are printed or kept.
    pub(crate) fn enabled_about_plugins(&self, level: Level) -> bool {
        level >= self.shared.config.level.min(KEPT_LEVEL)
    }

    /// Reports one event. Never waits: if the channel is full, or its receiver is gone, the line is dropped
    /// and counted.
    pub fn report(&self, event: HostEvent) {
        if !self.enabled(event.level()) {
            return;
        }
        let bytes = weight::of(&event);
        let (plugin, generation) = match &self.about {
            Some(About { plugin, generation, .. }) => (Some(plugin.clone()), Some(*generation)),
            None => (None, None),
        };
        let is_printed = event.level() >= self.shared.config.level;
        let line = Line { time: Timestamp::now(), event, plugin, generation };
        if let Some(kept) = self.about.as_ref().and_then(|about| about.kept.as_ref()) {
            kept.add(line.clone(), bytes);
        }
        if !is_printed {
            return;
        }
        if !self.shared.admit(bytes, self.about.as_ref().map(|about| &*about.bytes)) {
            self.shared.dropped(1);
            return;
        }
        let about = self.about.as_ref().map(|about| about.bytes.clone());
        if let Err(mpsc::error::SendError(waiting)) = self.sender.send(Waiting { line, bytes, about }) {
            self.shared.release(&waiting);
            self.shared.dropped(1);
        }
    }

    /// Returns the number of lines dropped since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped_ever.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the lines in the channel.
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
            // Lines may have been dropped since the last line was received.
            None => self.loss(),
        }
    }

    /// Counts lines that were received and could not be printed.
    pub fn lost(&self, n_lines: u64) {
        self.shared.dropped(n_lines);
    }

    fn loss(&self) -> Option<Line> {
        let count = self.shared.dropped.swap(0, Ordering::Relaxed);
        let event = HostEvent::ReportsDropped { count };
        (count > 0).then(|| Line { time: Timestamp::now(), event, plugin: None, generation: None })
    }
}

// === impl ChannelState ===

impl ChannelState {
    /// Reserves so many bytes of the channel, and returns whether it has them.
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
