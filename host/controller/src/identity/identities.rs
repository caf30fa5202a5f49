//! All accounts that plugins act as, and the tasks that follow them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::shared_account::SharedAccount;
use super::{Identity, IdentityState, OnChange};
use crate::access::Gate;
use crate::account::Account;
use crate::tasks::Tasks;

/// All accounts that plugins act as. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Identities {
    tasks: Tasks,
    gate: Arc<Gate>,
    accounts: Accounts,
}

/// The accounts that are followed.
#[derive(Clone, Default)]
pub(super) struct Accounts(Arc<Mutex<HashMap<Key, Arc<SharedAccount>>>>);

/// The name and the uid of an account.
type Key = (Account, Arc<str>);

// === impl Identities ===

impl Identities {
    pub(crate) fn new(tasks: Tasks, gate: Arc<Gate>) -> Self {
        Self { tasks, gate, accounts: Accounts::default() }
    }

    /// Returns the identity of an account that existed with this uid. It is kept up to date, and `on_change`
    /// is called with each new state, for as long as it or a clone is in use.
    pub(crate) fn follow(
        &self,
        account: Account,
        uid: &str,
        on_change: impl Fn(IdentityState) + Send + Sync + 'static,
    ) -> Identity {
        let on_change: Arc<OnChange> = Arc::new(on_change);
        let mut accounts = self.accounts.0.lock();
        let key = (account, Arc::from(uid));
        // A replaced account stays replaced for those who use it. If it was restored, it is another one here.
        let existing = accounts.get(&key).filter(|it| it.state() != IdentityState::Replaced).cloned();
        let shared = match existing {
            Some(shared) => {
                shared.call_on_change(&on_change);
                // The caller has just seen the account. If it was missing here, the caller's next attempt
                // finds it.
                if shared.state() != IdentityState::Present {
                    shared.check_now();
                }
                shared
            }
            None => {
                let (account, uid) = key.clone();
                let shared = Arc::new(SharedAccount::new(account, uid));
                shared.call_on_change(&on_change);
                accounts.insert(key, shared.clone());
                let (gate, accounts, task) = (self.gate.clone(), self.accounts.clone(), shared.clone());
                let name = format!("account {}", shared.account());
                self.tasks.spawn_unattended(name, |token| task.follow(gate, accounts, token));
                shared
            }
        };
        Identity { shared, on_change }
    }
}

// === impl Accounts ===

