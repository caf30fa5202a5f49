use oarlock_informer::object::Fields;

use super::*;

fn subscription(field: &str) -> contract::Subscription {
    let target = contract::GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "pods".to_owned(),
    };
    contract::Subscription {
        name: "pods".to_owned(),
        target,
        namespaces: Namespaces::All,
        label_selector: "app=web".to_owned(),
        conditions: Vec::new(),
        fields: vec![field.to_owned()],
        content: Content::Full,
        resync_seconds: 0,
        enqueue: Enqueue::Nothing,
        ignore_own_writes: false,
    }
}

fn plan(field: &str) -> Plan {
    Plan::of(Description {
        name: "p".to_owned(),
        version: "1".to_owned(),
        subscriptions: vec![subscription(field)],
        reads: Vec::new(),
        indices: Vec::new(),
        requests: Vec::new(),
        schedules: Vec::new(),
        stateless: false,
    })
    .unwrap()
}

#[test]
fn a_subscription_that_names_a_field_excluded_from_the_cache_is_refused() {
    let mut prunings = Prunings::default();
    let dropped = ["/status".parse().unwrap()];
    prunings.entry("pods".parse().unwrap()).fields = Fields::without(&dropped).unwrap();
    plan("/spec/nodeName").check_against(&prunings).unwrap();
    plan("/status/phase").check_against(&Prunings::default()).unwrap();
    let error = plan("/status/phase").check_against(&prunings).unwrap_err();
    insta::assert_snapshot!(error, @r#"subscription "pods": a declared field names /status/phase, which this host does not cache of pods: see its --cache-drop and --cache-keep"#);
}

#[test]
fn a_lister_that_wakes_has_a_subscription_that_the_plugin_did_not_declare() {
    let read = |name: &str, wakes| contract::Read {
        name: name.to_owned(),
        target: contract::GroupVersionResource {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "pods".to_owned(),
        },
        namespaces: Namespaces::One("n".to_owned()),
        content: Content::Metadata,
        wakes,
    };
    let index = |name: &str, lister: &str| contract::Index {
        name: name.to_owned(),
        lister: lister.to_owned(),
        source: contract::IndexSource::OwnerUid,
    };
    let plan = Plan::of(Description {
        name: "p".to_owned(),
        version: "1".to_owned(),
        subscriptions: vec![subscription("/spec/nodeName")],
        reads: vec![read("quiet", false), read("loud", true)],
        indices: vec![index("a", "quiet"), index("b", "loud")],
        requests: Vec::new(),
        schedules: Vec::new(),
        stateless: false,
    })
    .unwrap();
    let [declared, waking] = &plan.subscriptions[..] else { panic!("{:?}", plan.subscriptions) };
    assert!(declared.wakes.is_none());
    assert_eq!((&*waking.name, &waking.namespaces), ("wakes:loud", &Namespaces::One("n".to_owned())));
    let lister = waking.wakes.as_ref().unwrap();
    assert_eq!((&*lister.name, lister.indices.len(), &*lister.indices[0].0), ("loud", 1, "b"));
    assert!(waking.can_inherit_listener(waking) && !waking.can_inherit_listener(declared));
}

/// Allocations of jemalloc have 320, 384 or 448 bytes, and each subscription has one of these.
#[test]
fn a_subscription_fits_an_allocation_of_384_bytes() {
    let bytes = size_of::<SubscriptionPlan>() + 2 * size_of::<usize>();
    assert!(bytes <= 384, "{bytes}");
}

#[test]
fn a_listener_is_inherited_only_by_a_subscription_that_asks_for_the_same() {
    let of = |change: &dyn Fn(&mut contract::Subscription)| {
        let mut changed = subscription("/spec/nodeName");
        change(&mut changed);
        SubscriptionPlan::of(changed).unwrap()
    };
    let before = of(&|_| ());
    let inherits = |change: &dyn Fn(&mut contract::Subscription)| of(change).can_inherit_listener(&before);
    assert!(inherits(&|_| ()));
    assert!(inherits(&|it| it.ignore_own_writes = true));
    assert!(inherits(&|it| it.label_selector = " app = web ".to_owned()), "the same selector");
    let exists =
        || contract::FieldCondition { pointer: "/spec/nodeName".to_owned(), test: contract::Test::Exists };
    let rule = |at: &str| {
        let scope = contract::Scope::SameNamespace;
        Enqueue::Pointer(contract::NamedAt { at: at.to_owned(), scope })
    };
    let others: [&dyn Fn(&mut contract::Subscription); 10] = [
        &|it| it.name = "other".to_owned(),
        &|it| it.target.version = "v2".to_owned(),
        &|it| it.namespaces = Namespaces::One("n".to_owned()),
        &|it| it.label_selector = "app=api".to_owned(),
        &|it| it.conditions = vec![exists()],
        &|it| it.fields = vec!["/spec/hostname".to_owned()],
        &|it| it.fields = Vec::new(),
        &|it| {
            it.content = Content::Metadata;
            it.fields = Vec::new();
        },
        &|it| it.resync_seconds = 60,
        &|it| it.enqueue = rule("/spec/nodeName"),
    ];
    for (nth, other) in others.iter().enumerate() {
        assert!(!inherits(other), "change {nth}");
    }
    let ruled = of(&|it| it.enqueue = rule("/spec/nodeName"));
    assert!(ruled.has_rule_of(&of(&|it| it.enqueue = rule("/spec/nodeName"))));
    assert!(!ruled.has_rule_of(&of(&|it| it.enqueue = rule("/spec/hostname"))));
    assert!(!ruled.has_rule_of(&before));
}
