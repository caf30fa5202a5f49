use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;

/// Allows what is in a list, counts, and can be made to fail or stall.
#[derive(Default)]
struct FakeReviewer {
    allowed: Mutex<BTreeSet<(String, Option<String>)>>,
    asked: AtomicUsize,
    down: Mutex<bool>,
    stalls: Mutex<Option<Duration>>,
}

struct Known(Option<&'static [&'static str]>);

#[async_trait]
impl Reviewer for FakeReviewer {
    async fn review(&self, question: &Question) -> Result<bool, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let stall = *self.stalls.lock();
        if let Some(stall) = stall {
            tokio::time::sleep(stall).await;
        }
        if *self.down.lock() {
            return Err(Error::Unavailable { account: question.account.clone(), reason: "down".to_owned() });
        }
        Ok(self.allowed.lock().contains(&(question.verb.to_owned(), question.namespace.clone())))
    }

    async fn account_state(&self, _account: &Account) -> Result<AccountState, Error> {
        Ok(AccountState::Missing)
    }
}

impl KnownNamespaces for Known {
    fn names(&self) -> Option<BTreeSet<String>> {
        self.0.map(|names| names.iter().map(|&name| name.to_owned()).collect())
    }
}

impl FakeReviewer {
    fn allow(&self, verb: &str, namespace: Option<&str>) {
        self.allowed.lock().insert((verb.to_owned(), namespace.map(str::to_owned)));
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn account() -> Account {
    Account { namespace: "plugins".to_owned(), name: "hello".to_owned() }
}

fn secrets() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "secrets")
}

fn question(verb: &'static str) -> Question {
    Question { account: account(), verb, resource: secrets(), namespace: None }
}

fn gate(known: Option<&'static [&'static str]>) -> (Arc<FakeReviewer>, Gate) {
    let reviewer = Arc::new(FakeReviewer::default());
    (Arc::clone(&reviewer), Gate::with_reviewer(reviewer, Arc::new(Known(known))))
}

#[tokio::test(start_paused = true)]
async fn keeps_an_allowance_ten_seconds_and_a_denial_five() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    assert!(gate.allowed(question("list")).await.unwrap());
    assert!(!gate.allowed(question("watch")).await.unwrap());
    assert_eq!(reviewer.asked(), 2);

    tokio::time::advance(DENIED_FOR - Duration::from_millis(1)).await;
    assert!(gate.allowed(question("list")).await.unwrap());
    assert!(!gate.allowed(question("watch")).await.unwrap());
    assert_eq!(reviewer.asked(), 2, "both answers are still good");

    tokio::time::advance(Duration::from_millis(1)).await;
    reviewer.allow("watch", None);
    assert!(gate.allowed(question("watch")).await.unwrap(), "a right just given shows");
    assert!(gate.allowed(question("list")).await.unwrap());
    assert_eq!(reviewer.asked(), 3);

    reviewer.allowed.lock().clear();
    tokio::time::advance(ALLOWED_FOR - DENIED_FOR).await;
    assert!(!gate.allowed(question("list")).await.unwrap(), "a right taken away is gone");
}

#[tokio::test(start_paused = true)]
async fn asks_once_for_many_who_wait() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.stalls.lock() = Some(Duration::from_secs(1));
    let answers = futures::future::join_all((0..50).map(|_| gate.allowed(question("list")))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap()));
    assert_eq!(reviewer.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_asker_who_gives_up_costs_the_next_one_nothing() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.stalls.lock() = Some(Duration::from_secs(2));
    let given_up = tokio::time::timeout(Duration::from_secs(1), gate.allowed(question("list"))).await;
    assert!(given_up.is_err());
    assert!(gate.allowed(question("list")).await.unwrap());
    assert_eq!(reviewer.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_old_answer_that_nobody_fetched_is_not_used() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.stalls.lock() = Some(Duration::from_secs(2));
    let given_up = tokio::time::timeout(Duration::from_secs(1), gate.allowed(question("list"))).await;
    assert!(given_up.is_err());
    tokio::time::advance(ALLOWED_FOR).await;
    reviewer.allowed.lock().clear();
    assert!(!gate.allowed(question("list")).await.unwrap());
    assert_eq!(reviewer.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn is_closed_when_the_api_server_cannot_be_asked_and_opens_at_once_after() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.down.lock() = true;
    assert!(matches!(gate.allowed(question("list")).await, Err(Error::Unavailable { .. })));
    *reviewer.down.lock() = false;
    assert!(gate.allowed(question("list")).await.unwrap());

    *reviewer.stalls.lock() = Some(ASK_TIMEOUT * 2);
    let error = gate.allowed(question("watch")).await.unwrap_err();
    insta::assert_snapshot!(error, @"the API server cannot be asked what plugins/hello may do: no answer within 5 s");
}

#[tokio::test(start_paused = true)]
async fn reads_everywhere_or_only_where_both_verbs_are_allowed() {
    let (reviewer, gate) = gate(Some(&["a", "b", "c"]));
    for (verb, namespace) in [("list", "a"), ("watch", "a"), ("list", "b"), ("watch", "c")] {
        reviewer.allow(verb, Some(namespace));
    }
    let readable = gate.readable(&account(), &secrets(), &Namespaces::All).await.unwrap();
    assert_eq!(readable, Readable::Only(["a".to_owned()].into()));

    let one = gate.readable(&account(), &secrets(), &Namespaces::One("b".to_owned())).await.unwrap();
    assert!(one.is_nowhere());

    tokio::time::advance(ALLOWED_FOR).await;
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    let before = reviewer.asked();
    assert_eq!(gate.readable(&account(), &secrets(), &Namespaces::All).await.unwrap(), Readable::All);
    assert_eq!(reviewer.asked(), before + 2, "no namespace is asked about one by one");
    let one = gate.readable(&account(), &secrets(), &Namespaces::One("b".to_owned())).await.unwrap();
    assert_eq!(one, Readable::Only(["b".to_owned()].into()));
}

#[tokio::test(start_paused = true)]
async fn a_narrow_account_waits_for_the_namespaces_to_be_known() {
    let (_, gate) = gate(None);
    let error = gate.readable(&account(), &secrets(), &Namespaces::All).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }));
}
