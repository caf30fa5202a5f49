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
    for import in [
        "documents",
        "field",
        "get",
        "list",
        "long-argument",
        "config",
        "all-config",
        "log",
        "pointers",
        "metric",
        "key",
    ] {
        let limits = Limits { crossing: limit, ..Limits::default() };
        let host = Host::with("crosses", limits, json!({"text": "x".repeat(500)})).await;
        let Err(Failure::Terminal(text)) = cross(&host, import, 200_000).await else {
            panic!("{import}: not limited");
        };
        assert!(text.contains("more than limits.crossing (1048576)"), "{import}: {text}");
        let view = host.usage.view();
        let crossed = view.bytes_to_guest + view.bytes_from_guest;
        // The failure that reports it counts too.
        assert!(crossed <= limit + 1_000, "{import}: {view:?}");
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
    assert_eq!(view.calls, 3, "the start of the instance is no call");
    // The pointer /metadata/name, and the value "pod" in quotes.
    assert_eq!(view.bytes_from_guest, 3 * 1_000 * 14);
    let arguments =
        |name: &str| ("configmaps".len() + name.len() + "uid-of-default-pod".len() + "1".len()) as u64;
    assert_eq!(view.bytes_to_guest, 3 * (1_000 * 5 + arguments("1000field")));
    // Imports without an error, and config.get: the configuration is {}.
    let before = view;
    cross(&host, "all-config", 10).await.unwrap();
    cross(&host, "log", 10).await.unwrap();
    let view = host.usage.view();
    let to_guest = arguments("10all-config") + 10 * 4 + arguments("10log") + 10 * 2;
    assert_eq!(view.bytes_to_guest - before.bytes_to_guest, to_guest);
    assert_eq!(view.bytes_from_guest - before.bytes_from_guest, 10 * 1_000);
}

#[tokio::test]
async fn the_time_that_the_host_spends_in_imports_for_a_plugin_is_counted() {
    let host = Host::with("crosses", Limits::default(), json!({})).await;
    cross(&host, "field", 100).await.unwrap();
    assert_eq!(host.usage.view().host_cpu_ns, 0, "an answer that the host has at once");
    cross(&host, "get", 100).await.unwrap();
    let view = host.usage.view();
    assert!(view.host_cpu_ns > 0 && view.host_cpu_ns < view.call_wall_ns, "{view:?}");
    assert_eq!(view.cache_reads, 100);
}
