//! `config`: the operator's configuration of the plugin.

use super::check_pointer;
use crate::{bindings::oarlock::plugin::config::Host, contract::Error, state::StoreState};

impl Host for StoreState {
    fn get(&mut self, pointer: String) -> Result<Option<String>, Error> {
        self.takes(&[&pointer])?;
        check_pointer(&pointer).map_err(Error::Invalid)?;
        let answer = self.config.get(&pointer).map_err(|error| Error::Invalid(error.to_string()))?;
        let answer = answer.map(ToOwned::to_owned);
        self.gives(Ok(answer))
    }

    fn json(&mut self) -> String {
        let answer = self.config.text().to_owned();
        self.crossed.count(answer.len(), 0);
        answer
    }
}
