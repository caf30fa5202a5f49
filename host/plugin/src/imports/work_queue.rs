//! `work-queue`: keys for the plugin's own reconciler.

use std::time::Duration;

use super::{check_key, check_short};
use crate::{
    bindings::oarlock::plugin::work_queue::Host,
    contract::{Error, WorkKey},
    state::State,
};

/// Bytes of a work key: a kind and the longest names that Kubernetes knows. 100,000 keys may wait.
const LONGEST_KEY: usize = 640;

impl Host for State {
    fn add(&mut self, key: WorkKey) -> Result<(), Error> {
        check_work_key(&key)?;
        self.access.queue_add(key, None)
    }

    fn add_after(&mut self, key: WorkKey, delay_ms: u32) -> Result<(), Error> {
        check_work_key(&key)?;
        self.access.queue_add(key, Some(Duration::from_millis(delay_ms.into())))
    }
}

fn check_work_key(key: &WorkKey) -> Result<(), Error> {
    check_short("key's kind", &key.kind)?;
    check_key(&key.object)?;
    let bytes = key.kind.len() + key.object.namespace.len() + key.object.name.len();
    if bytes > LONGEST_KEY {
        return Err(Error::LimitExceeded(format!("the work key has {bytes} bytes, {LONGEST_KEY} at most")));
    }
    Ok(())
}
