//! The ServiceAccount that a generation of a plugin acts as, by uid, and whether that account still exists.
//!
//! RBAC knows accounts by name, so rights outlive the account: a plugin of a deleted account would keep its
//! rights, and an account that is created again under the same name would be used by a plugin that it never
//! knew. The host therefore binds a generation to the account's uid, and checks it every few seconds. While
//! the account is missing, and for good once another account has its name, the generation receives, reads and
//! writes nothing.
//!
//! [`Identities`] has one task for each name and uid, which plugins may share. It checks the account, and
//! asks the gate what the account may see, for all subscriptions of it.

mod identities;
mod shared_account;

use std::sync::Arc;

use oarlock_informer::GroupVersionResource;
use oarlock_plugin::contract;
use tokio::sync::watch;

pub(crate) use self::identities::Identities;
use self::shared_account::SharedAccount;
use crate::access::{Access, Denial};
use crate::account::Account;

/// One ServiceAccount and its current state. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Identity {
    shared: Arc<SharedAccount>,
    /// Called with each new state for as long as a clone exists.
    on_change: Arc<OnChange>,
}

/// Is called with each new state of an account.
type OnChange = dyn Fn(IdentityState) + Send + Sync;

/// Whether the account of an identity still exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum IdentityState {
    /// The account exists.
    Present,
    /// No account has this name.
    Missing,
    /// An account with another uid has this name. This state is final.
    Replaced,
}

// === impl Identity ===

impl Identity {
    /// Creates an identity that nothing keeps up to date.
    #[cfg(test)]
    pub(crate) fn unfollowed(account: Account) -> Self {
        Self { shared: Arc::new(SharedAccount::new(account, "".into())), on_change: Arc::new(|_| {}) }
    }

    /// Returns the account's name.
    #[must_use]
    pub(crate) fn account(&self) -> &Account {
        self.shared.account()
    }

    /// Returns whether both are the same account, not only accounts of the same name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.account() == other.account() && self.uid() == other.uid()
    }

    /// Returns whether this is the identity of the given account, and that account exists.
    pub(crate) fn is_of(&self, account: &Account, uid: &str) -> bool {
        self.is_named(account, uid) && self.state() == IdentityState::Present
    }

    /// Returns whether this is the identity of the given account, which may be gone.
    pub(crate) fn is_named(&self, account: &Account, uid: &str) -> bool {
        self.account() == account && **self.uid() == *uid
    }

    pub(crate) fn uid(&self) -> &Arc<str> {
        self.shared.uid()
    }

    pub(crate) fn state(&self) -> IdentityState {
        self.shared.state()
    }

    /// Returns the gate's decision about these namespaces, which is kept up to date: the gate is asked every
    /// few seconds for as long as a receiver exists. The first value is one that allows, from other receivers
    /// of the same question, or `Unknown` until the gate has answered.
    pub(crate) fn access_to(
        &self,
        resource: &GroupVersionResource,
        namespaces: &contract::Namespaces,
    ) -> watch::Receiver<Access> {
        self.shared.access_to(resource, namespaces)
    }

    /// Returns why the plugin can do nothing as this account; `None` when the account exists.
    #[must_use]
    pub(crate) fn denial(&self) -> Option<Denial> {
        self.shared.denial()
    }

    /// Calls `on_change` once more, unless the account exists. It may have done nothing, as long as another
    /// version served.
    pub(crate) fn report_again(&self) {
        self.shared.report_again(&*self.on_change);
    }

    #[cfg(test)]
    pub(crate) fn set(&self, state: IdentityState) {
        self.shared.change_to(state);
    }
}
