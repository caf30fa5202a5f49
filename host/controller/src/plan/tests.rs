use oarlock_informer::object::Fields;

use super::*;

fn plan(field: &str) -> Plan {
    let target = contract::GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "pods".to_owned(),
    };
    let subscription = contract::Subscription {
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
    };
    Plan::of(Description {
        name: "p".to_owned(),
        version: "1".to_owned(),
        subscriptions: vec![subscription],
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
        subscriptions: vec![plan("/spec/nodeName").subscriptions[0].declaration.clone()],
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

/// Allocations of jemalloc have 640, 768 or 896 bytes, and each subscription has one of these.
#[test]
fn a_subscription_fits_an_allocation_of_640_bytes() {
    let bytes = size_of::<SubscriptionPlan>() + 2 * size_of::<usize>();
    assert!(bytes <= 640, "{bytes}");
}
