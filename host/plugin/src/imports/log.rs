//! `log`: lines for the host's log.

use crate::{
    bindings::oarlock::plugin::log::Host,
    contract::{Entry, Level},
    guest::log::MAX_PAIRS,
    state::StoreState,
};

impl Host for StoreState {
    fn log(&mut self, level: Level, message: String, pairs: Vec<Entry>) {
        let pairs: Vec<_> = pairs
            .iter()
            .take(MAX_PAIRS)
            .map(|Entry { name, value }| (name.as_str(), value.as_str()))
            .collect();
        self.output.log(level, &message, &pairs);
    }

    fn enabled(&mut self, level: Level) -> bool {
        self.log.enabled(level)
    }
}
