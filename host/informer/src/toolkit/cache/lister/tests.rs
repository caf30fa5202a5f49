//! The clauses LS-… and the upstream cases 9, A7, A9 and A10.1.

use serde_json::json;

use super::*;
use crate::indexer::{IndexerWriter, NAMESPACE_INDEX};
use crate::names::TypeMeta;
use crate::testing::{Draft, FakeListWatch};

fn pods() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "pods")
}

fn lister(drafts: impl IntoIterator<Item = Draft>) -> Lister {
    let fake = FakeListWatch::pods();
    let mut writer = IndexerWriter::new();
    for draft in drafts {
        writer.put(fake.put(draft));
    }
    Lister::new(writer.indexer().clone(), pods())
}

fn keys(objects: &[Object]) -> Vec<String> {
    objects.iter().map(|object| object.key().to_string()).collect()
}

fn some() -> Lister {
    lister(["a/x", "b/x", "b/y", "cluster-scoped"].map(Draft::new))
}

/// The counts at 100,000 and at 1,000,000 objects, as small as objects can be. The selector that selects
/// nothing looks at none of them.
// Conformance: 9.1
#[test]
fn list_returns_all_matching_objects() {
    let fill = |n_objects: usize, every: usize| {
        let mut writer = IndexerWriter::new();
        for i in 0..n_objects {
            let labels = if i % every == 0 { r#","labels":{"match":"yes"}"# } else { "" };
            let text = format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{i}"{labels}}}}}"#);
            writer.put(Object::parse(text.as_bytes(), None).unwrap());
        }
        Lister::new(writer.indexer().clone(), pods())
    };
    let matching = "match=yes".parse().unwrap();
    assert_eq!(fill(100_000, 10).list(None, &matching).len(), 10_000);
    let lister = fill(1_000_000, 10);
    assert_eq!(lister.list(None, &LabelSelector::everything()).len(), 1_000_000);
    assert_eq!(lister.list(None, &LabelSelector::nothing()).len(), 0);
    assert_eq!(lister.list(None, &"match=no".parse().unwrap()).len(), 0);
}

// Conformance: A7.4, A9.4
#[test]
fn lister_list_method() {
    assert_eq!(
        keys(&some().list(None, &LabelSelector::everything())),
        ["cluster-scoped", "a/x", "b/x", "b/y"]
    );
    assert_eq!(keys(&some().namespace("").list(&LabelSelector::everything())).len(), 4, "LS-02");
    assert_eq!(some().list(None, &LabelSelector::nothing()), []);
}

/// There is always a namespace index, since objects are sorted by namespace: the same answer as a scan gives
/// costs no scan.
// Conformance: A7.2, A9.2
#[test]
fn namespace_list_method() {
    let lister = some();
    let everything = lister.list(None, &LabelSelector::everything());
    for namespace in ["a", "b", "c"] {
        let mut scanned = everything.clone();
        scanned.retain(|object| object.key().namespace() == namespace);
        assert_eq!(lister.namespace(namespace).list(&LabelSelector::everything()), scanned);
        assert_eq!(lister.indexer().by_index(NAMESPACE_INDEX, namespace).unwrap(), scanned);
    }
    assert!(!lister.indexer().remove_index(NAMESPACE_INDEX), "the index cannot be removed");
}

// Conformance: A7.1, A9.1
#[test]
fn namespace_get_method() {
    let lister = some().namespace("b");
    assert_eq!(lister.get("y").unwrap().key(), &ObjectKey::new("b", "y"));
    let error = some().namespace("a").get("y").unwrap_err();
    insta::assert_snapshot!(error, @r#"pods "y" not found"#);
}

// Conformance: A7.3, A9.3
#[test]
fn lister_get_method() {
    assert!(some().get(&ObjectKey::new("", "cluster-scoped")).is_ok());
    assert!(some().get(&ObjectKey::new("", "x")).is_err(), "in a namespace, not found by its bare name");
}

// Conformance: G.35
#[test]
fn generic_and_typed_listers_differ_as_in_client_go_ls_02_ls_04_ls_05() {
    let generic = some();
    let typed = Lister::typed(generic.indexer().clone(), pods(), "Pod");
    let nowhere = ObjectKey::new("a", "nowhere");
    let not_found = generic.get(&nowhere).unwrap_err();
    insta::assert_snapshot!(not_found, @r#"pods "nowhere" not found"#);
    let status = not_found.status();
    assert_eq!(
        (status.code, &*status.reason, &*status.message),
        (404, "NotFound", r#"pods "nowhere" not found"#)
    );
    insta::assert_snapshot!(typed.get(&nowhere).unwrap_err(), @r#"pod "nowhere" not found"#);
    let resource = GroupVersionResource::new("apps", "v1", "daemonsets");
    let typed_sets = Lister::typed(generic.indexer().clone(), resource, "DaemonSet");
    insta::assert_snapshot!(typed_sets.get(&nowhere).unwrap_err(), @r#"daemonset.apps "nowhere" not found"#);

    assert!(typed.namespace("").get("cluster-scoped").is_ok());
    assert!(generic.namespace("").get("cluster-scoped").is_err());
    let everything = LabelSelector::everything();
    assert_eq!(typed.namespace("").list(&everything), generic.namespace("").list(&everything));
}

#[test]
fn listed_objects_are_shared_with_the_cache_ls_06() {
    let lister = some();
    let key = ObjectKey::new("a", "x");
    assert!(lister.get(&key).unwrap().is_same(&lister.namespace("a").list(&LabelSelector::everything())[0]));
}

fn daemon_set(key: &str, selector: serde_json::Value) -> Draft {
    Draft::new(key).field("spec", json!({ "selector": selector }))
}

/// client-go's `GetPodDaemonSets`, for all that has a selector.
// Conformance: A10.1
#[test]
fn daemon_set_lister() {
    let fake = FakeListWatch::new(TypeMeta::new("apps/v1", "DaemonSet"));
    let resource = GroupVersionResource::new("apps", "v1", "daemonsets");
    let lister = |drafts: Vec<Draft>| {
        let mut writer = IndexerWriter::new();
        drafts.into_iter().for_each(|draft| drop(writer.put(fake.put(draft))));
        Lister::new(writer.indexer().clone(), resource.clone())
    };
    let everything = LabelSelector::everything();
    let basic = |name: &str| daemon_set(name, json!({"matchLabels": {"name": "x"}}));
    assert_eq!(keys(&lister(vec![basic("ns/basic")]).list(None, &everything)), ["ns/basic"]);
    let three = lister(["ns/basic", "ns/complex", "ns/complex2"].map(basic).into());
    assert_eq!(three.list(None, &everything).len(), 3);

    let pods = FakeListWatch::pods();
    let unlabelled = pods.put("ns/pod");
    let error = lister(vec![basic("ns/basic")]).selecting(&unlabelled).unwrap_err();
    insta::assert_snapshot!(error, @"nothing in daemonsets.apps selects ns/pod, because it has no labels");

    let pod = pods.put(Draft::new("ns/pod").label("foo", "bar"));
    let without_selector = vec![
        Draft::new("ns/none"),
        daemon_set("ns/empty", json!({})),
        daemon_set("ns/bad", json!({"matchExpressions": [{"key": "foo", "operator": "Like"}]})),
    ];
    let error = lister(without_selector).selecting(&pod).unwrap_err();
    insta::assert_snapshot!(error, @r#"nothing in daemonsets.apps of namespace "ns" selects ns/pod"#);

    let selector = json!({"matchLabels": {"foo": "bar"}});
    let in_two = lister(vec![daemon_set("ns/bar", selector.clone()), daemon_set("other/foo", selector)]);
    assert_eq!(keys(&in_two.selecting(&pod).unwrap()), ["ns/bar"]);
}
