//! `config`: what the operator wrote.

use crate::{bindings::oarlock::plugin::config::Host, contract::Error, pointer, state::State};

impl Host for State {
    fn get(&mut self, pointer: String) -> Result<Option<String>, Error> {
        pointer::check(&pointer).map_err(Error::Invalid)?;
        Ok(self.config.pointer(&pointer).map(ToString::to_string))
    }

    fn json(&mut self) -> String {
        self.config.to_string()
    }
}
