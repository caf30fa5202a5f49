//! `config`: the operator's configuration of the plugin.

use super::check_pointer;
use crate::{bindings::oarlock::plugin::config::Host, contract::Error, state::StoreState};

impl Host for StoreState {
    fn get(&mut self, pointer: String) -> Result<Option<String>, Error> {
        check_pointer(&pointer).map_err(Error::Invalid)?;
        Ok(self.config.pointer(&pointer).map(ToString::to_string))
    }

    fn json(&mut self) -> String {
        self.config.to_string()
    }
}
