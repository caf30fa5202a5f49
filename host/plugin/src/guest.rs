//! Log, metrics, text and memory account of a guest: everything that the host writes or stores for it, with
//! limits.

pub mod host_bytes;
pub mod log;
pub mod metrics;
pub mod text;

pub use self::host_bytes::HostBytes;
pub use self::log::{GuestLog, LogLine, LogSink};
pub use self::metrics::GuestMetrics;
