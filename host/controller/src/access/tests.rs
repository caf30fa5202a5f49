use super::testing::{FakeReviewer, Known};
use super::*;

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

#[tokio::test(start_paused = true)]
async fn what_was_put_together_of_answers_is_no_older_than_they_are() {
    let (reviewer, gate) = gate(Some(&["a", "b"]));
    reviewer.allow("list", Some("a"));
    reviewer.allow("watch", Some("a"));
    let readable = |gate: Arc<Gate>| async move {
        gate.readable(&account(), &secrets(), &Namespaces::All).await.unwrap()
    };
    let gate = Arc::new(gate);
    assert_eq!(readable(gate.clone()).await, Readable::Only(["a".to_owned()].into()));
    reviewer.allowed.lock().clear();
    // The denials are asked again after five seconds, the allowances after ten.
    tokio::time::advance(ALLOWED_FOR - Duration::from_millis(1)).await;
    assert_eq!(readable(gate.clone()).await, Readable::Only(["a".to_owned()].into()));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(readable(gate).await.is_nowhere());
}

#[tokio::test(start_paused = true)]
async fn promise_4_namespaces_that_a_guest_made_up_cost_the_api_server_nothing() {
    let (reviewer, gate) = gate(Some(&["a"]));
    reviewer.allow("list", Some("a"));
    reviewer.allow("watch", Some("a"));
    let one =
        async |name: String| gate.readable(&account(), &secrets(), &Namespaces::One(name)).await.unwrap();
    assert!(!one("a".to_owned()).await.is_nowhere());
    let asked = reviewer.asked();
    for i in 0..10_000 {
        assert!(one(format!("made-up-{i}")).await.is_nowhere());
    }
    assert_eq!(reviewer.asked(), asked);
    assert_eq!(gate.asked(&account()).n_readings(), 1);

    tokio::time::advance(ALLOWED_FOR).await;
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    for i in 0..10_000 {
        assert!(!one(format!("made-up-{i}")).await.is_nowhere(), "and may be created");
    }
    assert_eq!(reviewer.asked(), asked + 2);
    assert_eq!(gate.asked(&account()).n_readings(), 1);
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_account_costs_the_api_server_no_more_than_its_rate() {
    let (reviewer, gate) = gate(Some(&["a"]));
    let gate = Arc::new(gate);
    // A plugin that declares resources without end, none of which it may see.
    let ask = |n: usize| {
        let gate = gate.clone();
        let resource = GroupVersionResource::new("made.up", "v1", format!("things-{n}"));
        async move { gate.readable(&account(), &resource, &Namespaces::All).await }
    };
    let began = Instant::now();
    let answers = futures::future::join_all((0..20_000).map(ask)).await;
    let seconds = began.elapsed().as_secs_f64();
    let most = f64::from(REVIEWS_AT_ONCE) + REVIEWS_PER_SECOND * (seconds + RATE_PATIENCE.as_secs_f64());
    assert!(reviewer.asked() as f64 <= most, "{} in {seconds} s", reviewer.asked());
    let refused = answers.iter().find_map(|it| it.as_ref().err()).unwrap();
    insta::assert_snapshot!(refused, @"what plugins/hello may do takes more than 100 questions a second to find out; declare fewer resources, or grant them in all namespaces: one answer then does for all");
    // Another account is not held up by it.
    let other = Account { namespace: "plugins".to_owned(), name: "other".to_owned() };
    let began = Instant::now();
    assert!(gate.readable(&other, &secrets(), &Namespaces::All).await.unwrap().is_nowhere());
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn denials_in_many_namespaces_are_kept_longer() {
    let names: Vec<String> = (0..400).map(|n| format!("n{n}")).collect();
    let names: Vec<&'static str> = names.into_iter().map(|name| &*Box::leak(name.into_boxed_str())).collect();
    let (reviewer, gate) = gate(Some(Box::leak(names.into_boxed_slice())));
    for _ in 0..60 {
        assert!(gate.readable(&account(), &secrets(), &Namespaces::All).await.unwrap().is_nowhere());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    // Once in 20 seconds about each, and every 5 about all.
    let asked = reviewer.asked();
    assert!((1_200..=1_240).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn promise_5_an_account_that_is_gone_may_nothing_whatever_rbac_says_of_its_name() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    let readable = async || gate.readable(&account(), &secrets(), &Namespaces::All).await;
    assert_eq!(readable().await.unwrap(), Readable::All);
    *reviewer.account.lock() = Some(AccountState::Missing);
    tokio::time::advance(PRESENT_FOR).await;
    insta::assert_snapshot!(readable().await.unwrap_err(), @"the ServiceAccount plugins/hello does not exist");
    *reviewer.account.lock() = Some(AccountState::Present { uid: "the-second".to_owned() });
    tokio::time::advance(MISSING_FOR).await;
    assert_eq!(readable().await.unwrap(), Readable::All);
}
