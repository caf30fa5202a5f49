//! What crosses the border in one call is counted and limited.

use oarlock_plugin::{
    Limits,
    contract::{Added, Failure},
};
use serde_json::json;

use super::{
    fake::{FakeObject, config_map, object_ref},
    support::Host,
};

/// Calls a plugin that calls an import so many times. Returns its answer.
async fn cross(host: &Host, import: &str, times: u32) -> Result<(), Failure> {
    host.kube.put(&config_map("default", "a", 1));
    let object = config_map("default", "pod", 1);
    let mut reference = object_ref(&object);
    reference.name = import.into();
    reference.namespace = times.to_string();
    let event = Added {
        subscription: "configmaps".into(),
        object: reference,
        is_in_initial_list: false,
        fields: vec![],
    };
    host.instance()
        .await
        .unwrap()
        .on_add(&event.borrowed().argument(), FakeObject::new(&object))
        .await
        .unwrap()
}

#[tokio::test]
async fn promise_4_a_plugin_cannot_make_the_host_copy_without_end() {
    let limit = 1 << 20;
    for import in ["documents", "field", "get", "list", "long-argument"] {
        let limits = Limits { crossing: limit, ..Limits::default() };
        let host = Host::with("crosses", limits, json!({})).await;
        let Err(Failure::Terminal(text)) = cross(&host, import, 200_000).await else {
            panic!("{import}: not limited");
        };
        assert!(text.contains("more than limits.crossing (1048576)"), "{import}: {text}");
        let view = host.usage.view();
        let crossed = view.bytes_to_guest + view.bytes_from_guest;
        assert!(crossed <= limit, "{import}: {view:?}");
        let is_near = crossed > limit - (64 << 10);
        assert!(is_near || import == "long-argument", "{import}: {view:?}");
    }
}

#[tokio::test]
async fn the_limit_is_for_one_call_and_all_bytes_are_counted() {
    let limits = Limits { crossing: 64 << 10, ..Limits::default() };
    let host = Host::with("crosses", limits, json!({})).await;
    for _ in 0..3 {
        cross(&host, "field", 1_000).await.unwrap();
    }
    let view = host.usage.view();
    // The pointer /metadata/name, and the value "pod" in quotes.
    assert_eq!(view.bytes_from_guest, 3 * 1_000 * 14);
    let arguments = "configmaps".len() + "1000field".len() + "uid-of-default-pod".len() + "1".len();
    assert_eq!(view.bytes_to_guest, 3 * (1_000 * 5 + arguments as u64));
}
