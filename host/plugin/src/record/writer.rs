//! Writes the entries of a record to its file: replaces values of Secrets, compresses, and keeps the limit.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use oarlock_record_format::file::Encoder;
use tokio::{sync::mpsc, time::MissedTickBehavior};

use super::{End, EndReason, Entry, File, Message, Shared, Unlearned, now_ms, redaction::Redaction};

/// The interval after which a block is written, however small.
const FLUSH: Duration = Duration::from_secs(1);

/// The messages that are handled together.
const BATCH: usize = 256;

/// The room that is kept for the last entry.
const END_BYTES: u64 = 1 << 10;

/// Writes one record. The caller runs it.
pub struct Writer {
    waiting: mpsc::Receiver<Message>,
    output: Output,
    /// Called once when the files of the plugin have reached their limit.
    when_full: Option<Box<dyn FnOnce() + Send>>,
}

struct Output {
    shared: Arc<Shared>,
    file: fs::File,
    encoder: Encoder,
    /// `None` if values of Secrets are recorded.
    redaction: Option<Box<Redaction>>,
    n_calls: u64,
    /// The calls and starts that are in the file.
    n_written: u64,
    is_ended: bool,
}

// === impl Writer ===

impl Writer {
    pub(super) fn create(shared: Arc<Shared>, waiting: mpsc::Receiver<Message>) -> io::Result<Self> {
        let config = &shared.config;
        let (mut encoder, head) = Encoder::new();
        let reserved = head.len() as u64 + END_BYTES;
        if !config.budget.take(reserved) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let create = || {
            let mut file = fs::OpenOptions::new();
            let mut file = file.write(true).create_new(true).mode(0o600).open(&config.file)?;
            file.write_all(&head)?;
            Ok(file)
        };
        let file = create().inspect_err(|_: &io::Error| config.budget.give_back(reserved))?;
        shared.bytes.store(head.len() as u64, Relaxed);
        shared.taken.store(reserved, Relaxed);
        encoder.add(&Entry::File(File {
            plugin: config.plugin.to_string(),
            host: config.host.to_owned(),
            time_ms: now_ms(),
            exact: config.secrets,
        }))?;
        let redaction = (!config.secrets).then(|| Box::new(Redaction::new()));
        let mut output = Output {
            shared: shared.clone(),
            file,
            encoder,
            redaction,
            n_calls: 0,
            n_written: 0,
            is_ended: false,
        };
        output.flush()?;
        Ok(Self { waiting, output, when_full: None })
    }

    /// Has the writer call this once, when the files of the plugin have reached their limit.
    #[must_use]
    pub fn when_full(self, call: impl FnOnce() + Send + 'static) -> Self {
        Self { when_full: Some(Box::new(call)), ..self }
    }

    /// Has each further write fail.
    #[cfg(test)]
    pub(super) fn fail_writes(&mut self) -> io::Result<()> {
        // This handle is for reading only.
        self.output.file = fs::File::open(&self.output.shared.config.file)?;
        Ok(())
    }

    /// Writes until every [`Recorder`](super::Recorder) and instance is dropped, or the future `stop` ends;
    /// then what waits. The last entry counts the calls that are still in progress as lost.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. The record is then useless from there on; calls go on, and
    /// [`Progress::view`](super::Progress::view) counts those that it lacks.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Self { mut waiting, mut output, mut when_full } = self;
        let shared = output.shared.clone();
        // When Secrets are missed, nothing more is sent: what waits is written, and the record ends.
        let missed_secrets = shared.missed_secrets.notified();
        let mut stop = std::pin::pin!(async {
            tokio::select! {
                () = stop => {}
                () = missed_secrets => {}
            }
        });
        let mut ticks = tokio::time::interval(FLUSH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_stopping = false;
        let mut has_news = false;
        let mut ends = false;
        loop {
            if shared.is_full.load(Relaxed)
                && let Some(call) = when_full.take()
            {
                call();
            }
            if ends {
                return Ok(());
            }
            let mut messages = Vec::new();
            let flush = tokio::select! {
                biased;
                () = &mut stop, if !is_stopping => {
                    is_stopping = true;
                    waiting.close();
                    continue;
                }
                // Without news nothing wakes up.
                _ = ticks.tick(), if has_news => true,
                n = waiting.recv_many(&mut messages, BATCH) => n == 0,
                () = shared.must_learn.notified() => false,
            };
            ends = flush && messages.is_empty() && waiting.is_closed() && waiting.is_empty();
            has_news = !messages.is_empty() || (has_news && !flush);
            let work = move || {
                let mut output = output;
                let done = output.write(messages, flush, ends);
                (output, done)
            };
            let done;
            (output, done) = match tokio::task::spawn_blocking(work).await {
                Ok(done) => done,
                Err(error) => {
                    shared.fail(error.to_string());
                    return Err(io::Error::other(error));
                }
            };
            if let Err(error) = done {
                shared.fail(error.to_string());
                return Err(error);
            }
        }
    }
}

