use oarlock_plugin::contract::Namespaces as Declared;

use super::testing::{FakeReviewer, Known};
use super::*;

fn account() -> Account {
    Account { namespace: "plugins".to_owned(), name: "hello".to_owned() }
}

fn secrets() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "secrets")
}

fn gate(known: Option<&'static [&'static str]>) -> (Arc<FakeReviewer>, Gate) {
    let reviewer = Arc::new(FakeReviewer::default());
    let gate = Gate::with_reviewer(reviewer.clone(), Arc::new(Known(known)), reviewer.clone());
    (reviewer, gate)
}

/// Asks the gate one question about Secrets in all namespaces.
async fn allowed(gate: &Gate, verb: &'static str) -> Result<bool, Error> {
    let question = Question { account: account(), verb, resource: secrets(), namespace: None };
    Ok(gate.answer(&gate.cache_of(&account()), question, DENIED_FOR).await?.allowed)
}

/// The decision about Secrets in all namespaces.
async fn access(gate: &Gate) -> Access {
    gate.access(&account(), &secrets(), &Declared::All).await
}

/// The decision about Secrets in one namespace.
async fn access_to_one(gate: &Gate, namespace: &str) -> Access {
    gate.access(&account(), &secrets(), &Declared::One(namespace.to_owned())).await
}

fn allowed_in(namespace: &str) -> Access {
    Access::Allowed(Namespaces::one(namespace))
}

fn is_not_granted(access: &Access) -> bool {
    matches!(access, Access::Forbidden(Denial::NotGranted { .. }))
}

#[tokio::test(start_paused = true)]
async fn an_allowance_is_cached_for_ten_seconds_and_a_denial_for_five() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    assert!(allowed(&gate, "list").await.unwrap());
    assert!(!allowed(&gate, "watch").await.unwrap());
    assert_eq!(reviewer.asked(), 2);

    tokio::time::advance(DENIED_FOR - Duration::from_millis(1)).await;
    assert!(allowed(&gate, "list").await.unwrap());
    assert!(!allowed(&gate, "watch").await.unwrap());
    assert_eq!(reviewer.asked(), 2, "both answers are still valid");

    tokio::time::advance(Duration::from_millis(1)).await;
    reviewer.allow("watch", None);
    assert!(allowed(&gate, "watch").await.unwrap(), "a new right takes effect");
    assert!(allowed(&gate, "list").await.unwrap());
    assert_eq!(reviewer.asked(), 3);

    reviewer.allowed.lock().clear();
    tokio::time::advance(ALLOWED_FOR - DENIED_FOR).await;
    assert!(!allowed(&gate, "list").await.unwrap(), "a revoked right is gone");
}

