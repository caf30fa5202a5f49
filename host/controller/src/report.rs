//! What happens, as it happens: the typed stream behind every line that `oarlock run` and `oarlock dev` print.
//!
//! A [`Reporter`] is handed to every part of the host, [`Reports`] is read by one printer. The channel between them is bounded and
//! never loses a line in silence: what finds it full is counted, and the count is the next line. Whoever can wait, waits
//! with [`Reporter::room`] before it makes more lines, so that a slow printer slows the plugins' calls
//! down instead.

mod event;
mod human;
mod timestamp;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tokio::sync::mpsc;

pub use self::event::{Again, Delivery, Event, Level, Mode, NotificationType, Pairs};
pub use self::timestamp::Timestamp;

/// What a full channel does to those who make lines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WhenFull {
    /// They wait where they can, between two calls of a plugin, until half of the channel is free.
    #[default]
    Wait,
    /// They never wait; lines are counted and dropped.
    Drop,
}

/// How much is reported, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// Lines below this level are not made.
    pub level: Level,
    /// Lines that may wait for the printer.
    pub capacity: usize,
    /// What happens when that many wait.
    pub when_full: WhenFull,
}

/// One thing that happened. Serialises to one JSON object, displays as one line for people.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// When.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
    /// To which plugin; none when it is about the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Arc<str>>,
    /// To which loaded version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// Where lines go in. Cheap to clone; may be bound to one plugin.
#[derive(Clone, Debug)]
pub struct Reporter {
    shared: Arc<Shared>,
    sender: mpsc::Sender<Line>,
    about: Option<(Arc<str>, u64)>,
}

/// Where lines come out.
#[derive(Debug)]
pub struct Reports {
    shared: Arc<Shared>,
    receiver: mpsc::Receiver<Line>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    dropped: AtomicU64,
    dropped_ever: AtomicU64,
}

/// Makes the two ends.
#[must_use]
pub fn channel(config: Config) -> (Reporter, Reports) {
    let (sender, receiver) = mpsc::channel(config.capacity.max(2));
    let shared = Arc::new(Shared { config, dropped: AtomicU64::new(0), dropped_ever: AtomicU64::new(0) });
    (Reporter { shared: shared.clone(), sender, about: None }, Reports { shared, receiver })
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { level: Level::Info, capacity: 65_536, when_full: WhenFull::Wait }
    }
}

// === impl Reporter ===

impl Reporter {
    /// Returns a reporter whose lines are about one generation of a plugin.
    #[must_use]
    pub fn about(&self, plugin: &Arc<str>, generation: u64) -> Self {
        Self { about: Some((plugin.clone(), generation)), ..self.clone() }
    }

    /// Whether lines of this level are made at all.
    #[must_use]
    pub fn enabled(&self, level: Level) -> bool {
        level >= self.shared.config.level
    }

    /// Reports one event. Never waits: when the channel is full, the line is counted instead.
    pub fn report(&self, event: Event) {
        if !self.enabled(event.level()) {
            return;
        }
        let (plugin, generation) = match &self.about {
            Some((plugin, generation)) => (Some(plugin.clone()), Some(*generation)),
            None => (None, None),
        };
        let line = Line { time: Timestamp::now(), event, plugin, generation };
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(line) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            self.shared.dropped_ever.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until at least half of the channel is free, if so configured. For those who are about to make more lines.
    pub async fn room(&self) {
        let half = self.sender.max_capacity() / 2;
        if self.shared.config.when_full == WhenFull::Drop || self.sender.capacity() >= half {
            return;
        }
        // The permits are given back at once: what counts is that they were to be had. A closed channel has no printer to wait for.
        drop(self.sender.reserve_many(half).await);
    }

    /// Lines that were counted instead of reported, since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped_ever.load(Ordering::Relaxed)
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
            Some(line) => Some(line),
            // Lines may have been lost while the last ones were taken out.
            None => self.loss(),
        }
    }

    fn loss(&self) -> Option<Line> {
        let count = self.shared.dropped.swap(0, Ordering::Relaxed);
        let event = Event::ReportsDropped { count };
        (count > 0).then(|| Line { time: Timestamp::now(), event, plugin: None, generation: None })
    }
}

#[cfg(test)]
mod tests;
