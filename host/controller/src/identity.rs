//! The ServiceAccount that a generation of a plugin acts as, by uid, and whether that account still exists.
//!
//! RBAC knows accounts by name, so rights outlive the account: a plugin of a deleted account would keep its
//! rights, and an account that is created again under the same name would be used by a plugin that it never
//! knew. The host therefore binds a generation to the account's uid, and checks it every few seconds. While
//! the account is missing, and for good once another account has its name, the generation receives, reads and
//! writes nothing.

use std::sync::Arc;
use std::time::Duration;

use oarlock_flow_control::clock;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::{AccountState, Denial, Gate};
use crate::account::Account;

/// How often the follower checks the account. The gate uses its answers for as long.
const CHECK_AGAIN: Duration = Duration::from_secs(5);

/// One ServiceAccount and its current state. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    account: Account,
    uid: Arc<str>,
    state: watch::Receiver<IdentityState>,
}

/// Keeps the state of an [`Identity`] up to date.
#[derive(Debug)]
pub(crate) struct IdentityFollower {
    account: Account,
    uid: Arc<str>,
    state: watch::Sender<IdentityState>,
}

/// Whether the account of an identity still exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
    /// Creates the identity of an account that existed with this uid, and the follower that must run to keep
    /// it up to date.
    pub(crate) fn new(account: Account, uid: &str) -> (Self, IdentityFollower) {
        let uid: Arc<str> = uid.into();
        let (sender, state) = watch::channel(IdentityState::Present);
        let identity = Self { account: account.clone(), uid: uid.clone(), state };
        (identity, IdentityFollower { account, uid, state: sender })
    }

    /// Creates an identity without a follower.
    #[cfg(test)]
    pub(crate) fn unfollowed(account: Account) -> Self {
        Self::new(account, "").0
    }

    /// Returns the account's name.
    #[must_use]
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns whether both are the same account, not only accounts of the same name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.account == other.account && self.uid == other.uid
    }

    /// Returns whether this is the identity of the given account, and that account exists.
    pub(crate) fn is_of(&self, account: &Account, uid: &str) -> bool {
        self.account == *account && *self.uid == *uid && self.state() == IdentityState::Present
    }

    pub(crate) fn uid(&self) -> &Arc<str> {
        &self.uid
    }

    pub(crate) fn state(&self) -> IdentityState {
        *self.state.borrow()
    }

    /// Waits until the state changes, and returns it. Never returns when the follower has ended.
    pub(crate) async fn changed(&mut self) -> IdentityState {
        if self.state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.state.borrow_and_update()
    }

    /// Returns why the plugin can do nothing as this account; `None` when the account exists.
    #[must_use]
    pub(crate) fn denial(&self) -> Option<Denial> {
        match self.state() {
            IdentityState::Present => None,
            IdentityState::Missing => Some(Denial::NoAccount(self.account.clone())),
            IdentityState::Replaced => Some(Denial::AccountReplaced(self.account.clone())),
        }
    }
}

// === impl IdentityFollower ===

impl IdentityFollower {
    /// Checks the account for as long as the identity is in use, or until the token is cancelled, and calls
    /// `on_change` with each new state. An API server that cannot be asked does not change the state.
    #[expect(clippy::manual_async_fn, reason = "an async function has each of its arguments twice")]
    pub(crate) fn run(
        self,
        gate: Arc<Gate>,
        on_change: impl Fn(IdentityState) + Send + Sync,
        token: CancellationToken,
    ) -> impl Future<Output = ()> + Send {
        async move {
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = self.state.closed() => {}
                () = self.follow(&gate, &on_change) => {}
            }
        }
    }

    async fn follow(&self, gate: &Gate, on_change: &impl Fn(IdentityState)) {
        loop {
            // In a box, so that a task that waits for its next check is small.
            let now = match Box::pin(gate.account(&self.account)).await {
                Ok(AccountState::Present { uid }) if *uid == *self.uid => IdentityState::Present,
                Ok(AccountState::Present { .. }) => IdentityState::Replaced,
                Ok(AccountState::Missing) => IdentityState::Missing,
                Err(_) => *self.state.borrow(),
            };
            if self.state.send_if_modified(|before| std::mem::replace(before, now) != now) {
                on_change(now);
            }
            if now == IdentityState::Replaced {
                // This state is final.
                std::future::pending::<()>().await;
            }
            // Together with the subscriptions of the account, which ask as often.
            tokio::time::sleep_until(clock::next_tick(Instant::now(), CHECK_AGAIN, &self.account)).await;
        }
    }

    #[cfg(test)]
    pub(crate) fn set(&self, state: IdentityState) {
        self.state.send_replace(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::testing::{FakeReviewer, Known};

    #[tokio::test(start_paused = true)]
    async fn promise_5_an_identity_ends_when_its_account_is_replaced() {
        let account: Account = "ns/p".parse().unwrap();
        let reviewer = Arc::new(FakeReviewer::default());
        let gate = Arc::new(Gate::with_reviewer(reviewer.clone(), Arc::new(Known(None)), reviewer.clone()));
        let (mut identity, follower) = Identity::new(account.clone(), "the-first");
        let other = Identity::new(account, "the-second").0;
        assert!(!identity.is(&other));
        let follow = follower.run(gate, |_| {}, CancellationToken::new());
        let check = async {
            assert_eq!(identity.denial(), None);
            *reviewer.account.lock() = Some(AccountState::Missing);
            assert_eq!(identity.changed().await, IdentityState::Missing);
            insta::assert_snapshot!(identity.denial().unwrap(), @"the ServiceAccount ns/p does not exist");
            // As after a restore of the cluster.
            *reviewer.account.lock() = None;
            assert_eq!(identity.changed().await, IdentityState::Present);
            let second = AccountState::Present { uid: "the-second".to_owned() };
            *reviewer.account.lock() = Some(second);
            assert_eq!(identity.changed().await, IdentityState::Replaced);
            insta::assert_snapshot!(identity.denial().unwrap(), @"the ServiceAccount ns/p was deleted and created again; the host loads the plugin again for the new one");
            *reviewer.account.lock() = None;
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(identity.state(), IdentityState::Replaced, "this state is final");
        };
        tokio::select! {
            () = follow => panic!("the follower ended while the identity was in use"),
            () = check => {}
        }
    }
}