// === impl Output ===

impl Output {
    fn write(&mut self, messages: Vec<Message>, flush: bool, ends: bool) -> io::Result<()> {
        // Of all calls that ended before one of these messages was sent, the contents are here.
        self.learn();
        for Message { entry, sources, bytes } in messages {
            self.shared.held_bytes.fetch_sub(bytes, Relaxed);
            if self.is_ended {
                continue;
            }
            let mut entry = entry;
            if let Some(redaction) = &mut self.redaction {
                redaction.redact(&mut entry, &sources);
            }
            if let Entry::Call(call) = &mut entry {
                self.n_calls += 1;
                call.number = self.n_calls;
            }
            if !self.encoder.add(&entry)? {
                self.shared.lost.fetch_add(1, Relaxed);
            } else if matches!(entry, Entry::Start(_) | Entry::Call(_)) {
                self.n_written += 1;
            }
            if self.encoder.is_full() {
                self.flush()?;
            }
        }
        if flush {
            self.flush()?;
        }
        if ends && !self.is_ended {
            let has_missed_secrets = self.shared.has_missed_secrets.load(Relaxed);
            self.end(if has_missed_secrets { EndReason::SecretsMissed } else { EndReason::Stopped })?;
        }
        Ok(())
    }

    /// Learns the contents that have come since the last time.
    fn learn(&mut self) {
        let Unlearned { contents, bytes } = std::mem::take(&mut *self.shared.unlearned.lock());
        if let Some(redaction) = &mut self.redaction
            && !self.is_ended
        {
            contents.into_iter().for_each(|content| redaction.learn(content));
        }
        self.shared.held_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Writes the block, or the last entry if the plugin's files would exceed their limit. Nothing follows
    /// the last entry.
    fn flush(&mut self) -> io::Result<()> {
        if self.is_ended {
            return Ok(());
        }
        let block = self.encoder.block()?;
        if block.is_empty() {
            return Ok(());
        }
        let bytes = block.len() as u64;
        if !self.shared.config.budget.take(bytes) {
            return self.end(EndReason::Limit);
        }
        self.shared.taken.fetch_add(bytes, Relaxed);
        self.put(&block)?;
        self.shared.calls.store(self.n_calls, Relaxed);
        self.shared.saved.store(self.n_written, Relaxed);
        Ok(())
    }

    fn end(&mut self, reason: EndReason) -> io::Result<()> {
        self.is_ended = true;
        if reason == EndReason::Limit {
            self.shared.is_full.store(true, Relaxed);
        }
        let lost = match reason {
            // Those that are in progress never reach the file.
            EndReason::Stopped => self.shared.begun.load(Relaxed).saturating_sub(self.n_written),
            EndReason::Limit | EndReason::SecretsMissed => self.shared.lost.load(Relaxed),
        };
        self.shared.lost.store(lost, Relaxed);
        let forgotten_values = self.redaction.as_ref().map_or(0, |it| it.n_forgotten());
        self.encoder.add(&Entry::End(End { reason, lost, forgotten_values }))?;
        let block = self.encoder.block()?;
        self.put(&block)?;
        let unused = END_BYTES.saturating_sub(block.len() as u64);
        self.shared.taken.fetch_sub(unused, Relaxed);
        self.shared.config.budget.give_back(unused);
        Ok(())
    }

    fn put(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.shared.bytes.fetch_add(block.len() as u64, Relaxed);
        Ok(())
    }
}
