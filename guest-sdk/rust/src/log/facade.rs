//! The crate `log`, whose records become lines in the host's log.

use std::fmt::Display;

use ::log::{LevelFilter, Log, Metadata, Record};

use super::{Level, log, most_verbose};

struct HostLogger;

/// Installs the logger. Another call has no effect, and so has this one if the plugin has its own logger.
pub(super) fn install() {
    if ::log::set_logger(&HostLogger).is_ok() {
        ::log::set_max_level(match most_verbose() {
            None => LevelFilter::Off,
            Some(Level::Error) => LevelFilter::Error,
            Some(Level::Warn) => LevelFilter::Warn,
            Some(Level::Info) => LevelFilter::Info,
            Some(Level::Debug) => LevelFilter::Debug,
            Some(Level::Trace) => LevelFilter::Trace,
        });
    }
}

// === impl HostLogger ===

impl Log for HostLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let level = match record.level() {
            ::log::Level::Error => Level::Error,
            ::log::Level::Warn => Level::Warn,
            ::log::Level::Info => Level::Info,
            ::log::Level::Debug => Level::Debug,
            ::log::Level::Trace => Level::Trace,
        };
        let target = record.target();
        let pairs: [(&str, &dyn Display); 1] = [("target", &target)];
        log(level, &record.args().to_string(), &pairs);
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use crate::testing::Host;

    #[test]
    fn a_record_is_a_line_with_its_target() {
        let host = Host::new();
        super::install();
        ::log::warn!(target: "copies", "{} of {} failed", 1, 2);
        assert_eq!(host.logs()[0].to_string(), "warn 1 of 2 failed target=copies");
    }
}
