use oarlock_informer::Object;
use oarlock_informer::object::TypeMeta;
use oarlock_informer::testing::Draft;
use oarlock_plugin::contract::{self, WorkKey};
use oarlock_plugin::guest::HostBytes;
use oarlock_plugin::guest::host_bytes::Use;

use super::lister::MOST_SELECTORS;
use super::*;

fn key(name: &str) -> Key {
    let object = contract::ObjectKey { namespace: "n".to_owned(), name: name.to_owned() };
    WorkKey { kind: "it".to_owned(), object }.into()
}

fn lister() -> WakingLister {
    WakingLister {
        name: "pods".into(),
        indices: vec![("by-app".into(), IndexSource::Label("app".to_owned()))],
    }
}

fn sets() -> ReadSets {
    let sets = ReadSets::default();
    sets.serve(1, vec![lister()], |_| true);
    sets
}

fn object(name: &str, app: &str) -> Object {
    Draft::new(name).label("app", app).at(&TypeMeta::new("v1", "Pod"), "u", "1")
}

fn updated(old: &Object, new: &Object) -> Notification {
    Notification::Updated { old: old.clone(), new: new.clone() }
}

fn added(object: &Object) -> Notification {
    Notification::Added { object: object.clone(), is_in_initial_list: false }
}

fn deleted(object: &Object) -> Notification {
    Notification::Deleted { object: object.clone(), final_state_unknown: false }
}

/// A successful run of the version that serves, which reads this.
fn run(sets: &ReadSets, name: &str, reads: &[Read]) {
    let generation = sets.state.lock().generation;
    let run = sets.begin(key(name), generation);
    reads.iter().for_each(|read| run.reads("pods", read.clone()).unwrap());
    run.found();
    run.succeeded();
}

fn selector(namespace: Option<&str>, text: &str) -> Read {
    Read::Selector {
        namespace: namespace.map(Box::from),
        selector: text.parse().unwrap(),
        n_bytes: text.len(),
    }
}

fn get(name: &str) -> Read {
    Read::Object(ObjectKey::new("n", name))
}

/// Returns the names of the keys that a change wakes.
fn woken(sets: &ReadSets, notification: &Notification) -> Vec<String> {
    sets.changed("pods", notification);
    let mut names: Vec<_> = sets.take_due(usize::MAX).0.into_iter().map(|key| key.name.clone()).collect();
    names.sort();
    names
}

#[test]
fn an_object_that_was_read_or_was_missing_wakes_its_readers() {
    let sets = sets();
    run(&sets, "reads-a", &[get("a")]);
    run(&sets, "reads-b", &[get("b")]);
    let (a, other) = (object("n/a", "web"), object("m/a", "web"));
    assert_eq!(woken(&sets, &added(&a)), ["reads-a"], "a name that appears");
    assert_eq!(woken(&sets, &updated(&a, &object("n/a", "db"))), ["reads-a"]);
    assert_eq!(woken(&sets, &deleted(&a)), ["reads-a"]);
    assert!(woken(&sets, &added(&other)).is_empty(), "another namespace");
}

#[test]
fn a_selector_wakes_by_the_state_before_and_after_in_its_namespace() {
    let sets = sets();
    run(&sets, "here", &[selector(Some("n"), "app=web")]);
    run(&sets, "everywhere", &[selector(None, "app=web")]);
    run(&sets, "elsewhere", &[selector(Some("m"), "app=web")]);
    let (web, db, cache) = (object("n/a", "web"), object("n/a", "db"), object("n/a", "cache"));
    for change in [updated(&web, &db), updated(&db, &web), added(&web), deleted(&web), updated(&web, &web)] {
        assert_eq!(woken(&sets, &change), ["everywhere", "here"], "{change:?}");
    }
    assert!(woken(&sets, &updated(&db, &cache)).is_empty());
    assert_eq!(woken(&sets, &added(&object("o/a", "web"))), ["everywhere"]);
}

