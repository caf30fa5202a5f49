//! The traits that a plugin implements.

use crate::{Added, Deleted, Description, Failure, Outcome, Synced, Updated, WorkKey};

/// A plugin. Each instance has one value, which is created before the first call and kept until the instance
/// ends.
pub trait Plugin: Sized + 'static {
    /// Returns the plugin's description. Runs in an instance of its own, in which [`crate::config`],
    /// [`crate::clock`], [`crate::metrics`] and logging work; the cache and the client do not.
    ///
    /// # Errors
    ///
    /// The host does not load the plugin, and shows the text to the operator.
    fn describe() -> Result<Description, String>;

    /// Creates the plugin's state, at the beginning of the first call of an instance. Its time counts towards
    /// `limits.callDeadline` of that call, not towards `limits.startDeadline`.
    ///
    /// # Errors
    ///
    /// The call fails with this error, counts as a try of its object or key, and the next call of the
    /// instance calls `start` again.
    fn start() -> Result<Self, Failure>;
}

/// Handles every change. The default methods accept the notification and do nothing.
///
/// # Errors
///
/// Each method may return a failure. After [`Failure::Retry`] the host delivers the object again with
/// back-off, and parks it after `limits.tries` failed calls (a setting in the plugin's file). After
/// [`Failure::Terminal`] it parks the object at once. It delivers a parked object again at the object's next
/// change, when another version of the plugin takes over, after `oarlock redeliver`, and within
/// `retry.parkedDelay` (5 minutes by default), always with the current state.
pub trait Handler: Plugin {
    /// An object exists, was created, or began to match the subscription.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        Ok(())
    }

    /// An object changed.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        Ok(())
    }

    /// An object was deleted, or ceased to match the subscription.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        Ok(())
    }

    /// All initial adds of a subscription have been handled.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_synced(&mut self, synced: &Synced) -> Result<(), Failure> {
        Ok(())
    }
}

/// Reconciles keys. An instance handles one call at a time.
pub trait Reconciler: Plugin {
    /// Makes the actual state match the state that the object named by the key asks for.
    ///
    /// # Errors
    ///
    /// After [`Failure::Retry`] the host adds the key again with back-off, and parks it after `limits.tries`
    /// failed calls (a setting in the plugin's file). After [`Failure::Terminal`] it parks the key at once.
    /// It reconciles a parked key again at the key's next event, when another version of the plugin takes
    /// over, after `oarlock redeliver`, and within `retry.parkedDelay` (5 minutes by default). To drop a key,
    /// return [`Outcome::Done`].
    fn reconcile(&mut self, key: &WorkKey) -> Result<Outcome, Failure>;
}
