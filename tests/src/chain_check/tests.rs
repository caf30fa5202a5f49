use std::time::Instant;

use serde_json::json;

use super::*;

const MATCHES: fn(&Value) -> bool = |object| object["metadata"]["labels"]["app"] != "other";

fn subscription() -> Subscription<'static> {
    Subscription { plugin: "p", name: "s", matches: &MATCHES, stateless: false }
}

/// A resourceVersion that ends in `x` does not match the subscription.
fn history(versions: &[(&str, bool)]) -> History {
    let version = |&(rv, deleted): &(&str, bool)| {
        let app = if rv.ends_with('x') { "other" } else { "mine" };
        let object = json!({"metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": rv,
            "labels": {"app": app}}});
        Version { deleted, seen_at: Instant::now(), object: object.into() }
    };
    BTreeMap::from([("n/a".to_owned(), versions.iter().map(version).collect())])
}

fn received(generation: u64, kind: Kind, rv: &str, old: Option<&str>) -> ReceivedNotification {
    ReceivedNotification {
        plugin: "p".into(),
        generation,
        subscription: "s".into(),
        kind,
        key: "n/a".into(),
        uid: "u".into(),
        resource_version: rv.into(),
        old_resource_version: old.map(str::to_owned),
    }
}

fn kinds(history: &History, received: &[ReceivedNotification]) -> Vec<ViolationKind> {
    check(&subscription(), history, received).into_iter().map(|violation| violation.kind).collect()
}

fn text(version: &str) -> String {
    version.to_owned()
}

const ADD: Kind = Kind::Add { initial: false };
const INITIAL: Kind = Kind::Add { initial: true };

#[test]
fn a_chain_that_skips_versions_and_reaches_the_end_is_accepted() {
    let history = history(&[("1", false), ("2", false), ("3", false), ("4", true)]);
    let received = [
        received(1, ADD, "1", None),
        received(1, Kind::Update, "3", Some("1")),
        received(1, Kind::Delete, "4", None),
    ];
    assert_eq!(kinds(&history, &received), []);
}

#[test]
fn a_lost_notification_is_found() {
    let history = history(&[("1", false), ("2", false), ("3", false)]);
    let end = |known: Option<&str>| ViolationKind::WrongEnd {
        expected: Some(text("3")),
        known: known.map(str::to_owned),
    };
    let broken = [received(1, ADD, "1", None), received(1, Kind::Update, "3", Some("2"))];
    let chain =
        ViolationKind::BrokenChain { received: text("3"), old: Some(text("2")), known: Some(text("1")) };
    assert_eq!(kinds(&history, &broken), [chain, end(Some("1"))]);
    let short = [received(1, ADD, "1", None), received(1, Kind::Update, "2", Some("1"))];
    assert_eq!(kinds(&history, &short), [end(Some("2"))]);
    assert_eq!(kinds(&history, &[]), [end(None)]);
    let violation = &check(&subscription(), &history, &short)[0];
    assert!(violation.may_resolve());
    assert_eq!(violation.to_string(), "p (s) n/a: the API server has version 3, the plugin knows version 2");
}

#[test]
fn reordered_repeated_and_invented_notifications_are_found() {
    let history = history(&[("1", false), ("2", false)]);
    let first = |received: &[ReceivedNotification]| kinds(&history, received).remove(0);
    let back =
        [received(1, ADD, "2", None), received(1, Kind::Delete, "2", None), received(1, ADD, "1", None)];
    assert_eq!(first(&back), ViolationKind::OutOfOrder { received: text("1") });
    let second_add = [received(1, ADD, "1", None), received(1, ADD, "2", None)];
    assert_eq!(first(&second_add), ViolationKind::AddOfKnownObject { received: text("2") });
    let second_delete = [
        received(1, ADD, "1", None),
        received(1, Kind::Delete, "1", None),
        received(1, Kind::Delete, "1", None),
    ];
    assert_eq!(first(&second_delete), ViolationKind::DeleteOfUnknownObject { received: text("1") });
    let invented = [received(1, ADD, "9", None)];
    assert_eq!(first(&invented), ViolationKind::UnknownVersion { received: text("9") });
    let elsewhere = [ReceivedNotification { key: "n/b".into(), ..received(1, ADD, "1", None) }];
    assert!(kinds(&history, &elsewhere).contains(&ViolationKind::UnknownObject));
}

