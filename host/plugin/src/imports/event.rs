//! `event`: the object of the notification in progress.

use std::sync::Arc;

use super::check_pointer;
use crate::{
    bindings::oarlock::plugin::event::Host,
    contract::{Error, Version},
    kube_access::EventObject,
    state::StoreState,
};

/// The maximum number of pointers in one call.
pub(super) const MAX_POINTERS: usize = 64;

impl Host for StoreState {
    fn field(&mut self, which: Version, pointer: String) -> Result<Option<String>, Error> {
        self.takes(&[&pointer])?;
        let object = self.version(which)?;
        check_pointer(&pointer).map_err(Error::Invalid)?;
        let answer = object.field(&pointer);
        self.gives(answer)
    }

    fn fields(&mut self, which: Version, pointers: Vec<String>) -> Result<Vec<Option<String>>, Error> {
        self.takes(&[&pointers])?;
        let object = self.version(which)?;
        check_pointers(&pointers)?;
        let answer = object.fields(&pointers);
        self.gives(answer)
    }

    fn json(&mut self, which: Version) -> Result<String, Error> {
        let answer = self.version(which)?.json();
        self.gives(answer)
    }
}

impl StoreState {
    fn version(&self, which: Version) -> Result<&Arc<dyn EventObject>, Error> {
        let (object, word) = match which {
            Version::Old => (&self.old, "old"),
            Version::New => (&self.new, "new"),
        };
        object.as_ref().ok_or_else(|| Error::NotFound(format!("this call has no {word} state of an object")))
    }
}

pub(super) fn check_pointers(pointers: &[String]) -> Result<(), Error> {
    if pointers.len() > MAX_POINTERS {
        return Err(Error::LimitExceeded(format!("{} pointers, more than {MAX_POINTERS}", pointers.len())));
    }
    pointers.iter().try_for_each(|pointer| check_pointer(pointer)).map_err(Error::Invalid)
}