#[tokio::test(start_paused = true)]
async fn concurrent_callers_with_the_same_question_share_one_review() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.stalls.lock() = Some(Duration::from_secs(1));
    let answers = futures::future::join_all((0..50).map(|_| allowed(&gate, "list"))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap()));
    assert_eq!(reviewer.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_next_caller_continues_a_review_whose_caller_was_cancelled() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.stalls.lock() = Some(Duration::from_secs(2));
    let cancelled = tokio::time::timeout(Duration::from_secs(1), allowed(&gate, "list")).await;
    assert!(cancelled.is_err());
    assert!(allowed(&gate, "list").await.unwrap());
    assert_eq!(reviewer.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_review_is_not_used_after_it_expired() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.stalls.lock() = Some(Duration::from_secs(2));
    let cancelled = tokio::time::timeout(Duration::from_secs(1), allowed(&gate, "list")).await;
    assert!(cancelled.is_err());
    tokio::time::advance(ALLOWED_FOR).await;
    reviewer.allowed.lock().clear();
    assert!(!allowed(&gate, "list").await.unwrap());
    assert_eq!(reviewer.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn callers_that_look_for_an_account_at_the_same_time_share_one_look() {
    let (reviewer, gate) = gate(None);
    let of = account();
    let looked = || reviewer.looked.load(Ordering::SeqCst);
    *reviewer.stalls.lock() = Some(Duration::from_millis(10));
    let all = || futures::future::join_all((0..50).map(|_| gate.account(&of)));
    assert!(all().await.iter().all(|state| matches!(state, Ok(AccountState::Present { .. }))));
    assert_eq!(looked(), 1);
    tokio::time::advance(PRESENT_FOR).await;
    *reviewer.down.lock() = true;
    assert!(all().await.iter().all(Result::is_err));
    assert_eq!(looked(), 2);
    // A failed look is no answer, and a caller that goes away leaves it to the next one.
    *reviewer.down.lock() = false;
    *reviewer.account.lock() = Some(AccountState::Missing);
    let patience = Duration::from_millis(5);
    assert!(tokio::time::timeout(patience, gate.account(&of)).await.is_err());
    assert_eq!(gate.account(&of).await.unwrap(), AccountState::Missing);
    assert_eq!(looked(), 3);
    tokio::time::advance(MISSING_FOR).await;
    *reviewer.account.lock() = None;
    assert!(matches!(gate.account(&of).await.unwrap(), AccountState::Present { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_unknown_while_the_api_server_cannot_be_asked() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    *reviewer.down.lock() = true;
    assert!(matches!(allowed(&gate, "list").await, Err(Error::Unavailable { .. })));
    insta::assert_snapshot!(format!("{:?}", access(&gate).await), @r#"Unknown("the API server cannot be asked for the rights of plugins/hello: down")"#);
    *reviewer.down.lock() = false;
    assert!(allowed(&gate, "list").await.unwrap());

    *reviewer.stalls.lock() = Some(ASK_TIMEOUT * 2);
    let error = allowed(&gate, "watch").await.unwrap_err();
    insta::assert_snapshot!(error, @"the API server cannot be asked for the rights of plugins/hello: no answer within 5 s");
}

#[tokio::test(start_paused = true)]
async fn access_needs_both_verbs_everywhere_or_in_the_namespace() {
    let (reviewer, gate) = gate(Some(&["a", "b", "c"]));
    for (verb, namespace) in [("list", "a"), ("watch", "a"), ("list", "b"), ("watch", "c")] {
        reviewer.allow(verb, Some(namespace));
    }
    assert_eq!(access(&gate).await, allowed_in("a"));
    let Access::Forbidden(denial) = access_to_one(&gate, "b").await else { panic!("watch is not granted") };
    insta::assert_snapshot!(denial, @r#"ServiceAccount plugins/hello may not list and watch v1/secrets in namespace "b""#);

    tokio::time::advance(ALLOWED_FOR).await;
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    let before = reviewer.asked();
    assert_eq!(access(&gate).await, Access::Allowed(Namespaces::All));
    assert_eq!(reviewer.asked(), before + 2, "the gate asks about no single namespace");
    assert_eq!(access_to_one(&gate, "b").await, allowed_in("b"));
}

#[tokio::test(start_paused = true)]
async fn promise_5_about_a_cluster_scoped_resource_only_the_right_in_the_whole_cluster_counts() {
    let (reviewer, gate) = gate(Some(&["a", "b"]));
    *reviewer.cluster_scoped.lock() = true;
    reviewer.allow("list", Some("a"));
    reviewer.allow("watch", Some("a"));
    let Access::Forbidden(denial) = access(&gate).await else { panic!("it is allowed nowhere else") };
    insta::assert_snapshot!(denial, @"ServiceAccount plugins/hello may not list and watch v1/secrets, which is cluster-scoped: a RoleBinding does not grant that, a ClusterRoleBinding does");
    assert!(matches!(access_to_one(&gate, "a").await, Access::Forbidden(_)));
    assert!(matches!(gate.access_in(&account(), &secrets(), "").await, Access::Forbidden(_)));
    assert_eq!(reviewer.asked(), 1, "the gate asks about no single namespace");

    tokio::time::advance(DENIED_FOR).await;
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    assert_eq!(access(&gate).await, Access::Allowed(Namespaces::All));
    // A right in the whole cluster needs no scope.
    *reviewer.discovery_fails.lock() = true;
    tokio::time::advance(ALLOWED_FOR).await;
    assert_eq!(access(&gate).await, Access::Allowed(Namespaces::All));
    reviewer.allowed.lock().clear();
    tokio::time::advance(ALLOWED_FOR).await;
    insta::assert_snapshot!(format!("{:?}", access(&gate).await), @r#"Unknown("the API server cannot be asked for the rights of plugins/hello: discovery of v1 failed: down")"#);
}

#[tokio::test(start_paused = true)]
async fn access_in_a_namespace_follows_from_the_decision_about_all() {
    let (reviewer, gate) = gate(Some(&["a", "b"]));
    reviewer.allow("list", Some("a"));
    reviewer.allow("watch", Some("a"));
    let access_in = async |namespace: &str| gate.access_in(&account(), &secrets(), namespace).await;
    assert_eq!(access_in("a").await, allowed_in("a"));
    let asked = reviewer.asked();
    assert!(is_not_granted(&access_in("b").await));
    assert!(is_not_granted(&access_in("made-up").await), "it does not exist, which the answer does not show");
    assert_eq!(access_in("a").await, allowed_in("a"));
    assert_eq!(reviewer.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn access_is_unknown_until_the_namespaces_are_known() {
    let (_, gate) = gate(None);
    assert!(matches!(access(&gate).await, Access::Unknown(_)));
}

#[tokio::test(start_paused = true)]
async fn a_combined_decision_expires_with_the_answers_that_it_was_made_of() {
    let (reviewer, gate) = gate(Some(&["a", "b"]));
    reviewer.allow("list", Some("a"));
    reviewer.allow("watch", Some("a"));
    assert_eq!(access(&gate).await, allowed_in("a"));
    reviewer.allowed.lock().clear();
    // The gate asks denials again after five seconds, allowances after ten.
    tokio::time::advance(ALLOWED_FOR - Duration::from_millis(1)).await;
    assert_eq!(access(&gate).await, allowed_in("a"));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(is_not_granted(&access(&gate).await));
}

#[tokio::test(start_paused = true)]
async fn promise_4_namespaces_that_a_guest_made_up_cost_the_api_server_nothing() {
    let (reviewer, gate) = gate(Some(&["a"]));
    reviewer.allow("list", Some("a"));
    reviewer.allow("watch", Some("a"));
    assert_eq!(access_to_one(&gate, "a").await, allowed_in("a"));
    let asked = reviewer.asked();
    for i in 0..10_000 {
        assert!(is_not_granted(&access_to_one(&gate, &format!("made-up-{i}")).await));
    }
    assert_eq!(reviewer.asked(), asked);
    assert_eq!(gate.cache_of(&account()).n_decisions(), 1);

    tokio::time::advance(ALLOWED_FOR).await;
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    for i in 0..10_000 {
        let namespace = format!("made-up-{i}");
        assert_eq!(access_to_one(&gate, &namespace).await, allowed_in(&namespace), "it may be created later");
    }
    assert_eq!(reviewer.asked(), asked + 2);
    assert_eq!(gate.cache_of(&account()).n_decisions(), 1);
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_account_costs_the_api_server_no_more_than_its_rate() {
    let (reviewer, gate) = gate(Some(&["a"]));
    let gate = Arc::new(gate);
    // A plugin that declares resources without end, none of which it may see.
    let ask = |n: usize| {
        let gate = gate.clone();
        let resource = GroupVersionResource::new("made.up", "v1", format!("things-{n}"));
        async move { gate.access(&account(), &resource, &Declared::All).await }
    };
    let began = Instant::now();
    let decisions = futures::future::join_all((0..20_000).map(ask)).await;
    let seconds = began.elapsed().as_secs_f64();
    let most = f64::from(REVIEWS_AT_ONCE) + REVIEWS_PER_SECOND * (seconds + RATE_PATIENCE.as_secs_f64());
    assert!(reviewer.asked() as f64 <= most, "{} in {seconds} s", reviewer.asked());
    let unknown = decisions.iter().find_map(|access| match access {
        Access::Unknown(reason) => Some(reason),
        _ => None,
    });
    insta::assert_snapshot!(unknown.unwrap(), @"checking the rights of plugins/hello takes more than 100 SubjectAccessReviews a second; declare fewer resources, or grant the rights in all namespaces, so that one review decides for all of them");
    // Another account does not wait for this one.
    let other = Account { namespace: "plugins".to_owned(), name: "other".to_owned() };
    let began = Instant::now();
    assert!(is_not_granted(&gate.access(&other, &secrets(), &Declared::All).await));
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn promise_4_made_up_namespaces_fill_neither_the_gate_nor_the_cache_of_another_account() {
    // The host does not know which namespaces exist, so each name costs a review.
    let (reviewer, gate) = gate(None);
    let gate = Gate { most_answers: 4_096, ..gate };
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    let good = account();
    assert_eq!(gate.access(&good, &secrets(), &Declared::All).await, Access::Allowed(Namespaces::All));
    reviewer.allowed.lock().clear();

    let before = reviewer.asked();
    let ask = |n: usize| {
        let account = Account { namespace: "plugins".to_owned(), name: format!("hostile-{}", n % 16) };
        let gate = &gate;
        async move { gate.access(&account, &secrets(), &Declared::One(format!("made-up-{n}"))).await }
    };
    // More than the accounts' rates allow: the others are unknown. With 1,100 names for each account, the
    // last review that is not refused waits for RATE_PATIENCE, less than the good answers are valid.
    let began = Instant::now();
    let decisions = futures::future::join_all((0..17_600).map(ask)).await;
    assert!(began.elapsed() < ALLOWED_FOR);
    assert!(decisions.iter().any(|it| matches!(it, Access::Unknown(_))));
    let asked = reviewer.asked() - before;
    assert!(asked > 4_096 + COUNT_EVERY, "the accounts tried to pass the limit: {asked}");
    let of_one = f64::from(REVIEWS_AT_ONCE) + REVIEWS_PER_SECOND * 2.0 * RATE_PATIENCE.as_secs_f64();
    assert!(asked as f64 <= 16.0 * of_one, "{asked}");
    let cached: usize = gate.caches.lock().values().map(|cache| cache.n_cached()).sum();
    assert!(cached <= 4_096 + COUNT_EVERY, "{cached}");

    // The account that asked about little has lost nothing.
    let before = reviewer.asked();
    assert_eq!(gate.access(&good, &secrets(), &Declared::All).await, Access::Allowed(Namespaces::All));
    assert_eq!(reviewer.asked(), before);
}

#[tokio::test(start_paused = true)]
async fn denials_in_many_namespaces_are_cached_longer() {
    let names: Vec<String> = (0..400).map(|n| format!("n{n}")).collect();
    let names: Vec<&'static str> = names.into_iter().map(|name| &*Box::leak(name.into_boxed_str())).collect();
    let (reviewer, gate) = gate(Some(Box::leak(names.into_boxed_slice())));
    for _ in 0..60 {
        assert!(is_not_granted(&access(&gate).await));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    // The gate asks about each namespace every 20 seconds, and about all of them every 5 seconds.
    let asked = reviewer.asked();
    assert!((1_200..=1_240).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn promise_5_an_account_that_was_deleted_may_do_nothing_whatever_rbac_grants_to_its_name() {
    let (reviewer, gate) = gate(None);
    reviewer.allow("list", None);
    reviewer.allow("watch", None);
    assert_eq!(access(&gate).await, Access::Allowed(Namespaces::All));
    *reviewer.account.lock() = Some(AccountState::Missing);
    tokio::time::advance(PRESENT_FOR).await;
    let Access::Forbidden(denial) = access(&gate).await else { panic!("the account is missing") };
    insta::assert_snapshot!(denial, @"the ServiceAccount plugins/hello does not exist");
    *reviewer.account.lock() = Some(AccountState::Present { uid: "the-second".to_owned() });
    tokio::time::advance(MISSING_FOR).await;
    assert_eq!(access(&gate).await, Access::Allowed(Namespaces::All));
}
