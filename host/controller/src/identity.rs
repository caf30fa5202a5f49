//! Which ServiceAccount of a name a generation of a plugin acts as, and whether it still is that one.
//!
//! RBAC knows accounts by their names, so rights outlive the account: what was deleted would go on working, and what is made anew under the
//! same name would find a plugin at work in its name that it never knew. So a generation is bound to the account's uid. It
//! is looked at again every few seconds; while the account is missing, and for good once it is another one, the generation is
//! told nothing, reads nothing and writes nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::access::{AccountState, Gate};
use crate::account::Account;

/// How often it is looked whether the account is there. The gate keeps its answers for longer than this.
const LOOK: Duration = Duration::from_secs(3);

/// One ServiceAccount, followed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Identity {
    account: Account,
    uid: Arc<str>,
    state: watch::Receiver<State>,
}

/// Finds out how an identity is.
#[derive(Debug)]
pub(crate) struct Follower {
    account: Account,
    uid: Arc<str>,
    state: watch::Sender<State>,
}

/// How an identity is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// The account is there.
    Good,
    /// There is no such account.
    Missing,
    /// There is another one of that name. It stays so.
    Another,
}

// === impl Follower ===

#[cfg(test)]
impl Follower {
    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

// === impl Identity ===

impl Identity {
    /// Makes the identity of an account that was there with this uid, and what has to run for it to be followed.
    pub(crate) fn new(account: Account, uid: &str) -> (Self, Follower) {
        let uid: Arc<str> = uid.into();
        let (sender, state) = watch::channel(State::Good);
        let identity = Self { account: account.clone(), uid: uid.clone(), state };
        (identity, Follower { account, uid, state: sender })
    }

    /// Makes one that nobody follows. For tests, and for users of the library who look after accounts themselves.
    #[must_use]
    pub fn unfollowed(account: Account) -> Self {
        Self::new(account, "").0
    }

    /// The account's name.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Whether it is the same account, not only one of the same name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.account == other.account && self.uid == other.uid
    }

    /// Whether it is that of this account and can be used.
    pub(crate) fn is_of(&self, account: &Account, uid: &str) -> bool {
        self.account == *account && *self.uid == *uid && self.state() == State::Good
    }

    pub(crate) fn uid(&self) -> &Arc<str> {
        &self.uid
    }

    pub(crate) fn state(&self) -> State {
        *self.state.borrow()
    }

    /// Waits until it is not what it was. For ever when it is followed no more.
    pub(crate) async fn changed(&mut self) -> State {
        if self.state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.state.borrow_and_update()
    }

    /// Returns why nothing can be done in its name; nothing when it can.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let Self { account, .. } = self;
        match self.state() {
            State::Good => None,
            State::Missing => Some(format!("the ServiceAccount {account} does not exist any more")),
            State::Another => Some(format!(
                "the ServiceAccount {account} was deleted and made again; the plugin is loaded anew to act as it"
            )),
        }
    }
}

// === impl Follower ===

impl Follower {
    /// Looks at the account for as long as somebody has the identity, and says when it changes. That the API server
    /// cannot be asked changes nothing.
    pub(crate) async fn run(self, gate: Arc<Gate>, says: impl Fn(State)) {
        let look = self.look(&gate, says);
        tokio::select! {
            biased;
            () = self.state.closed() => {}
            () = look => {}
        }
    }

    async fn look(&self, gate: &Gate, says: impl Fn(State)) {
        loop {
            let now = match gate.account(&self.account).await {
                Ok(AccountState::Present { uid }) if *uid == *self.uid => State::Good,
                Ok(AccountState::Present { .. }) => State::Another,
                Ok(AccountState::Missing) => State::Missing,
                Err(_) => *self.state.borrow(),
            };
            if self.state.send_if_modified(|before| std::mem::replace(before, now) != now) {
                says(now);
            }
            if now == State::Another {
                // There is nothing left to look at.
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::testing::{FakeReviewer, Known};

    #[tokio::test(start_paused = true)]
    async fn promise_5_an_identity_ends_with_its_account() {
        let account: Account = "ns/p".parse().unwrap();
        let reviewer = Arc::new(FakeReviewer::default());
        let gate = Arc::new(Gate::with_reviewer(reviewer.clone(), Arc::new(Known(None))));
        let (mut identity, follower) = Identity::new(account.clone(), "the-first");
        let other = Identity::new(account, "the-second").0;
        assert!(!identity.is(&other));
        let follow = follower.run(gate, |_| {});
        let check = async {
            assert_eq!(identity.refusal(), None);
            *reviewer.account.lock() = Some(AccountState::Missing);
            assert_eq!(identity.changed().await, State::Missing);
            insta::assert_snapshot!(identity.refusal().unwrap(), @"the ServiceAccount ns/p does not exist any more");
            // As after a restore of the cluster.
            *reviewer.account.lock() = None;
            assert_eq!(identity.changed().await, State::Good);
            let second = AccountState::Present { uid: "the-second".to_owned() };
            *reviewer.account.lock() = Some(second);
            assert_eq!(identity.changed().await, State::Another);
            insta::assert_snapshot!(identity.refusal().unwrap(), @"the ServiceAccount ns/p was deleted and made again; the plugin is loaded anew to act as it");
            *reviewer.account.lock() = None;
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(identity.state(), State::Another, "it never comes back");
        };
        tokio::select! {
            () = follow => panic!("it is followed while somebody has it"),
            () = check => {}
        }
    }
}