#[test]
fn an_index_wakes_by_the_values_before_and_after() {
    let sets = sets();
    let value = |namespace: Option<&str>| Read::Value {
        namespace: namespace.map(Box::from),
        index: "by-app".into(),
        value: "web".into(),
    };
    run(&sets, "here", &[value(Some("n"))]);
    run(&sets, "everywhere", &[value(None)]);
    run(&sets, "values", &[Read::Values { index: "by-app".into() }]);
    let (web, db) = (object("n/a", "web"), object("n/a", "db"));
    assert_eq!(woken(&sets, &updated(&web, &db)), ["everywhere", "here", "values"]);
    assert_eq!(woken(&sets, &updated(&db, &web)), ["everywhere", "here", "values"]);
    assert_eq!(woken(&sets, &updated(&web, &web)), ["everywhere", "here"], "no value changed");
    assert_eq!(woken(&sets, &added(&db)), ["values"]);
    assert_eq!(woken(&sets, &added(&object("m/a", "web"))), ["everywhere", "values"]);
}

#[test]
fn a_success_replaces_the_reads_and_a_failure_adds_to_them() {
    let sets = sets();
    run(&sets, "k", &[get("a")]);
    let failed = sets.begin(key("k"), 1);
    failed.reads("pods", get("b")).unwrap();
    drop(failed);
    assert_eq!(woken(&sets, &added(&object("n/a", ""))), ["k"]);
    assert_eq!(woken(&sets, &added(&object("n/b", ""))), ["k"]);
    run(&sets, "k", &[get("c")]);
    assert!(woken(&sets, &added(&object("n/a", ""))).is_empty());
    assert!(woken(&sets, &added(&object("n/b", ""))).is_empty());
    assert_eq!(woken(&sets, &added(&object("n/c", ""))), ["k"]);
    run(&sets, "k", &[]);
    assert!(woken(&sets, &added(&object("n/c", ""))).is_empty());
    let state = sets.state.lock();
    assert!(state.keys.is_empty() && state.listers["pods"].readers.is_empty() && state.n_bytes == 0);
}

#[test]
fn a_change_during_the_run_wakes_the_key() {
    let sets = sets();
    let run = sets.begin(key("k"), 1);
    run.reads("pods", get("a")).unwrap();
    assert_eq!(woken(&sets, &added(&object("n/a", ""))), ["k"]);
    run.succeeded();
    assert_eq!(woken(&sets, &deleted(&object("n/a", ""))), ["k"]);
}

#[test]
fn promise_4_a_key_that_reads_too_much_is_woken_by_any_change() {
    let sets = sets();
    let all: Vec<_> = (0..MOST_READS).map(|n| get(&n.to_string())).collect();
    run(&sets, "k", &all);
    assert_eq!(sets.n_any(), 0);
    assert!(woken(&sets, &added(&object("n/other", ""))).is_empty());
    run(&sets, "k", &[&all[..], &[get("one-more")]].concat());
    assert_eq!(sets.n_any(), 1);
    assert_eq!(woken(&sets, &added(&object("n/other", ""))), ["k"]);
    run(&sets, "k", &[get("a")]);
    assert_eq!(sets.n_any(), 0);
    assert!(woken(&sets, &added(&object("n/other", ""))).is_empty());
}

#[test]
fn promise_4_selectors_beyond_the_bound_of_a_lister_wake_by_any_change() {
    let sets = sets();
    for n in 0..MOST_SELECTORS {
        run(&sets, &n.to_string(), &[selector(None, &format!("app=app-{n}"))]);
    }
    assert_eq!(sets.n_any(), 0);
    run(&sets, "one-more", &[selector(None, "app=other")]);
    run(&sets, "same", &[selector(None, "app=app-7")]);
    assert_eq!(sets.n_any(), 1);
    assert_eq!(woken(&sets, &added(&object("n/a", "app-7"))), ["7", "one-more", "same"]);
}

#[test]
fn promise_4_read_sets_are_charged_and_keys_that_found_nothing_make_room() {
    let account = HostBytes::default();
    let sets = sets().charged(account.charge(Use::ReadSets, 0).ok());
    let long = "x".repeat(200);
    // Such as the last runs for objects that are gone.
    let mut n_keys = 0;
    while account.view().read_sets < (MOST_BYTES - 2_000) as u64 {
        let nothing = sets.begin(key(&format!("{long}-{n_keys}")), 1);
        nothing.reads("pods", get(&n_keys.to_string())).unwrap();
        nothing.succeeded();
        n_keys += 1;
    }
    let object_of = |n: usize| added(&object(&format!("n/{n}"), ""));
    assert_eq!(woken(&sets, &object_of(0)).len(), 1);
    run(&sets, "k", &(0..20).map(|n| get(&format!("k-{n}"))).collect::<Vec<_>>());
    assert_eq!(sets.n_any(), 0);
    assert!(woken(&sets, &object_of(0)).is_empty(), "the oldest of them made room");
    assert_eq!(woken(&sets, &object_of(n_keys - 1)).len(), 1);
    // Keys that found something stay. Others are woken by any change.
    let mut n_found = 0;
    while sets.n_any() < 10 {
        run(&sets, &format!("found-{n_found}"), &[get(&format!("of-{n_found}"))]);
        n_found += 1;
    }
    assert!(account.view().read_sets <= 16 << 20);
    assert_eq!(woken(&sets, &added(&object("n/of-0", ""))).len(), 11);
    drop(sets);
    assert_eq!(account.view().read_sets, 0);
}

