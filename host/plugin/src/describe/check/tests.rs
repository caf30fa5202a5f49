use super::*;
use crate::contract::{Content, NamedAt, ObjectKey, Request, Scope};

#[test]
fn a_version_is_one_that_an_api_server_accepts() {
    let checked = |version: &str| {
        let (group, plural) = ("example.com".into(), "widgets".into());
        check_target("it", &GroupVersionResource { group, version: version.into(), plural })
    };
    for legal in ["v1", "v1alpha1", "v2beta3", "stable", "v2023-01-01"] {
        assert_eq!(checked(legal), Ok(()), "{legal}");
    }
    for wrong in ["", "2023-01-01", "V1", "v1.1", "v1-", &"v".repeat(64)] {
        checked(wrong).unwrap_err();
    }
    insta::assert_snapshot!(checked("2023-01-01").unwrap_err(), @r#"it.target.version: "2023-01-01" is not an API version: letters, digits and -, a letter first, such as v1"#);
}

/// The defects that depend on the exports of a component. The fixture `misdescribes` covers the others.
#[test]
fn enqueue_requires_the_exported_interface() {
    let subscription = |enqueue| Subscription {
        name: "pods".into(),
        target: GroupVersionResource { group: String::new(), version: "v1".into(), plural: "pods".into() },
        namespaces: Namespaces::All,
        label_selector: String::new(),
        conditions: vec![],
        fields: vec![],
        content: Content::Full,
        resync_seconds: 0,
        enqueue,
        ignore_own_writes: false,
    };
    let check = |handler, reconciler, enqueue| {
        let checked = Checker { handler, reconciler }.check_subscription(&subscription(enqueue));
        checked.map_err(|invalid| invalid.to_string())
    };
    let at =
        |at: &str, rule: fn(NamedAt) -> Enqueue| rule(NamedAt { at: at.into(), scope: Scope::SameNamespace });
    let owner = |group: &str, kind: &str| {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        Enqueue::ControllerOwner(OwnerKind { group, kind, scope: Scope::Cluster })
    };
    let all = |name: &str| {
        let object = ObjectKey { namespace: String::new(), name: name.into() };
        Enqueue::Key(WorkKey { kind: "all".into(), object })
    };
    assert_eq!(check(true, false, Enqueue::Nothing), Ok(()));
    assert_eq!(check(false, true, owner("apps", "Deployment")), Ok(()));
    assert_eq!(check(false, true, all("")), Ok(()));
    insta::assert_snapshot!(check(false, true, all(&"n".repeat(254))).unwrap_err(), @"subscriptions[pods].enqueue.object.name: it has 254 bytes, more than 253");
    insta::assert_snapshot!(check(false, true, owner("Apps", "Deployment")).unwrap_err(), @r#"subscriptions[pods].enqueue.group: "Apps" is not an API group"#);
    assert_eq!(check(false, true, Enqueue::Itself), Ok(()));
    assert_eq!(check(false, true, at("/spec/nodeName", Enqueue::Pointer)), Ok(()));
    insta::assert_snapshot!(check(false, true, Enqueue::Nothing).unwrap_err(), @"subscriptions[pods].enqueue: `nothing` calls the handler, which the component does not export");
    insta::assert_snapshot!(check(true, false, Enqueue::Itself).unwrap_err(), @"subscriptions[pods].enqueue: the component does not export `reconciler`, so it can only be `nothing`");
    insta::assert_snapshot!(check(true, true, at("spec", Enqueue::Pointer)).unwrap_err(), @r#"subscriptions[pods].enqueue: the JSON pointer "spec" does not begin with /, such as /metadata/name"#);
    insta::assert_snapshot!(check(true, true, at("", Enqueue::Pointer)).unwrap_err(), @"subscriptions[pods].enqueue: the empty JSON pointer means the whole object: name a field of it, such as /spec");
    insta::assert_snapshot!(check(true, true, at("", Enqueue::Label)).unwrap_err(), @"subscriptions[pods].enqueue: the label's name is empty");
    insta::assert_snapshot!(check(true, true, owner("apps", "a b")).unwrap_err(), @r#"subscriptions[pods].enqueue: "a b" is not a name (at most 63 bytes, no white space)"#);
}

#[test]
fn names_have_at_most_63_bytes() {
    let checked = |n: usize| check_name("name", &"n".repeat(n)).map_err(|invalid| invalid.to_string());
    assert_eq!(checked(63), Ok(()));
    insta::assert_snapshot!(checked(64).unwrap_err(), @r#"name: "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" is not a name (at most 63 bytes, no white space)"#);
}

#[test]
fn the_triggers_of_schedules_have_a_maximum() {
    let check = |trigger| {
        let schedule = Schedule { name: "nightly".into(), trigger, at_start: false, key: None };
        let checked = Checker { handler: false, reconciler: true }.check_schedule(&schedule);
        checked.map_err(|invalid| invalid.to_string())
    };
    let at = |cron: usize, time_zone: usize| {
        check(Trigger::At(WallTimes { cron: "*".repeat(cron), time_zone: "z".repeat(time_zone) }))
    };
    assert_eq!(check(Trigger::EverySeconds(365 * 24 * 60 * 60)), Ok(()));
    insta::assert_snapshot!(check(Trigger::EverySeconds(31_536_001)).unwrap_err(), @"schedules[nightly].trigger: the interval is 31536001 s, not 1 to 31536000");
    insta::assert_snapshot!(check(Trigger::EverySeconds(0)).unwrap_err(), @"schedules[nightly].trigger: the interval is 0 s, not 1 to 31536000");
    assert_eq!(at(256, 256), Ok(()));
    insta::assert_snapshot!(at(257, 0).unwrap_err(), @"schedules[nightly].trigger.cron: it has 257 bytes, more than 256");
    insta::assert_snapshot!(at(1, 257).unwrap_err(), @"schedules[nightly].trigger.time-zone: it has 257 bytes, more than 256");
}

#[test]
fn requests_and_their_verbs_are_counted() {
    let check = |n_requests: usize, n_verbs: usize| {
        let request = Request {
            target: GroupVersionResource {
                group: String::new(),
                version: "v1".into(),
                plural: "pods".into(),
            },
            subresource: String::new(),
            namespaces: Namespaces::All,
            verbs: vec!["get".into(); n_verbs],
        };
        let description = Description {
            name: "it".into(),
            version: "1".into(),
            subscriptions: vec![],
            reads: vec![],
            indices: vec![],
            requests: vec![request; n_requests],
            schedules: vec![],
            stateless: true,
        };
        let checked = Checker { handler: true, reconciler: false }.check(&description);
        checked.map_err(|invalid| invalid.to_string())
    };
    assert_eq!(check(256, 16), Ok(()));
    insta::assert_snapshot!(check(257, 1).unwrap_err(), @"requests: there are 257, more than 256");
    insta::assert_snapshot!(check(1, 17).unwrap_err(), @"requests[0].verbs: there are 17, more than 16");
}
