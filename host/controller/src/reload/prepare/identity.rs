//! The identity that a new generation acts as.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Preparation;
use crate::account::Account;
use crate::identity::{Identity, IdentityState};
use crate::report::HostEvent;

// === impl Preparation ===

impl Preparation<'_> {
    /// Returns the identity of an account, which is followed for as long as it is in use. When the account is
    /// replaced, the plugin is loaded again.
    pub(super) fn follow_identity(&self, account: Account, uid: &str) -> Identity {
        let reporter = self.host.reporter.clone();
        let (slot, of, of_uid) = (Arc::downgrade(self.slot), account.clone(), Arc::<str>::from(uid));
        let on_change = move |state| {
            let Some(slot) = slot.upgrade() else { return };
            if state == IdentityState::Replaced {
                slot.load_again.store(true, Ordering::Release);
            }
            // A generation that is prepared notices it by itself, and one that drains ends anyway.
            if slot.active.get().is_some_and(|active| !active.identity.is_named(&of, &of_uid)) {
                return;
            }
            let waits_for = match state {
                IdentityState::Present => Vec::new(),
                IdentityState::Missing => vec![missing(&of)],
                IdentityState::Replaced => vec![format!(
                    "its next load, as the ServiceAccount {of}, which was deleted and created again"
                )],
            };
            slot.generations.account_changed(waits_for.first().map(String::as_str));
            slot.status.update(|status| status.waits_for.clone_from(&waits_for));
            if !waits_for.is_empty() {
                let generation = slot.active.get().map_or(1, |it| it.number);
                reporter.about(&slot.name, generation).report(HostEvent::PluginWaiting { waits_for });
            }
        };
        self.host.identities.follow(account, uid, on_change)
    }
}

/// Returns a text about an account that a plugin waits for.
pub(super) fn missing(account: &Account) -> String {
    format!(
        "the ServiceAccount {account}, which does not exist (create it, or apply what `oarlock rbac` prints)"
    )
}