#[test]
fn an_object_that_no_longer_matches_must_arrive_as_deleted() {
    let history = history(&[("1", false), ("2x", false)]);
    let deleted = [received(1, ADD, "1", None), received(1, Kind::Delete, "1", None)];
    assert_eq!(kinds(&history, &deleted), []);
    let updated = [received(1, ADD, "1", None), received(1, Kind::Update, "2x", Some("1"))];
    assert_eq!(kinds(&history, &updated)[0], ViolationKind::DoesNotMatch { received: text("2x") });
}

#[test]
fn a_new_generation_must_receive_every_object_again_unless_it_is_stateless() {
    let history = history(&[("1", false), ("2", false)]);
    let replayed = [
        received(1, ADD, "1", None),
        received(2, INITIAL, "1", None),
        received(2, Kind::Update, "2", Some("1")),
    ];
    assert_eq!(kinds(&history, &replayed), []);
    let taken_over = [received(1, ADD, "1", None), received(2, Kind::Update, "2", Some("1"))];
    assert_ne!(kinds(&history, &taken_over), []);
    let stateless = Subscription { stateless: true, ..subscription() };
    assert_eq!(check(&stateless, &history, &taken_over), []);
}

#[test]
fn a_check_goes_on_where_it_ended() {
    let all = history(&[("1", false), ("2", false), ("3", true)]);
    let to_two = history(&[("1", false), ("2", false)]);
    let go_on = |ends: &Ends, history: &History, received: &[ReceivedNotification]| {
        let kinds = |violations: Vec<Violation>| violations.into_iter().map(|it| it.kind).collect::<Vec<_>>();
        check_from(ends, &subscription(), history, received).map_err(kinds)
    };
    let first = [received(1, ADD, "1", None), received(1, Kind::Update, "2", Some("1"))];
    let ends = go_on(&Ends::default(), &to_two, &first).expect("the first part is whole");

    // Nothing more was received, and nothing more happened.
    assert!(go_on(&ends, &to_two, &[]).is_ok());
    let missing = ViolationKind::WrongEnd { expected: None, known: Some(text("2")) };
    assert_eq!(go_on(&ends, &all, &[]).err(), Some(vec![missing]));
    let gap = [received(1, Kind::Update, "2", Some("1"))];
    assert!(matches!(
        go_on(&ends, &to_two, &gap).err().as_deref(),
        Some([ViolationKind::BrokenChain { .. }])
    ));
    let again = [received(1, ADD, "2", None)];
    let known = ViolationKind::AddOfKnownObject { received: text("2") };
    assert_eq!(go_on(&ends, &to_two, &again).err(), Some(vec![known]));

    let deleted = go_on(&ends, &all, &[received(1, Kind::Delete, "3", None)]).expect("the rest is whole");
    // Left over of the generation before; nothing else may come of an object that is gone.
    assert!(go_on(&deleted, &all, &[received(2, Kind::Delete, "3", None)]).is_ok());
    assert!(go_on(&deleted, &all, &[received(1, Kind::Delete, "3", None)]).is_err());
}

#[test]
fn a_new_generation_must_receive_every_object_again_also_where_a_check_goes_on() {
    let mut history = history(&[("1", false)]);
    let of_b = Version {
        deleted: false,
        seen_at: Instant::now(),
        object: json!({"metadata": {"uid": "b", "resourceVersion": "2"}}).into(),
    };
    history.insert("n/b".to_owned(), vec![of_b]);
    let b = |generation: u64| ReceivedNotification {
        key: "n/b".into(),
        uid: "b".into(),
        ..received(generation, INITIAL, "2", None)
    };
    let first = [received(1, ADD, "1", None), b(1)];
    let ends = check_from(&Ends::default(), &subscription(), &history, &first).expect("it is whole");
    let half = check_from(&ends, &subscription(), &history, &[b(2)]).expect_err("n/a is missing");
    assert_eq!(half.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["n/a"]);
    let whole = [b(2), received(2, INITIAL, "1", None)];
    assert!(check_from(&ends, &subscription(), &history, &whole).is_ok());
}

#[test]
fn versions_before_the_last_creation_are_not_needed() {
    let version = |uid: &str, deleted: bool| Version {
        deleted,
        seen_at: Instant::now(),
        object: json!({"metadata": {"uid": uid}}).into(),
    };
    let versions = [version("a", false), version("a", true), version("b", false), version("b", true)];
    assert_eq!(since_creation(&versions), 2);
    assert_eq!(since_creation(&versions[..2]), 0);
    assert_eq!(since_creation(&[]), 0);
}
