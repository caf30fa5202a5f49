//! Log, metrics, text, memory account and use of a guest: everything that the host writes, stores or counts
//! for it, with limits.

pub mod host_bytes;
pub mod log;
pub mod metrics;
pub mod text;
pub mod usage;

pub use self::host_bytes::HostBytes;
pub use self::log::{GuestLog, LogLine, LogSink};
pub use self::metrics::GuestMetrics;
pub use self::usage::{Usage, UsageView};
