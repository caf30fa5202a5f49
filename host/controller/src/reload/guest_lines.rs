//! Reports the log lines of guests.

use std::sync::Arc;

use oarlock_plugin::{
    contract,
    guest::{LogLine, LogSink},
};

use crate::report::{HostEvent, Level, Pairs, Reporter};
use crate::traces;

/// Reports the log lines of guests as host events.
pub(super) struct GuestLines(pub(super) Reporter);

// === impl GuestLines ===

impl LogSink for GuestLines {
    fn enabled(&self, _plugin: &str, level: contract::Level) -> bool {
        self.0.enabled_about_plugins(level_of(level))
    }

    fn write(&self, line: LogLine<'_>) {
        let LogLine { plugin, generation, level, object, message, pairs } = line;
        traces::log(&level_of(level), object, message, pairs);
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.about(&Arc::from(plugin), generation).report(HostEvent::GuestLog {
            level: level_of(level),
            object: object.map(str::to_owned),
            message: message.to_owned(),
            pairs: Pairs(pairs),
        });
    }
}

fn level_of(level: contract::Level) -> Level {
    match level {
        contract::Level::Trace => Level::Trace,
        contract::Level::Debug => Level::Debug,
        contract::Level::Info => Level::Info,
        contract::Level::Warn => Level::Warn,
        contract::Level::Error => Level::Error,
    }
}
