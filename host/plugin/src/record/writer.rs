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

use super::{End, EndReason, Entry, File, Message, Shared, now_ms, redaction::Redaction};

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
}

struct Output {
    shared: Arc<Shared>,
    file: fs::File,
    encoder: Encoder,
    /// `None` if values of Secrets are recorded.
    redaction: Option<Box<Redaction>>,
    n_calls: u64,
    is_ended: bool,
}

// === impl Writer ===

impl Writer {
    pub(super) fn create(shared: Arc<Shared>, waiting: mpsc::Receiver<Message>) -> io::Result<Self> {
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&shared.config.file)?;
        let (mut encoder, head) = Encoder::new();
        file.write_all(&head)?;
        shared.bytes.store(head.len() as u64, Relaxed);
        let config = &shared.config;
        encoder.add(&Entry::File(File {
            plugin: config.plugin.to_string(),
            host: config.host.to_owned(),
            time_ms: now_ms(),
            exact: config.secrets,
        }))?;
        let redaction = (!config.secrets).then(|| Box::new(Redaction::new()));
        let mut output =
            Output { shared: shared.clone(), file, encoder, redaction, n_calls: 0, is_ended: false };
        output.flush()?;
        Ok(Self { waiting, output })
    }

    /// Writes until every [`Recorder`](super::Recorder) and instance is dropped, or the future `stop` ends;
    /// then what waits.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. The record is then useless from there on; calls go on.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Self { mut waiting, mut output } = self;
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
        loop {
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
            };
            let ends = flush && messages.is_empty() && waiting.is_closed() && waiting.is_empty();
            has_news = !messages.is_empty();
            let work = move || {
                let mut output = output;
                let done = output.write(messages, flush, ends);
                (output, done)
            };
            let done;
            (output, done) = match tokio::task::spawn_blocking(work).await {
                Ok(done) => done,
                Err(error) => return Err(io::Error::other(error)),
            };
            if let Err(error) = done {
                output.shared.has_failed.store(true, Relaxed);
                return Err(error);
            }
            if ends {
                return Ok(());
            }
        }
    }
}

// === impl Output ===

impl Output {
    fn write(&mut self, messages: Vec<Message>, flush: bool, ends: bool) -> io::Result<()> {
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

    /// Writes the block, or the last entry if the file would exceed its limit. Nothing follows the last
    /// entry.
    fn flush(&mut self) -> io::Result<()> {
        if self.is_ended {
            return Ok(());
        }
        let block = self.encoder.block()?;
        let written = self.shared.bytes.load(Relaxed);
        if written + block.len() as u64 + END_BYTES > self.shared.config.limit {
            return self.end(EndReason::Limit);
        }
        self.put(&block)?;
        self.shared.calls.store(self.n_calls, Relaxed);
        Ok(())
    }

    fn end(&mut self, reason: EndReason) -> io::Result<()> {
        self.is_ended = true;
        if reason == EndReason::Limit {
            self.shared.is_full.store(true, Relaxed);
        }
        let lost = self.shared.lost.load(Relaxed);
        let forgotten_values = self.redaction.as_ref().map_or(0, |it| it.n_forgotten());
        self.encoder.add(&Entry::End(End { reason, lost, forgotten_values }))?;
        let block = self.encoder.block()?;
        self.put(&block)
    }

    fn put(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.shared.bytes.fetch_add(block.len() as u64, Relaxed);
        Ok(())
    }
}