#[test]
fn promise_4_no_key_is_lost_when_the_account_of_read_sets_is_full() {
    let account = HostBytes::new(64 << 10);
    let sets = sets().charged(account.charge(Use::ReadSets, 0).ok());
    let name = |n: usize| format!("k-{n}");
    let mut n_keys = 0;
    let error = loop {
        let run = sets.begin(key(&name(n_keys)), 1);
        let reads = (0..3).try_for_each(|m| run.reads("pods", get(&format!("{n_keys}-{m}"))));
        run.found();
        if let Err(error) = reads {
            break error;
        }
        run.succeeded();
        n_keys += 1;
        for n in 0..n_keys {
            let woken = woken(&sets, &added(&object(&format!("n/{n}-2"), "")));
            assert!(woken.contains(&name(n)), "{n} of {n_keys}: {woken:?}");
        }
    };
    assert!(matches!(error, Error::LimitExceeded(_)), "{error:?}");
    assert!(n_keys > 100, "a key takes little room when any change wakes it: {n_keys}");
    assert_eq!(sets.n_any(), n_keys as u64);
    assert!(account.view().read_sets <= 64 << 10);
    // There is room again when other keys read nothing.
    (0..n_keys).for_each(|n| run(&sets, &name(n), &[]));
    let state = sets.state.lock();
    assert!(state.keys.is_empty() && state.with_reads.is_empty(), "{}", state.keys.len());
    assert_eq!(state.n_bytes, 0);
}

#[test]
fn another_generation_keeps_the_reads_of_listers_that_it_inherits() {
    let sets = sets();
    run(&sets, "k", &[get("a")]);
    let due = || sets.take_due(usize::MAX).0.len();
    sets.serve(2, vec![lister()], |_| true);
    assert_eq!(due(), 0);
    assert_eq!(woken(&sets, &added(&object("n/a", ""))), ["k"]);
    // The lister has a new listener: changes may have been missed.
    sets.serve(3, vec![lister()], |_| false);
    assert_eq!(due(), 1);
    assert!(woken(&sets, &added(&object("n/a", ""))).is_empty());
    // The same with another index, and without the lister.
    run(&sets, "k", &[get("a")]);
    sets.serve(4, vec![WakingLister { indices: Vec::new(), ..lister() }], |_| true);
    assert_eq!(due(), 1);
    run(&sets, "k", &[get("a")]);
    sets.serve(5, Vec::new(), |_| true);
    assert_eq!(due(), 1);
    let state = sets.state.lock();
    assert!(state.keys.is_empty() && state.n_bytes == 0);
}

#[test]
fn a_run_of_a_generation_before_wakes_its_key_if_no_lister_follows_what_it_reads() {
    let without_indices = || WakingLister { indices: Vec::new(), ..lister() };
    for (listers, keeps, woken_at_end) in [
        (vec![lister()], true, 0),
        (Vec::new(), true, 1),
        (vec![without_indices()], true, 1),
        // It has a new listener.
        (vec![lister()], false, 1),
    ] {
        let sets = sets();
        let (run, failing) = (sets.begin(key("k"), 1), sets.begin(key("failing"), 1));
        sets.serve(2, listers, |_| keeps);
        for run in [&run, &failing] {
            run.reads("pods", get("a")).unwrap();
        }
        drop(failing);
        assert_eq!(sets.take_due(usize::MAX).0.len(), 0);
        run.succeeded();
        assert_eq!(sets.take_due(usize::MAX).0.len(), woken_at_end);
        // A run of the version that serves needs no other one.
        let run = sets.begin(key("k"), 2);
        run.reads("pods", get("a")).unwrap();
        run.succeeded();
        assert_eq!(sets.take_due(usize::MAX).0.len(), 0);
    }
}
