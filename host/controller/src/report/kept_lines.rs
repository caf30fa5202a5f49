//! The newest lines about each plugin, for `oarlock logs`. Printing them does not remove them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Line;
use crate::followed::look_until;

/// The memory that the kept lines about one plugin may take. The oldest lines are forgotten first.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// Up to so many lines about a plugin, there is no room for more. Most plugins log a line or two.
const FEW_LINES: usize = 4;

/// The kept lines of all plugins that are loaded.
#[derive(Debug, Default)]
pub(super) struct AllKeptLines {
    plugins: Mutex<BTreeMap<Arc<str>, Arc<KeptLines>>>,
}

/// The kept lines about one plugin, numbered from 0.
#[derive(Debug)]
pub(crate) struct KeptLines {
    /// A random number, so that a number of a line is not used with another log: of another host, or of the
    /// plugin after it was loaded again.
    id: u64,
    lines: Mutex<Lines>,
    /// Notified of each line, and when the plugin was unloaded.
    changed: Notify,
}

/// Reads the lines about one plugin in order, first those that are kept, then new ones.
pub(crate) struct LineReader {
    kept: Arc<KeptLines>,
    next: u64,
}

/// The result of one read.
#[derive(Debug)]
pub(crate) struct ReadLines {
    /// Lines that were forgotten before they were read.
    pub(crate) skipped: u64,
    /// The number of the first line.
    pub(crate) first: u64,
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug)]
struct Lines {
    /// The lines and their bytes.
    lines: VecDeque<(Line, usize)>,
    bytes: usize,
    /// The number of the first line.
    first: u64,
    /// The plugin was unloaded.
    is_complete: bool,
}

// === impl AllKeptLines ===

impl AllKeptLines {
    pub(super) fn of(&self, plugin: &str) -> Option<Arc<KeptLines>> {
        self.plugins.lock().get(plugin).cloned()
    }

    /// Keeps the lines about a plugin from now on. Does nothing if they are kept already.
    pub(super) fn keep(&self, plugin: &Arc<str>) {
        self.plugins.lock().entry(plugin.clone()).or_insert_with(|| Arc::new(KeptLines::new()));
    }

    /// Forgets the lines about a plugin. Its readers come to their end.
    pub(super) fn forget(&self, plugin: &str) {
        if let Some(kept) = self.plugins.lock().remove(plugin) {
            kept.lines.lock().is_complete = true;
            kept.changed.notify_waiters();
        }
    }
}

// === impl KeptLines ===

impl KeptLines {
    fn new() -> Self {
        let lines = Lines { lines: VecDeque::new(), bytes: 0, first: 0, is_complete: false };
        Self { id: rand::random(), lines: Mutex::new(lines), changed: Notify::new() }
    }

