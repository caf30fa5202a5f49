//! `metrics`: the plugin's own series.

use crate::{
    bindings::oarlock::plugin::metrics::Host,
    contract::{Entry, Error},
    state::State,
};

impl Host for State {
    fn counter_add(&mut self, name: String, by: f64, labels: Vec<Entry>) -> Result<(), Error> {
        self.metrics.counter_add(&name, by, labels)
    }

    fn gauge_set(&mut self, name: String, value: f64, labels: Vec<Entry>) -> Result<(), Error> {
        self.metrics.gauge_set(&name, value, labels)
    }
}
