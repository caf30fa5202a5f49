//! What a resource's objects have in common, learned from some of them, and compressing and decompressing with it.
//!
//! Learning is cheap, 4 ms from 200 objects and less than 2 MB: segments that many objects have ([`cover`]), then a few whole
//! objects. In front stand statistics of how such JSON comes out, which are the same for all resources: `statistics.bin`, the
//! head of a dictionary that zstd's trainer made of Pods. Where they do not fit, zstd uses statistics of its own for that text.
//!
//! Measured over 10,000 Pods of 4,103 bytes from 250 templates: 463 bytes each with 200 samples from all over the list, 590
//! with 100 from its first 500 objects, which are of a few templates only; 1,656 without a dictionary. zstd's trainer
//! gives 472 in 24 ms; it takes 10 MB, which the C library does not give back.

mod cover;

use std::fmt;

use self::cover::cover;
use parking_lot::Mutex;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DDict, DParameter, FrameFormat, Strategy};

/// Fewer bytes than these teach nothing.
const MIN_SAMPLE_BYTES: usize = 32 << 10;

/// No more bytes than these go into the statistics.
const MAX_SAMPLE_BYTES: usize = 2 << 20;

/// How many bytes of segments there are at most.
const MAX_SEGMENTS: usize = 48 << 10;

/// How many bytes of whole objects are laid behind them at most.
const MAX_WHOLE: usize = 16 << 10;

/// What stands in front: zstd's tables for literals, lengths and offsets.
const STATISTICS: &[u8] = include_bytes!("dictionary/statistics.bin");

/// A larger buffer is not kept for the next text.
const MAX_BUFFER: usize = 256 << 10;

/// How many decompressors are kept for the next reader.
const MAX_IDLE: usize = 4;

/// A dictionary for the texts of one resource. Texts compressed with it hold it.
pub(crate) struct Dictionary {
    bytes: Box<[u8]>,
    /// Made when it is needed, in less than 0.1 ms.
    compressor: Mutex<Option<Compressor>>,
    decompression: DDict<'static>,
}

struct Compressor {
    context: CCtx<'static>,
    buffer: Vec<u8>,
}

/// Serve all dictionaries.
static IDLE: Mutex<Vec<DCtx<'static>>> = Mutex::new(Vec::new());

// === impl Dictionary ===

impl Dictionary {
    /// Learns from texts, best from some 200 of all kinds; none if they are too few or too small to learn from.
    pub(crate) fn train<T: AsRef<str>>(texts: &[T]) -> Option<Self> {
        let mut samples = Vec::with_capacity(texts.len());
        let mut length = 0;
        for text in texts {
            let text = text.as_ref().as_bytes();
            if length + text.len() <= MAX_SAMPLE_BYTES {
                length += text.len();
                samples.push(text);
            }
        }
        if length < MIN_SAMPLE_BYTES {
            return None;
        }
        let mut bytes = STATISTICS.to_vec();
        bytes.extend(cover(&samples, MAX_SEGMENTS.min(length / 16)));
        let mut room = MAX_WHOLE.min(length / 24);
        for text in spread(&samples, room * samples.len() / length) {
            if text.len() <= room {
                room -= text.len();
                bytes.extend_from_slice(text);
            }
        }
        let bytes = bytes.into_boxed_slice();
        let decompression = DDict::try_create(&bytes)?;
        let compressor = Compressor::new(&bytes)?;
        Some(Self { bytes, compressor: Mutex::new(Some(compressor)), decompression })
    }

    /// Compresses a text and hands out the bytes; none if that fails.
    pub(super) fn compress<T>(&self, text: &str, take: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let mut compressor = self.compressor.lock();
        if compressor.is_none() {
            *compressor = Compressor::new(&self.bytes);
        }
        let Compressor { context, buffer } = compressor.as_mut()?;
        buffer.clear();
        buffer.reserve(zstd_safe::compress_bound(text.len()));
        let result = context.compress2(buffer, text.as_bytes());
        if let Err(code) = result {
            tracing::error!(error = zstd_safe::get_error_name(code), "an object cannot be compressed");
            *compressor = None;
            return None;
        }
        let taken = take(buffer);
        if buffer.capacity() > MAX_BUFFER {
            *buffer = Vec::new();
        }
        taken
    }

    /// Returns the text that was compressed to these bytes, which has this length.
    pub(super) fn decompress(&self, bytes: &[u8], length: usize) -> Option<String> {
        let mut context = IDLE.lock().pop().or_else(decompressor)?;
        let mut text = Vec::with_capacity(length);
        let result = context.decompress_using_ddict(&mut text, bytes, &self.decompression);
        if let Err(code) = result {
            tracing::error!(error = zstd_safe::get_error_name(code), "an object cannot be decompressed");
            return None;
        }
        let mut idle = IDLE.lock();
        if idle.len() < MAX_IDLE {
            idle.push(context);
        }
        drop(idle);
        if text.len() == length { String::from_utf8(text).ok() } else { None }
    }

    /// Frees what only compressing needs, until it is needed again.
    pub(crate) fn release_contexts(&self) {
        *self.compressor.lock() = None;
        IDLE.lock().truncate(1);
    }

    /// Returns how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let compressor = self.compressor.lock();
        let compressor = compressor.as_ref().map_or(0, |it| it.context.sizeof() + it.buffer.capacity());
        self.bytes.len() + self.decompression.sizeof() + compressor
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({} bytes)", self.bytes.len())
    }
}

// === impl Compressor ===

impl Compressor {
    fn new(dictionary: &[u8]) -> Option<Self> {
        let mut context = CCtx::try_create()?;
        let parameters = [
            CParameter::CompressionLevel(3),
            // Level 3 with smaller tables: as good for what is this small.
            CParameter::Strategy(Strategy::ZSTD_dfast),
            CParameter::WindowLog(17),
            CParameter::HashLog(13),
            CParameter::ChainLog(13),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).ok()?;
        }
        context.load_dictionary(dictionary).ok()?;
        Some(Self { context, buffer: Vec::new() })
    }
}

fn decompressor() -> Option<DCtx<'static>> {
    let mut context = DCtx::try_create()?;
    context.set_parameter(DParameter::Format(FrameFormat::Magicless)).ok()?;
    Some(context)
}

/// Returns as many of the items, evenly spread.
fn spread<T>(items: &[T], wanted: usize) -> impl Iterator<Item = &T> {
    let step = items.len().div_ceil(wanted.max(1)).max(1);
    items.iter().step_by(step)
}
