//! What a plugin's author implements.

use crate::{Added, Deleted, Description, Failure, Outcome, Synced, Updated, WorkKey};

/// A plugin: one value per instance, made before its first call and kept until the instance ends.
pub trait Plugin: Sized + 'static {
    /// Returns what the plugin wants. Runs in an instance of its own; [`crate::config`] works, cache and client do not.
    ///
    /// # Errors
    ///
    /// The text is shown to the operator and the plugin is not loaded.
    fn describe() -> Result<Description, String>;

    /// Makes the plugin's state, before its first call.
    ///
    /// # Errors
    ///
    /// The call that needed the instance fails and is tried again, and so is this.
    fn start() -> Result<Self, Failure>;
}

/// Is told of every change. What is not implemented is accepted in silence.
///
/// # Errors
///
/// Of every method: [`Failure::Retry`] has the object delivered again with back-off, and parks it after a number of tries (the
/// setting `limits.tries` of the plugin's file); [`Failure::Terminal`] parks it at once. What is parked is delivered again at the
/// object's next event, when another version of the plugin takes over, and every few minutes, always in its current state.
pub trait Handler: Plugin {
    /// An object began to exist, or to match.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        Ok(())
    }

    /// An object changed.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        Ok(())
    }

    /// An object ceased to exist, or to match.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        Ok(())
    }

    /// The initial adds of a subscription are all handled.
    #[expect(unused_variables, reason = "named for the reader of the trait")]
    fn on_synced(&mut self, synced: &Synced) -> Result<(), Failure> {
        Ok(())
    }
}

/// Is given keys, one at a time.
pub trait Reconciler: Plugin {
    /// Brings the world to what the object named by the key asks for.
    ///
    /// # Errors
    ///
    /// [`Failure::Retry`] puts the key back with back-off, and parks it after a number of tries (the setting `limits.tries` of the
    /// plugin's file); [`Failure::Terminal`] parks it at once. It does not drop the key: what is parked is reconciled again at
    /// the key's next event, when another version of the plugin takes over, and every few minutes. To drop a key, answer
    /// [`Outcome::Done`].
    fn reconcile(&mut self, key: &WorkKey) -> Result<Outcome, Failure>;
}
