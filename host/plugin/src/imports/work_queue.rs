//! `work-queue`: keys for the plugin's reconciler.

use std::time::Duration;

use super::{check_key, check_short};
use crate::{
    bindings::oarlock::plugin::work_queue::Host,
    contract::{Error, WorkKey},
    state::StoreState,
};

/// The maximum length of a work key: a kind, and a namespace and a name of maximum length. 100,000 keys may
/// wait.
const LONGEST_KEY: usize = 640;

impl Host for StoreState {
    fn add(&mut self, key: WorkKey) -> Result<(), Error> {
        self.takes(&[&key])?;
        check_work_key(&key)?;
        self.access.work_queue.add(key, None)
    }

    fn add_after(&mut self, key: WorkKey, delay_ms: u32) -> Result<(), Error> {
        self.takes(&[&key])?;
        check_work_key(&key)?;
        self.access.work_queue.add(key, Some(Duration::from_millis(delay_ms.into())))
    }
}

fn check_work_key(key: &WorkKey) -> Result<(), Error> {
    check_short("key's kind", &key.kind)?;
    check_key(&key.object)?;
    let bytes = key.kind.len() + key.object.namespace.len() + key.object.name.len();
    if bytes > LONGEST_KEY {
        return Err(Error::LimitExceeded(format!("the work key has {bytes} bytes, more than {LONGEST_KEY}")));
    }
    Ok(())
}
