//! The identity that a new generation acts as.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Preparation;
use crate::account::Account;
use crate::identity::{Identity, IdentityState};
use crate::report::HostEvent;

// === impl Preparation ===

impl Preparation<'_> {
    /// Creates the identity of an account, and the task that follows it for as long as the identity is in
    /// use. When the account is replaced, the plugin is loaded again.
    pub(super) fn follow_identity(&self, account: Account, uid: &str) -> Identity {
        let (identity, follower) = Identity::new(account.clone(), uid);
        let (gate, reporter) = (self.host.gate.clone(), self.host.reporter.clone());
        let slot = Arc::downgrade(self.slot);
        let on_change = move |state| {
            let Some(slot) = slot.upgrade() else { return };
            let waits_for = match state {
                IdentityState::Present => Vec::new(),
                IdentityState::Missing => vec![missing(&account)],
                IdentityState::Replaced => {
                    slot.load_again.store(true, Ordering::Release);
                    vec![format!(
                        "its next load, as the ServiceAccount {account}, which was deleted and created again"
                    )]
                }
            };
            slot.generations.account_changed(waits_for.first().map(String::as_str));
            slot.status.update(|status| status.waits_for.clone_from(&waits_for));
            if !waits_for.is_empty() {
                let generation = slot.active.get().map_or(1, |it| it.number);
                reporter.about(&slot.name, generation).report(HostEvent::PluginWaiting { waits_for });
            }
        };
        let name = format!("account of {}", self.slot.name);
        self.host.tasks.spawn_unattended(name, |token| follower.run(gate, on_change, token));
        identity
    }
}

/// Returns a text about an account that a plugin waits for.
pub(super) fn missing(account: &Account) -> String {
    format!(
        "the ServiceAccount {account}, which does not exist: create it, or apply what `oarlock rbac` prints"
    )
}