impl Accounts {
    /// Removes an account that nothing uses but its task. Returns whether it did; then the task ends.
    pub(super) fn remove_unused(&self, shared: &Arc<SharedAccount>) -> bool {
        let mut accounts = self.0.lock();
        let key = (shared.account().clone(), shared.uid().clone());
        let is_here = accounts.get(&key).is_some_and(|it| Arc::ptr_eq(it, shared));
        // References beside that of the task are made only with this lock, or by cloning one that exists.
        let n_users = Arc::strong_count(shared) - 1 - usize::from(is_here);
        if n_users > 0 || shared.has_receivers() {
            return false;
        }
        if is_here {
            accounts.remove(&key);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use oarlock_flow_control::clock;
    use oarlock_informer::GroupVersionResource;
    use oarlock_informer::object::Namespaces;
    use oarlock_plugin::contract;
    use tokio::sync::watch;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::access::testing::{FakeReviewer, Known};
    use crate::access::{Access, AccountState, Denial};
    use crate::identity::shared_account::ASK_AGAIN;

    struct Rig {
        identities: Identities,
        reviewer: Arc<FakeReviewer>,
        tasks: Tasks,
    }

    impl Rig {
        fn new() -> Self {
            let (tasks, _supervisor) = Tasks::new(CancellationToken::new());
            let reviewer = Arc::new(FakeReviewer::default());
            let known = Arc::new(Known(Some(&["a"])));
            let gate = Arc::new(Gate::with_reviewer(reviewer.clone(), known, reviewer.clone()));
            Self { identities: Identities::new(tasks.clone(), gate), reviewer, tasks }
        }

        fn allow(&self) {
            ["list", "watch"].into_iter().for_each(|verb| self.reviewer.allow(verb, None));
        }

        fn replace_account(&self, state: Option<AccountState>) {
            *self.reviewer.account.lock() = state;
        }
    }

    fn account() -> Account {
        "ns/p".parse().unwrap()
    }

    fn pods() -> GroupVersionResource {
        GroupVersionResource::new("", "v1", "pods")
    }

    /// Returns a list, and a function that adds each state to it.
    fn noted() -> (Arc<Mutex<Vec<IdentityState>>>, impl Fn(IdentityState) + Send + Sync + 'static) {
        let states = Arc::new(Mutex::new(Vec::new()));
        let note = states.clone();
        (states, move |state| note.lock().push(state))
    }

    /// Waits until the identity may see all Pods, and returns that decision.
    async fn allowed(identity: &Identity) -> watch::Receiver<Access> {
        let mut access = identity.access_to(&pods(), &ALL);
        access.wait_for(|it| matches!(it, Access::Allowed(_))).await.map(drop).unwrap();
        access
    }

    const ALL: contract::Namespaces = contract::Namespaces::All;

    #[tokio::test(start_paused = true)]
    async fn promise_5_an_identity_ends_when_its_account_is_replaced() {
        let rig = Rig::new();
        let (states, note) = noted();
        let identity = rig.identities.follow(account(), "the-first", note);
        let second = AccountState::Present { uid: "the-second".to_owned() };
        for state in [Some(AccountState::Missing), None, Some(second), None] {
            rig.replace_account(state);
            tokio::time::sleep(2 * ASK_AGAIN).await;
        }
        let expected = [IdentityState::Missing, IdentityState::Present, IdentityState::Replaced];
        assert_eq!(*states.lock(), expected, "the last state is final");
        insta::assert_snapshot!(identity.denial().unwrap(), @"the ServiceAccount ns/p was deleted and created again; the host loads the plugin again for the new one");
        let restored = rig.identities.follow(account(), "the-first", |_| {});
        assert_eq!(restored.state(), IdentityState::Present);
        assert!(restored.is(&identity) && identity.denial().is_some(), "the old one stays as it is");
        assert!(!rig.identities.follow(account(), "the-second", |_| {}).is(&identity));
        drop(restored);
        tokio::time::sleep(2 * ASK_AGAIN).await;
        assert_eq!(rig.tasks.names().len(), 1, "that of the old one");
        drop(identity);
        tokio::time::sleep(2 * ASK_AGAIN).await;
        assert!(rig.tasks.names().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn promise_5_a_subscription_is_forbidden_while_its_account_is_missing() {
        let rig = Rig::new();
        rig.allow();
        let identity = rig.identities.follow(account(), "the-first", |_| {});
        let mut access = identity.access_to(&pods(), &ALL);
        access.wait_for(|it| *it == Access::Allowed(Namespaces::All)).await.unwrap();
        rig.replace_account(Some(AccountState::Missing));
        access.wait_for(|it| *it == Access::Forbidden(Denial::NoAccount(account()))).await.unwrap();
        assert_eq!(identity.state(), IdentityState::Missing);
        rig.replace_account(None);
        access.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
        assert_eq!(identity.state(), IdentityState::Present);
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_makes_the_access_unknown_and_leaves_the_state_as_it_is() {
        let rig = Rig::new();
        rig.allow();
        let (states, note) = noted();
        let identity = rig.identities.follow(account(), "the-first", note);
        let mut access = allowed(&identity).await;
        *rig.reviewer.down.lock() = true;
        access.wait_for(|it| matches!(it, Access::Unknown(_))).await.unwrap();
        *rig.reviewer.down.lock() = false;
        access.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
        assert!(states.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn plugins_of_one_account_share_a_task_and_its_questions() {
        let rig = Rig::new();
        rig.allow();
        let (states, note) = noted();
        let identities: Vec<_> =
            (0..3).map(|_| rig.identities.follow(account(), "the-first", |_| {})).collect();
        let gone = rig.identities.follow(account(), "the-first", note);
        let mut accesses: Vec<_> = identities.iter().map(|it| it.access_to(&pods(), &ALL)).collect();
        for access in &mut accesses {
            access.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
        }
        assert_eq!(rig.tasks.names().len(), 1);
        assert_eq!(rig.reviewer.asked(), 2, "one review for each verb");
        let late = identities[2].access_to(&pods(), &ALL);
        assert!(matches!(&*late.borrow(), Access::Allowed(_)), "nothing is asked for it");
        assert_eq!(identities[0].shared.n_decisions(), 1);
        let one = contract::Namespaces::One("a".to_owned());
        let mut narrow = identities[0].access_to(&pods(), &one);
        narrow.wait_for(|it| *it == Access::Allowed(Namespaces::one("a"))).await.unwrap();
        // One that is gone hears nothing of what changes for the others.
        drop(gone);
        rig.replace_account(Some(AccountState::Missing));
        for access in &mut accesses {
            access.wait_for(|it| matches!(it, Access::Forbidden(_))).await.unwrap();
        }
        assert!(states.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_subscription_does_not_get_a_denial_from_before() {
        let rig = Rig::new();
        let identity = rig.identities.follow(account(), "the-first", |_| {});
        let mut first = identity.access_to(&pods(), &ALL);
        first.wait_for(|it| matches!(it, Access::Forbidden(_))).await.unwrap();
        rig.allow();
        let mut second = identity.access_to(&pods(), &ALL);
        assert!(matches!(&*second.borrow_and_update(), Access::Unknown(_)), "the gate is asked first");
        first.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
        second.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_takes_long_does_not_delay_the_others() {
        let rig = Rig::new();
        rig.allow();
        let identity = rig.identities.follow(account(), "the-first", |_| {});
        let ask_and_wait = async |plural: &str| {
            let mut access = identity.access_to(&GroupVersionResource::new("", "v1", plural), &ALL);
            access.wait_for(|it| matches!(it, Access::Allowed(_))).await.map(drop).unwrap();
        };
        // From then on the gate knows the account.
        ask_and_wait("nodes").await;
        *rig.reviewer.stalls.lock() = Some(Duration::from_secs(4));
        let mut slow = identity.access_to(&pods(), &ALL);
        tokio::time::sleep(Duration::from_secs(1)).await;
        *rig.reviewer.stalls.lock() = None;
        ask_and_wait("services").await;
        assert!(matches!(&*slow.borrow_and_update(), Access::Unknown(_)), "it is not answered yet");
        slow.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn promise_5_a_late_answer_allows_nothing_to_a_missing_account() {
        let rig = Rig::new();
        rig.allow();
        let identity = rig.identities.follow(account(), "the-first", |_| {});
        // No tick comes while the test lasts.
        tokio::time::sleep_until(clock::next_tick(Instant::now(), ASK_AGAIN, &account())).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        *rig.reviewer.stalls.lock() = Some(Duration::from_millis(100));
        let mut access = identity.access_to(&pods(), &ALL);
        tokio::time::sleep(Duration::from_millis(50)).await;
        identity.set(IdentityState::Missing);
        assert!(matches!(&*access.borrow_and_update(), Access::Forbidden(_)), "before the gate has answered");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!access.has_changed().unwrap(), "the gate allowed it: {:?}", access.borrow());
        access.wait_for(|it| matches!(it, Access::Allowed(_))).await.unwrap();
        assert_eq!(identity.state(), IdentityState::Present, "the account is there at the next tick");
    }

    #[tokio::test(start_paused = true)]
    async fn promise_5_a_subscription_of_a_replaced_account_stays_forbidden() {
        let rig = Rig::new();
        rig.allow();
        let identity = rig.identities.follow(account(), "the-first", |_| {});
        let mut access = allowed(&identity).await;
        // The gate asks by name, so it allows what the other account may.
        rig.replace_account(Some(AccountState::Present { uid: "the-second".to_owned() }));
        let replaced = Access::Forbidden(Denial::AccountReplaced(account()));
        access.wait_for(|it| *it == replaced).await.unwrap();
        let mut new = identity.access_to(&pods(), &ALL);
        assert!(matches!(&*new.borrow_and_update(), Access::Unknown(_)));
        new.changed().await.unwrap();
        tokio::time::sleep(12 * ASK_AGAIN).await;
        assert_eq!([&*access.borrow(), &*new.borrow_and_update()], [&replaced, &replaced]);
        assert!(!access.has_changed().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_followed_for_as_long_as_it_or_a_decision_is_in_use() {
        let rig = Rig::new();
        let identity = rig.identities.follow(account(), "the-first", |_| {});
        let clone = identity.clone();
        drop(identity);
        tokio::time::sleep(ASK_AGAIN).await;
        let looked = rig.reviewer.looked.load(Ordering::SeqCst);
        tokio::time::sleep(4 * ASK_AGAIN).await;
        assert!(rig.reviewer.looked.load(Ordering::SeqCst) > looked, "a clone is in use");
        let access = clone.access_to(&pods(), &ALL);
        drop(clone);
        tokio::time::sleep(ASK_AGAIN).await;
        let asked = rig.reviewer.asked();
        tokio::time::sleep(4 * ASK_AGAIN).await;
        assert!(rig.reviewer.asked() > asked, "a receiver of the decision is in use");
        drop(access);
        tokio::time::sleep(2 * ASK_AGAIN).await;
        assert_eq!(rig.tasks.names(), Vec::<Arc<str>>::new());
        assert!(rig.identities.accounts.0.lock().is_empty());
        // It can be followed again.
        let mut again = rig.identities.follow(account(), "the-first", |_| {}).access_to(&pods(), &ALL);
        again.wait_for(|it| matches!(it, Access::Forbidden(_))).await.unwrap();
    }
}
