//! A zstd dictionary for the objects of one resource: training, compression and decompression.
//!
//! A dictionary has three parts: entropy tables, segments that many sample objects share ([`cover`]), and a
//! few whole objects. The entropy tables are the same for all resources: `statistics.bin` is the head of a
//! dictionary that zstd's trainer made from Pods. zstd makes tables of its own for a text that they do not
//! suit.
//!
//! Training takes 4 ms for 200 objects, and less than 2 MB. Measured over 10,000 Pods of 4,103 bytes from 250
//! templates: 463 bytes per Pod with 200 samples from the whole list, 590 with 100 samples from its first 500
//! objects, which come from a few templates only, and 1,656 without a dictionary. zstd's own trainer reaches
//! 472 in 24 ms. It takes 10 MB, which the C library does not return to the system.

mod cover;

use std::fmt;

use self::cover::cover;
use parking_lot::Mutex;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DDict, DParameter, FrameFormat, Strategy};

/// The least sample bytes from which a dictionary is trained.
const MIN_SAMPLE_BYTES: usize = 32 << 10;

/// The most sample bytes that are used.
const MAX_SAMPLE_BYTES: usize = 2 << 20;

/// The most bytes of shared segments in a dictionary.
const MAX_SEGMENTS: usize = 48 << 10;

/// The most bytes of whole objects in a dictionary.
const MAX_WHOLE: usize = 16 << 10;

/// The start of each dictionary: zstd's entropy tables for literals, lengths and offsets.
const STATISTICS: &[u8] = include_bytes!("dictionary/statistics.bin");

/// A compressor frees its buffer after a text if the buffer is larger.
const MAX_BUFFER: usize = 256 << 10;

/// How many decompressors are kept for later readers.
const MAX_IDLE: usize = 4;

/// A dictionary for the texts of one resource. Each text that it compressed holds a reference to it.
pub(crate) struct Dictionary {
    bytes: Box<[u8]>,
    /// Created on demand, in less than 0.1 ms.
    compressor: Mutex<Option<Compressor>>,
    decompression: DDict<'static>,
}

struct Compressor {
    context: CCtx<'static>,
    buffer: Vec<u8>,
}

/// Decompressors that are not in use. They serve all dictionaries.
static IDLE: Mutex<Vec<DCtx<'static>>> = Mutex::new(Vec::new());

// === impl Dictionary ===

impl Dictionary {
    /// Trains a dictionary from sample texts. 200 samples of all kinds give the best results.
    ///
    /// Returns `None` when the texts are too short together.
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

    /// Compresses a text, and passes the bytes to `take`. Returns `None` when that fails.
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
            tracing::error!(
                error = zstd_safe::get_error_name(code),
                "zstd failed to compress an object; the object stays uncompressed"
            );
            *compressor = None;
            return None;
        }
        let taken = take(buffer);
        if buffer.capacity() > MAX_BUFFER {
            *buffer = Vec::new();
        }
        taken
    }

    /// Decompresses a text of this length.
    pub(super) fn decompress(&self, bytes: &[u8], length: usize) -> Option<String> {
        let mut context = IDLE.lock().pop().or_else(decompressor)?;
        let mut text = Vec::with_capacity(length);
        let result = context.decompress_using_ddict(&mut text, bytes, &self.decompression);
        if let Err(code) = result {
            tracing::error!(error = zstd_safe::get_error_name(code), "zstd failed to decompress an object");
            return None;
        }
        let mut idle = IDLE.lock();
        if idle.len() < MAX_IDLE {
            idle.push(context);
        }
        drop(idle);
        if text.len() == length { String::from_utf8(text).ok() } else { None }
    }

    /// Frees the memory that only compression needs. The next compression allocates it again.
    pub(crate) fn release_contexts(&self) {
        *self.compressor.lock() = None;
        IDLE.lock().truncate(1);
    }

    /// Returns how many bytes the dictionary takes.
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
            // Level 3 with smaller tables, which are as good for short texts.
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

/// Returns about `wanted` of the items, evenly spread.
fn spread<T>(items: &[T], wanted: usize) -> impl Iterator<Item = &T> {
    let step = items.len().div_ceil(wanted.max(1)).max(1);
    items.iter().step_by(step)
}
