//! The plugin's work queue. The host calls [`crate::Reconciler::reconcile`] with its keys.

use std::time::Duration;

pub use oarlock_sdk_bindings::oarlock::plugin::work_queue::WorkKey;

use crate::failure::milliseconds;
use crate::imports::work_queue;
use crate::{Error, ObjectKey, Outcome};

/// Returns a key. The plugin chooses `kind`; usually it is the name of a subscription.
pub fn work_key(kind: impl Into<String>, object: ObjectKey) -> WorkKey {
    WorkKey { kind: kind.into(), object }
}

/// Returns the outcome that has the key reconciled again after a while, at most 49 days.
pub fn requeue_after(wait: Duration) -> Outcome {
    Outcome::RequeueAfter(milliseconds(wait))
}

/// Adds a key. A key that waits already is not added twice.
///
/// # Errors
///
/// `limit-exceeded` if the key is too long, and `throttled` if the queue is full.
pub fn add(key: &WorkKey) -> Result<(), Error> {
    work_queue::add(key)
}

/// Adds a key after a while. Of two delays for one key, the one that ends first counts.
///
/// # Errors
///
/// As [`add`].
pub fn add_after(key: &WorkKey, wait: Duration) -> Result<(), Error> {
    work_queue::add_after(key, milliseconds(wait))
}
