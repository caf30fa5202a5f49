//! `metrics`: the plugin's own metrics.

use crate::{
    bindings::oarlock::plugin::metrics::Host,
    contract::{Entry, Error},
    state::StoreState,
};

impl Host for StoreState {
    fn counter_add(&mut self, name: String, by: f64, labels: Vec<Entry>) -> Result<(), Error> {
        self.takes(&[&name, &labels])?;
        self.metrics.counter_add(&name, by, labels)
    }

    fn gauge_set(&mut self, name: String, value: f64, labels: Vec<Entry>) -> Result<(), Error> {
        self.takes(&[&name, &labels])?;
        self.metrics.gauge_set(&name, value, labels)
    }
}
