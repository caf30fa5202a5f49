//! `log`: lines for the host's log.

use crate::{
    bindings::oarlock::plugin::log::Host,
    contract::{Entry, Level},
    crossing::Crossing as _,
    guest::log::MAX_PAIRS,
    state::StoreState,
};

impl Host for StoreState {
    fn log(&mut self, level: Level, message: String, pairs: Vec<Entry>) {
        self.crossed.count(0, message.len() + pairs.bytes());
        let pairs: Vec<_> = pairs
            .iter()
            .take(MAX_PAIRS)
            .map(|Entry { name, value }| (name.as_str(), value.as_str()))
            .collect();
        // A line that is not written needs no name.
        let object = if self.log.enabled(level) { self.object_of_call() } else { None };
        self.output.log(level, object.as_deref(), &message, &pairs);
    }

    fn enabled(&mut self, level: Level) -> bool {
        self.log.enabled(level)
    }
}
