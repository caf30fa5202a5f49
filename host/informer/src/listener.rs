//! One subscriber of a shared informer: what it receives, when, and what waits for it.
//!
//! **Order.** The notifications of one object form a chain: an add, then updates whose old state is the new
//! state of the notification before, then a delete; then nothing until the next add. One object is never in
//! flight twice. Nothing is promised between objects, but new work goes before initial adds, save for one
//! initial add after every four notifications, and within each of the two the object whose notification has
//! waited longest is delivered first. An object that is in flight or backing off does not delay other
//! objects.
//!
//! **Merging.** Up to the limit of the backlog every notification is delivered separately. Beyond the limit,
//! the notifications that wait for one object merge into one that spans them. A failed notification always
//! merges with those that follow it. So at most as many notifications wait as the limit says, plus two per
//! object, or 16 if the consumer collects keys ([`ListenerConfig::keys`]).
//!
//! **Bytes.** A backlog may hold states that the cache no longer holds: the old state of an update, the last
//! state of a delete, and a new state that was superseded by an update which is skipped because it changes no
//! declared field. These, and the values of declared fields that notifications carry, are charged to a
//! [`BacklogAccount`]. While the account is full, notifications merge as they do beyond the limit, skipped
//! updates included.
//!
//! **Pull.** A listener calls no callback. The consumer takes notifications with [`Listener::next`] and ends
//! each delivery with [`ListenerHandle::finish`]. Dropping the listener removes it and its backlog.
//!
//! The file `decision.rs` decides whether a change is delivered, `merge.rs` how notifications merge.

mod account;
mod backlog;
mod change;
mod config;
mod decision;
mod filter;
mod handle;
mod initial_values;
mod matching;
mod merge;
mod notification;
mod shared;
mod snapshot;
mod values;

use std::ops::Deref;
use std::sync::Arc;

use crate::processor::Processor;

pub use crate::selector::{ConditionError, FieldCondition, FieldTest, MAX_VALUE_BYTES, MAX_VALUES};

pub use self::account::BacklogAccount;
pub(crate) use self::change::Change;
pub use self::config::{ListenerConfig, NamedKey};
pub(crate) use self::decision::Decision;
pub use self::handle::{ListenerHandle, ListenerStats, Replayed};
pub(crate) use self::initial_values::DeclaredFields;
pub(crate) use self::matching::{ChangeCheck, MatchPlan};
pub use self::notification::{Delivery, Notification, Outcome};
pub(crate) use self::shared::ListenerShared;
use self::shared::SyncState;
use self::snapshot::SLICE;
pub use self::values::{FieldValues, NotificationFields};

/// The consumer's end of a listener, which takes notifications. It dereferences to the [`ListenerHandle`],
/// which does everything else. Dropping it removes the listener from its informer and drops its backlog.
///
/// It may be passed to another consumer, which continues where the first one stopped, after
/// [`ListenerHandle::abandon_in_flight`].
#[derive(Debug)]
pub struct Listener {
    handle: ListenerHandle,
}

// === impl Listener ===

impl Listener {
    pub(crate) fn new(shared: Arc<ListenerShared>, processor: Arc<Processor>) -> Self {
        Self { handle: ListenerHandle { shared, processor } }
    }

    /// Waits for the next notification, of the ready object that is next. The object is in flight from then
    /// on, and its next notification does not come before [`ListenerHandle::finish`].
    ///
    /// Returns `None` once the informer has stopped or the listener was removed. Cancelling the wait loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Delivery> {
        let shared = &self.handle.shared;
        loop {
            let (is_loading, next_due) = {
                let mut state = shared.state.lock();
                if state.sync == SyncState::Closed {
                    return None;
                }
                if state.since_snapshot.is_some() {
                    (true, None)
                } else if let Some(mut delivery) = state.backlog.take() {
                    drop(state);
                    if let Some(fields) = &shared.fields {
                        fields.find_for(&mut delivery, &self.handle.processor);
                    }
                    return Some(delivery);
                } else {
                    (false, state.backlog.next_due())
                }
            };
            if is_loading {
                // The consumer loads the rest of a long snapshot.
                let has_more = shared.continue_loading(&mut shared.loader.lock(), SLICE);
                if has_more {
                    tokio::task::yield_now().await;
                    continue;
                }
                if shared.state.lock().since_snapshot.is_none() {
                    continue;
                }
            }
            // There is one consumer, so `wake` keeps a notification that comes before the wait.
            match next_due {
                Some(due) => {
                    tokio::select! {
                        () = shared.wake.notified() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => shared.wake.notified().await,
            }
        }
    }

    /// Returns a handle of the listener.
    #[must_use]
    pub fn handle(&self) -> ListenerHandle {
        self.handle.clone()
    }
}

impl Deref for Listener {
    type Target = ListenerHandle;

    fn deref(&self) -> &ListenerHandle {
        &self.handle
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.handle.processor.remove(&self.handle.shared);
    }
}

#[cfg(test)]
pub(crate) mod tests;