    pub(super) fn add(&self, line: Line, bytes: usize) {
        {
            let mut lines = self.lines.lock();
            lines.bytes += bytes;
            // At the second line, a deque makes room for four.
            if lines.lines.len() < FEW_LINES {
                lines.lines.reserve_exact(1);
            }
            lines.lines.push_back((line, bytes));
            while lines.bytes > MAX_BYTES {
                let Some((_, bytes)) = lines.lines.pop_front() else { break };
                lines.bytes -= bytes;
                lines.first += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// Returns a reader that begins with the last `tail` lines; with all that are kept if it is none.
    pub(crate) fn reader(self: &Arc<Self>, tail: Option<u64>) -> LineReader {
        let lines = self.lines.lock();
        let end = lines.end();
        let next = tail.map_or(lines.first, |tail| end.saturating_sub(tail).max(lines.first));
        LineReader { kept: self.clone(), next }
    }

    /// Returns the name of this log.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns a reader that begins with a line, `LOG-NUMBER`; none if that line is of another log.
    pub(crate) fn reader_from(self: &Arc<Self>, line: &str) -> Option<LineReader> {
        let (id, number) = line.split_once('-')?;
        let next: u64 = number.parse().ok()?;
        let reader = self.reader(Some(0));
        // At the end of the lines, the reader waits for the next one.
        let is_of_this_log = id.parse() == Ok(self.id) && next <= reader.next;
        is_of_this_log.then_some(LineReader { next, ..reader })
    }
}

// === impl LineReader ===

impl LineReader {
    /// Returns the number of the line that is read next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the lines that there are. Does not wait.
    pub(crate) fn read(&mut self) -> ReadLines {
        let lines = self.kept.lines.lock();
        let skipped = lines.first.saturating_sub(self.next);
        let begin = usize::try_from(self.next.saturating_sub(lines.first)).unwrap_or(usize::MAX);
        let read: Vec<_> = lines.lines.iter().skip(begin).map(|(line, _)| line.clone()).collect();
        self.next = lines.end();
        ReadLines { skipped, first: self.next - read.len() as u64, lines: read }
    }

    /// Waits for further lines. Returns false when the plugin was unloaded.
    pub(crate) async fn changed(&self) -> bool {
        look_until(&self.kept.changed, || {
            let lines = self.kept.lines.lock();
            (lines.is_complete || lines.end() > self.next).then_some(!lines.is_complete)
        })
        .await
    }
}

// === impl Lines ===

impl Lines {
    /// Returns the number of the next line.
    fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, HostEvent, Level, Pairs, Reporter, channel, weight, write_json};
    use super::*;

    fn reporter(level: Level) -> (Reporter, Reporter) {
        let (reporter, _) = channel(Config { level, ..Config::default() });
        let plugin: Arc<str> = "p".into();
        reporter.keep_lines(&plugin);
        let about = reporter.about(&plugin, 1);
        (reporter, about)
    }

    fn log(about: &Reporter, level: Level, message: &str) {
        about.report(HostEvent::GuestLog {
            level,
            object: None,
            message: message.to_owned(),
            pairs: Default::default(),
        });
    }

    fn messages(read: &ReadLines) -> Vec<String> {
        let text = |line: &Line| line.to_string().rsplit(' ').next().unwrap().to_owned();
        read.lines.iter().map(text).collect()
    }

    #[tokio::test]
    async fn the_newest_lines_are_kept_whether_they_are_printed_or_not() {
        let (reporter, about) = reporter(Level::Error);
        for (level, message) in [(Level::Debug, "a"), (Level::Info, "b"), (Level::Error, "c")] {
            log(&about, level, message);
        }
        let kept = reporter.kept_lines("p").unwrap();
        assert_eq!(messages(&kept.reader(None).read()), ["b", "c"]);
        assert_eq!(messages(&kept.reader(Some(1)).read()), ["c"]);
        assert!(kept.reader(Some(0)).read().lines.is_empty());
        assert!(reporter.kept_lines("other").is_none());
        // From a line of this log, and not from one of another.
        let from = |line: String| kept.reader_from(&line).map(|mut reader| messages(&reader.read()));
        assert_eq!(from(format!("{}-1", kept.id())), Some(vec!["c".to_owned()]));
        assert_eq!(from(format!("{}-2", kept.id())), Some(vec![]));
        assert_eq!(from(format!("{}-3", kept.id())), None);
        assert_eq!(from(format!("{}-1", kept.id() ^ 1)), None);
        assert_eq!(from("1".to_owned()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_follows_new_lines_until_the_plugin_is_unloaded() {
        let (reporter, about) = reporter(Level::Info);
        let mut reader = reporter.kept_lines("p").unwrap().reader(None);
        log(&about, Level::Info, "a");
        assert!(reader.changed().await);
        assert_eq!(messages(&reader.read()), ["a"]);
        let waits = tokio::time::timeout(std::time::Duration::from_secs(1), reader.changed()).await;
        assert!(waits.is_err(), "there is no further line");
        reporter.forget_lines("p");
        assert!(!reader.changed().await);
    }

    #[tokio::test]
    async fn promise_4_the_kept_lines_of_a_plugin_are_bounded_and_losses_are_counted() {
        let (reporter, about) = reporter(Level::Info);
        let mut reader = reporter.kept_lines("p").unwrap().reader(None);
        for _ in 0..100 {
            log(&about, Level::Info, &"x".repeat(8 << 10));
        }
        let read = reader.read();
        assert!(!read.lines.is_empty() && read.lines.len() <= MAX_BYTES / (8 << 10), "{}", read.lines.len());
        assert_eq!(read.skipped + read.lines.len() as u64, 100);
        // A line that is too long on its own is not kept.
        log(&about, Level::Info, &"x".repeat(MAX_BYTES));
        assert_eq!((reader.read().skipped, reader.read().lines.len()), (1, 0));
    }

    #[tokio::test]
    async fn promise_4_the_kept_lines_and_their_text_are_bounded_in_bytes_whatever_a_guest_logs() {
        let texts = ["", "x", "\u{1}", "\"\\", "ä\u{1b}[31m", &"y".repeat(3_000), &"\u{7f}".repeat(700)];
        let (reporter, about) = reporter(Level::Info);
        let kept = reporter.kept_lines("p").unwrap();
        for n in 0..2_000 {
            let text = |n: usize| texts[n % texts.len()].to_owned();
            let pairs = (0..n % 64).map(|m| (text(m), text(n + m))).collect();
            let message = text(n / 7);
            about.report(HostEvent::GuestLog {
                level: Level::Info,
                object: None,
                message,
                pairs: Pairs(pairs),
            });
            let lines = kept.lines.lock();
            let bytes: usize = lines.lines.iter().map(|(line, _)| weight::of(&line.event)).sum();
            assert_eq!(bytes, lines.bytes);
            assert!(bytes <= MAX_BYTES, "{bytes}");
        }
        let read = kept.reader(None).read();
        assert!(!read.lines.is_empty());
        // Six characters escape one.
        let mut json = Vec::new();
        read.lines.iter().for_each(|line| write_json(&mut json, line).unwrap());
        let shown: usize = read.lines.iter().map(|line| line.to_string().len()).sum();
        assert!(json.len() <= 6 * MAX_BYTES && shown <= 6 * MAX_BYTES, "{} {shown}", json.len());
    }
}
