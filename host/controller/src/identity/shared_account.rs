//! One account: its state, the decisions of the gate about it, and the task that keeps both up to date.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use oarlock_flow_control::clock;
use oarlock_informer::GroupVersionResource;
use oarlock_plugin::contract;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::identities::Accounts;
use super::{IdentityState, OnChange};
use crate::access::{self, Access, AccountState, Denial, Gate};
use crate::account::Account;

/// How often the account is checked, and the gate asked.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(5);

/// One account that plugins act as.
pub(super) struct SharedAccount {
    account: Account,
    uid: Arc<str>,
    /// An [`IdentityState`], which each read of the cache looks at. Changed while `known` is locked.
    state: AtomicU8,
    known: Mutex<Known>,
    /// Locked while functions are called with a state, so that the last call is with the last state.
    reporting: Mutex<()>,
    /// Notified when a question is due before the next tick.
    due_early: Notify,
}

struct Known {
    /// The question about the account.
    asking: Asking,
    on_change: Vec<Weak<OnChange>>,
    decisions: Vec<Decision>,
    next_id: u64,
}

/// What the gate decided about one question.
struct Decision {
    id: u64,
    resource: GroupVersionResource,
    namespaces: contract::Namespaces,
    access: watch::Sender<Access>,
    asking: Asking,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Asking {
    /// The question is to be asked now.
    Due,
    /// It was asked, and is not answered yet.
    InProgress,
    /// The same, and the answer will be outdated: the question is to be asked again after it.
    Outdated,
    /// It is not asked before the next tick.
    Done,
}

/// The answer to the question about the account, or to that of the decision with this id.
enum Answer {
    Account(Result<AccountState, access::Error>),
    Decision(u64, Access),
}

type Answers = FuturesUnordered<BoxFuture<'static, Answer>>;

// === impl SharedAccount ===

impl SharedAccount {
    pub(super) fn new(account: Account, uid: Arc<str>) -> Self {
        let known = Known { asking: Asking::Due, on_change: Vec::new(), decisions: Vec::new(), next_id: 0 };
        let state = AtomicU8::new(IdentityState::Present as u8);
        Self {
            account,
            uid,
            state,
            known: Mutex::new(known),
            reporting: Mutex::default(),
            due_early: Notify::new(),
        }
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn uid(&self) -> &Arc<str> {
        &self.uid
    }

    pub(super) fn state(&self) -> IdentityState {
        match self.state.load(Ordering::Acquire) {
            0 => IdentityState::Present,
            1 => IdentityState::Missing,
            _ => IdentityState::Replaced,
        }
    }

    pub(super) fn denial(&self) -> Option<Denial> {
        match self.state() {
            IdentityState::Present => None,
            IdentityState::Missing => Some(Denial::NoAccount(self.account.clone())),
            IdentityState::Replaced => Some(Denial::AccountReplaced(self.account.clone())),
        }
    }

    /// Has the account checked before the next tick.
    pub(super) fn check_now(&self) {
        self.known.lock().asking.restart();
        self.due_early.notify_one();
    }

    /// Calls the function with each new state for as long as another reference to it exists.
    pub(super) fn call_on_change(&self, on_change: &Arc<OnChange>) {
        let mut known = self.known.lock();
        known.on_change.retain(|it| it.strong_count() > 0);
        known.on_change.push(Arc::downgrade(on_change));
    }

    /// See [`Identity::access_to`](super::Identity::access_to).
    pub(super) fn access_to(
        &self,
        resource: &GroupVersionResource,
        namespaces: &contract::Namespaces,
    ) -> watch::Receiver<Access> {
        let mut known = self.known.lock();
        let same = known
            .decisions
            .iter()
            .find(|it| it.resource == *resource && it.namespaces == *namespaces && it.is_for_new_receivers());
        if let Some(decision) = same {
            return decision.access.subscribe();
        }
        let unknown = Access::Unknown("the API server has not been asked yet".to_owned());
        let (sender, receiver) = watch::channel(unknown);
        let id = known.next_id;
        known.next_id += 1;
        known.decisions.push(Decision {
            id,
            resource: resource.clone(),
            namespaces: namespaces.clone(),
            access: sender,
            asking: Asking::Due,
        });
        self.due_early.notify_one();
        receiver
    }

    #[cfg(test)]
    pub(super) fn n_decisions(&self) -> usize {
        self.known.lock().decisions.len()
    }

    /// Returns whether a decision has a receiver.
    pub(super) fn has_receivers(&self) -> bool {
        self.known.lock().decisions.iter().any(|it| it.access.receiver_count() > 0)
    }

    /// Keeps the state and the decisions up to date until nothing uses them any more, or the token is
    /// cancelled. An API server that cannot be asked does not change the state.
    #[expect(clippy::manual_async_fn, reason = "an async function has each of its arguments twice")]
    pub(super) fn follow(
        self: Arc<Self>,
        gate: Arc<Gate>,
        accounts: Accounts,
        token: CancellationToken,
    ) -> impl Future<Output = ()> + Send {
        async move {
            // In a box while a question is in progress, so that a task that waits for its next tick is small.
            let mut answers: Option<Box<Answers>> = None;
            let mut tick = self.next_tick();
            loop {
                self.ask(&gate, &mut answers);
                let answer = tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    () = self.due_early.notified() => None,
                    answer = next_answer(&mut answers) => Some(answer),
                    () = tokio::time::sleep_until(tick) => {
                        if accounts.remove_unused(&self) {
                            return;
                        }
                        self.known.lock().begin_round(self.state());
                        tick = self.next_tick();
                        None
                    }
                };
                if let Some(answer) = answer {
                    self.note(answer);
                    // Others may be ready, too, and each may have taken a while.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Accounts are asked about at few moments, so that the process seldom wakes up.
    fn next_tick(&self) -> Instant {
        clock::next_tick(Instant::now(), ASK_AGAIN, &self.account)
    }

    /// Asks what is due. Forgets the decisions without a receiver.
    fn ask(&self, gate: &Arc<Gate>, answers: &mut Option<Box<Answers>>) {
        let mut ask = |question: BoxFuture<'static, Answer>| answers.get_or_insert_default().push(question);
        let mut known = self.known.lock();
        if known.asking.begin() {
            let (gate, account) = (gate.clone(), self.account.clone());
            ask(async move { Answer::Account(gate.account(&account).await) }.boxed());
        }
        known.decisions.retain(|it| it.access.receiver_count() > 0);
        let denial = self.denial();
        for decision in &mut known.decisions {
            if let Some(denial) = &denial {
                decision.deny(denial);
            } else if decision.asking.begin() {
                let (gate, account) = (gate.clone(), self.account.clone());
                let Decision { id, resource, namespaces, .. } = &*decision;
                let (id, resource, namespaces) = (*id, resource.clone(), namespaces.clone());
                let decide = async move { gate.access(&account, &resource, &namespaces).await };
                ask(decide.map(move |access| Answer::Decision(id, access)).boxed());
            }
        }
    }

    fn note(&self, answer: Answer) {
        match answer {
            Answer::Account(answer) => {
                let now = match answer {
                    Ok(AccountState::Present { uid }) if *uid == *self.uid => Some(IdentityState::Present),
                    Ok(AccountState::Present { .. }) => Some(IdentityState::Replaced),
                    Ok(AccountState::Missing) => Some(IdentityState::Missing),
                    Err(_) => None,
                };
                self.known.lock().asking.end();
                if let Some(now) = now {
                    self.change_to(now);
                }
            }
            Answer::Decision(id, access) => {
                let mut known = self.known.lock();
                // The account may have gone since the gate was asked.
                let denial = self.denial();
                if let Some(decision) = known.decisions.iter_mut().find(|it| it.id == id) {
                    let is_outdated = decision.asking.end();
                    match &denial {
                        Some(denial) => decision.deny(denial),
                        None if is_outdated => {}
                        None => decision.publish(access),
                    }
                }
            }
        }
    }

    /// Changes the state, unless it is final, and publishes what follows from it.
    pub(super) fn change_to(&self, now: IdentityState) {
        let on_change = {
            let mut known = self.known.lock();
            if [now, IdentityState::Replaced].contains(&self.state()) {
                return;
            }
            self.state.store(now as u8, Ordering::Release);
            let denial = self.denial();
            for decision in &mut known.decisions {
                match &denial {
                    Some(denial) => decision.deny(denial),
                    // An answer to a question from before may be about the account that was missing.
                    None => decision.asking.restart(),
                }
            }
            known.on_change.clone()
        };
        self.due_early.notify_one();
        // Without the lock of `known`, since they may look at the account.
        let _turn = self.reporting.lock();
        on_change.iter().filter_map(Weak::upgrade).for_each(|on_change| on_change(self.state()));
    }

    /// Calls a function with the state, unless the account exists.
    pub(super) fn report_again(&self, on_change: &OnChange) {
        let _turn = self.reporting.lock();
        match self.state() {
            IdentityState::Present => {}
            state => on_change(state),
        }
    }
}

// === impl Known ===

impl Known {
    /// Makes everything due that is neither in progress nor final.
    fn begin_round(&mut self, state: IdentityState) {
        if state != IdentityState::Replaced {
            self.asking.make_due();
        }
        self.decisions.iter_mut().for_each(|it| it.asking.make_due());
    }
}

// === impl Decision ===

impl Decision {
    /// Returns whether a new receiver may begin with the value. A denial may be older than the answer that
    /// the caller has just got from the gate.
    fn is_for_new_receivers(&self) -> bool {
        match &*self.access.borrow() {
            Access::Allowed(_) => true,
            Access::Unknown(_) => self.asking == Asking::Due,
            Access::Forbidden(_) => false,
        }
    }

    /// Publishes a denial, which needs no question.
    fn deny(&mut self, denial: &Denial) {
        if self.asking == Asking::Due {
            self.asking = Asking::Done;
        }
        self.publish(Access::Forbidden(denial.clone()));
    }

    fn publish(&self, access: Access) {
        self.access.send_if_modified(|before| {
            let has_changed = !before.is_same_for_receivers(&access);
            if has_changed {
                *before = access;
            }
            has_changed
        });
    }
}

// === impl Asking ===

impl Asking {
    /// Makes a question due that is not in progress.
    fn make_due(&mut self) {
        if *self == Self::Done {
            *self = Self::Due;
        }
    }

    /// Makes a question due whose answer so far, also one that is awaited, is outdated.
    fn restart(&mut self) {
        *self = match *self {
            Self::Due | Self::Done => Self::Due,
            Self::InProgress | Self::Outdated => Self::Outdated,
        };
    }

    /// Begins a question that is due. Returns whether it is.
    fn begin(&mut self) -> bool {
        let is_due = *self == Self::Due;
        if is_due {
            *self = Self::InProgress;
        }
        is_due
    }

    /// Ends a question with its answer. Returns whether the answer is outdated; then it is due again.
    fn end(&mut self) -> bool {
        let is_outdated = *self == Self::Outdated;
        *self = if is_outdated { Self::Due } else { Self::Done };
        is_outdated
    }
}

/// Waits for the next answer, if any question is in progress.
async fn next_answer(answers: &mut Option<Box<Answers>>) -> Answer {
    if let Some(asked) = answers
        && let Some(answer) = asked.next().await
    {
        return answer;
    }
    *answers = None;
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use oarlock_informer::object::Namespaces;

    use super::*;

    #[test]
    fn a_state_is_reported_again_unless_the_account_exists() {
        let shared = SharedAccount::new("ns/p".parse().unwrap(), "the-first".into());
        let states = Arc::new(Mutex::new(Vec::new()));
        let noted = states.clone();
        let on_change = move |state| noted.lock().push(state);
        for state in [IdentityState::Present, IdentityState::Missing, IdentityState::Replaced] {
            shared.change_to(state);
            shared.report_again(&on_change);
        }
        assert_eq!(*states.lock(), [IdentityState::Missing, IdentityState::Replaced]);
    }

    #[test]
    fn promise_5_a_replaced_account_stays_replaced() {
        let shared = SharedAccount::new("ns/p".parse().unwrap(), "the-first".into());
        let account = |uid: &str| {
            assert!(shared.known.lock().asking.begin());
            let uid = uid.to_owned();
            move |shared: &SharedAccount| shared.note(Answer::Account(Ok(AccountState::Present { uid })))
        };
        let answer = account("the-second");
        shared.check_now();
        answer(&shared);
        // The question was asked again, and the first account is there again.
        account("the-first")(&shared);
        assert_eq!(shared.state(), IdentityState::Replaced);
    }

    #[test]
    fn another_reason_why_the_access_is_unknown_is_published_and_another_number_is_not() {
        let shared = SharedAccount::new("ns/p".parse().unwrap(), "the-first".into());
        let pods = GroupVersionResource::new("", "v1", "pods");
        let mut access = shared.access_to(&pods, &contract::Namespaces::All);
        let mut published = |reason: &str| {
            shared.note(Answer::Decision(0, Access::Unknown(reason.to_owned())));
            let is_new = access.has_changed().unwrap();
            is_new.then(|| access.borrow_and_update().clone())
        };
        for reason in ["Connection refused (os error 111)", "invalid peer certificate: UnknownIssuer"] {
            assert_eq!(published(reason), Some(Access::Unknown(reason.to_owned())));
            assert_eq!(published(reason), None);
        }
        assert!(published("read 10.0.0.1:6443 from port 40001: reset").is_some());
        assert_eq!(published("read 10.0.0.1:6443 from port 51234: reset"), None);
    }

    #[test]
    fn promise_5_an_answer_to_a_question_from_before_an_account_was_missing_is_not_used() {
        let shared = SharedAccount::new("ns/p".parse().unwrap(), "the-first".into());
        let pods = GroupVersionResource::new("", "v1", "pods");
        let access = shared.access_to(&pods, &contract::Namespaces::All);
        let begin = || shared.known.lock().decisions[0].asking.begin();
        let answer = || shared.note(Answer::Decision(0, Access::Allowed(Namespaces::All)));
        assert!(begin());
        shared.change_to(IdentityState::Missing);
        shared.change_to(IdentityState::Present);
        answer();
        assert!(matches!(&*access.borrow(), Access::Forbidden(_)));
        assert!(begin(), "it is asked again");
        answer();
        assert!(matches!(&*access.borrow(), Access::Allowed(_)));
    }
}
