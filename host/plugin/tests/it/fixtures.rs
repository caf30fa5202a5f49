//! Every guest in `tests/fixtures`, and the host's reaction to it.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use oarlock_plugin::{
    CallError, Limits,
    contract::{Description, Failure, ObjectKey, Outcome, WorkKey},
    describe::DescribeError,
};
use serde_json::json;

use super::support::{Add as _, Host, add, deadline};

/// Fails if a fixture has neither a test of its name in this file, nor cases.
#[test]
fn every_fixture_has_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let fixtures: BTreeSet<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").is_file() || path.join("requirements.txt").is_file())
        .filter(|path| !path.join("cases").is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(!fixtures.is_empty());
    let source = [include_str!("fixtures.rs"), include_str!("exceptions.rs")].concat();
    let untested: Vec<_> = fixtures
        .iter()
        .filter(|name| !source.contains(&format!("async fn {}(", name.replace('-', "_"))))
        .collect();
    assert!(untested.is_empty(), "{} has no test with the name {untested:?}", file!());
}

#[tokio::test]
async fn allocates() {
    let limit = 8 << 20;
    let host = Host::with("allocates", Limits { memory: limit, ..Limits::default() }, json!({})).await;
    for name in ["gulp", "without end"] {
        match host.add_once(name).await.unwrap_err() {
            CallError::MemoryLimit { wanted, limit: reported, backtrace, .. } => {
                assert_eq!(reported, limit);
                assert!(wanted > limit, "{wanted}");
                assert!(backtrace.contains("on-add") || backtrace.contains("on_add"), "{backtrace}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    // The guest gets memory within the limit, and keeps it.
    let mut instance = host.instance().await.unwrap();
    let before = instance.memory_bytes();
    instance.add("default", "sip").await.unwrap().unwrap();
    instance.add("default", "sip").await.unwrap().unwrap();
    let taken = instance.memory_bytes() - before;
    assert!((2 << 20..4 << 20).contains(&taken), "{taken}");
    // After a refusal the guest fails, and the instance cannot be called again.
    assert!(matches!(instance.add("default", "gulp").await, Err(CallError::MemoryLimit { .. })));
    assert_eq!(instance.add("default", "sip").await.unwrap_err(), CallError::Dead);
}

/// `crossing.rs` tests the limits that it exceeds.
#[tokio::test]
async fn crosses() {
    Host::new("crosses").await.add_once("nothing").await.unwrap().unwrap();
}

/// `host/controller/tests/it/hoarding.rs` tests the resources outside of this crate.
#[tokio::test]
async fn hoards() {
    let host = Host::new("hoards").await;
    host.add_once("clock").await.unwrap().unwrap();
    host.add_once("large-event").await.unwrap().unwrap();
    let lines = host.lines();
    assert!(
        lines[0].starts_with("clock: steps of ") && lines[0].ends_with("whole milliseconds: true"),
        "{lines:?}"
    );
    let step: f64 = lines[0].split(' ').nth(3).unwrap().parse().unwrap();
    assert!(step >= 1.0 && step.fract() == 0.0, "{step}");
    assert!(lines[1].contains("Invalid"), "{lines:?}");
}

/// `tests/it/hostile.rs` runs every mode beside good plugins; this test has one for each kind of export.
#[tokio::test]
async fn hostile() {
    let host = async |mode: &str| {
        // Only a loop is to be late, also on a slow machine.
        let limit =
            if mode.starts_with("spin-") { Duration::from_millis(30) } else { Duration::from_secs(600) };
        Host::with("hostile", deadline(limit), json!({ "mode": mode })).await
    };
    let key = WorkKey { kind: "k".into(), object: ObjectKey { namespace: String::new(), name: "n".into() } };
    let is_late = |error| assert!(matches!(error, CallError::DeadlineExceeded { .. }), "{error:?}");
    is_late(host("spin-add").await.add_once("any").await.unwrap_err());
    is_late(host("spin-reconcile").await.instance().await.unwrap().reconcile(&key).await.unwrap_err());
    assert_eq!(
        host("busy").await.instance().await.unwrap().reconcile(&key).await.unwrap(),
        Ok(Outcome::RequeueAfter(0))
    );
    match host("trap-add").await.add_once("any").await.unwrap_err() {
        CallError::Trap { .. } => {}
        other => panic!("{other:?}"),
    }
    match host("flood-series").await.add_once("any").await.unwrap().unwrap_err() {
        Failure::Terminal(text) => assert!(text.contains("LimitExceeded"), "{text}"),
        other => panic!("{other:?}"),
    }
    let error = host("10000-subscriptions").await.describe().await.unwrap_err().to_string();
    assert!(error.contains("subscriptions: there are 10000, more than 32"), "{error}");
    let error = host("long-selector").await.describe().await.unwrap_err().to_string();
    assert!(error.contains("label-selector"), "{error}");
}

/// The host accepts the largest description; `host/controller/tests/it/bad_plugins.rs` tests its effects.
#[tokio::test]
async fn declares_the_most() {
    for nested in [false, true] {
        let host = Host::with("declares-the-most", Limits::default(), json!({ "nested": nested })).await;
        let description = host.describe().await.unwrap();
        let Description { subscriptions, reads, indices, .. } = &description;
        assert_eq!((subscriptions.len(), reads.len(), indices.len()), (32, 256, 32));
        for subscription in subscriptions {
            assert_eq!((subscription.fields.len(), subscription.conditions.len()), (64, 16));
            assert!(subscription.label_selector.len() > 4_000);
        }
    }
}

#[tokio::test]
async fn a_component_larger_than_its_limits_does_not_start() {
    let cannot = async |limits| {
        Host::with("traps", limits, json!({})).await.instance().await.err().unwrap().to_string()
    };
    // The wanted amount depends on the compiler that built the guest.
    let is = |text: String, begin: &str, end: &str| {
        assert!(text.starts_with(begin) && text.ends_with(end), "{text}")
    };
    let limits = Limits { memory: 64 << 10, ..Limits::default() };
    is(cannot(limits).await, "the guest reached its memory limit: it wanted ", " bytes, the limit is 65536");
    let limits = Limits { core_instances: 1, ..Limits::default() };
    insta::assert_snapshot!(cannot(limits).await, @"the instance cannot be created: resource limit exceeded: instance count too high at 2");
    let limits = Limits { table_elements: 1, ..Limits::default() };
    is(cannot(limits).await, "the guest reached its table limit: it wanted ", " elements, the limit is 1");
}

#[tokio::test]
async fn floods_log() {
    let limits = Limits { log_lines_per_second: 10, ..Limits::default() };
    let host = Host::with("floods-log", limits, json!({})).await;
    host.add_once("any").await.unwrap().unwrap();
    let sink = Arc::clone(&host.lines);
    // The log reports the last count when it is dropped.
    drop(host);
    let lines = sink.0.lock();
    let (written, counts): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.message.starts_with('é'));
    assert!(written.len() >= 10, "the lines of one second are written, got {}", written.len());
    assert_eq!(written[0].message.len(), 8 << 10, "truncated between two characters");
    assert_eq!(written[0].pairs.len(), 32);
    assert_eq!(written[0].pairs[31], ("pair-31".to_owned(), "31".to_owned()));
    assert!(counts.iter().all(|line| line.message == "lines beyond the plugin's log rate were dropped"));
    let dropped: usize = counts.iter().map(|line| line.pairs[0].1.parse::<usize>().unwrap()).sum();
    assert_eq!(written.len() + dropped, 10_000, "every line is written or counted");
}

#[tokio::test]
async fn hands_over_too_much() {
    let host = Host::new("hands-over-too-much").await;
    for name in ["log", "list", "answer"] {
        match host.add_once(name).await.unwrap_err() {
            CallError::InvalidData { message, .. } => {
                assert_eq!(message, "more bytes in one call than limits.hostcall allows", "{name}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    match host.add_once("long-answer").await.unwrap().unwrap_err() {
        Failure::Retry(text) => assert_eq!(text, "ü".repeat(2 << 10)),
        Failure::RetryAfter(info) => panic!("{}", info.message),
        Failure::Terminal(text) => panic!("{text}"),
    }
}

#[tokio::test]
async fn loops() {
    let limit = Duration::from_millis(30);
    let host = Host::with("loops", deadline(limit), json!({})).await;
    match host.add_once("any").await.unwrap_err() {
        CallError::DeadlineExceeded { limit: reported, waiting_for, backtrace, .. } => {
            assert_eq!((reported, waiting_for), (limit, None));
            assert!(backtrace.contains("compute_for_ever"), "the backtrace has the function: {backtrace}");
        }
        other => panic!("{other:?}"),
    }
    let limits = Limits { start_deadline: limit, ..Limits::default() };
    let host = Host::with("loops", limits, json!({"inDescribe": true})).await;
    match host.describe().await.unwrap_err() {
        DescribeError::Call(CallError::DeadlineExceeded { limit: reported, .. }) => {
            assert_eq!(reported, limit)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn makes_mistakes() {
    let host = Host::new("makes-mistakes").await;
    host.add_once("any").await.unwrap().unwrap();
    insta::assert_snapshot!(host.lines().join("\n"), @r#"
    event.field, malformed: Err(Error::Invalid("the JSON pointer \"metadata\" does not begin with /, such as /metadata/name"))
    event.field, nothing there: Ok(None)
    event.field, no old version: Err(Error::NotFound("this call has no old state of an object"))
    event.fields, 65: Err(Error::LimitExceeded("65 pointers, more than 64"))
    event.fields, one malformed: Err(Error::Invalid("the JSON pointer \"/a~2\" has a ~ without 0 or 1 after it"))
    event.json, no old version: Err(Error::NotFound("this call has no old state of an object"))
    config.get, malformed: Err(Error::Invalid("the JSON pointer \"name\" does not begin with /, such as /metadata/name"))
    cache.get, long lister: Err(Error::LimitExceeded("the lister's name has 5120 bytes, more than 4096"))
    cache.get, not declared: Err(Error::NotDeclared("lister \"secrets\""))
    cache.get, 65 fields: Err(Error::LimitExceeded("65 pointers, more than 64"))
    cache.list, long token: Err(Error::LimitExceeded("the continue token has 5120 bytes, more than 4096"))
    client.create, large: Err(Error::LimitExceeded("the body has 3145730 bytes, more than 3145728"))
    client.replace, never fetched: Err(Error::Invalid("replace configmaps default/a: this instance did not fetch it with client.get or client.list (or fetched 1024 others since); objects in the cache lack pruned fields and must not be written back"))
    client.get: Ok("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"default\",\"name\":\"a\",\"uid\":\"uid-of-default-a\",\"resourceVersion\":\"7\",\"creationTimestamp\":\"2026-11-20T08:00:00Z\",\"labels\":{\"app\":\"hello\",\"oarlock.dev/of\":\"tests\"},\"annotations\":{\"note\":\"a \\\"quoted\\\" text, ünïcödé\"}},\"data\":{\"greeting\":\"hello 7\",\"other\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}")
    client.get, a stream: Err(Error::Invalid("the subresource \"log\" is a stream, not an object"))
    client.get, no subresource: Err(Error::Invalid("\"../status\" is no subresource, such as `status`"))
    client.list, long selector: Err(Error::LimitExceeded("the label selector has 5120 bytes, more than 4096"))
    client.list, long token: Err(Error::LimitExceeded("the continue token has 5120 bytes, more than 4096"))
    client.list, 65 fields: Err(Error::LimitExceeded("65 pointers, more than 64"))
    client.replace, as fetched: Ok(Written { name: "a", uid: "u", resource-version: "8" })
    client.replace, another version: Err(Error::Invalid("replace configmaps default/a: the text has resourceVersion \"1\", client.get returned \"7\""))
    events.emit, reason: Err(Error::Invalid("the reason \"not camel case\" is not one CamelCase word of at most 128 characters"))
    events.emit, note: Err(Error::Invalid("the note has 5120 bytes, more than 1024"))
    metrics.counter-add, name: Err(Error::Invalid("metric name \"a-b\" is not [a-zA-Z_][a-zA-Z0-9_]*, at most 128 characters"))
    metrics.counter-add, negative: Err(Error::Invalid("counter \"a\": cannot add -1"))
    metrics.counter-add: Ok(())
    metrics.gauge-set, a counter: Err(Error::Invalid("metric \"a\": \"a_total\" is a counter"))
    metrics.gauge-set, label twice: Err(Error::Invalid("metric \"b\": the label \"c\" occurs twice"))
    metrics.gauge-set, nine labels: Err(Error::LimitExceeded("metric \"b\": more than 8 labels"))
    metrics.gauge-set, after 256: Err(Error::LimitExceeded("metric \"g256\": the plugin has 256 series"))
    "#);
}

#[tokio::test]
async fn misdescribes() {
    let mut errors = String::new();
    for how in [
        "refuses",
        "no name",
        "same name twice",
        "bad field",
        "the whole object",
        "a condition on the whole object",
        "33 subscriptions",
        "65 fields",
        "17 conditions",
        "bad condition",
        "bad target",
        "empty namespace",
        "enqueues without reconciler",
        "index of nothing",
        "33 indices",
        "write without verbs",
        "300 reads",
        "no values",
        "65 values",
        "greater than a list",
        "wakes without reconciler",
        "schedules without reconciler",
    ] {
        let host = Host::with("misdescribes", Limits::default(), json!({ "how": how })).await;
        errors.push_str(&format!("{}\n", host.describe().await.unwrap_err()));
    }
    insta::assert_snapshot!(errors, @r#"
    the plugin refuses to be loaded: `how` suits me not
    the plugin's description is invalid: name: the name is empty
    the plugin's description is invalid: subscriptions[1].name: "configmaps" occurs twice
    the plugin's description is invalid: subscriptions[configmaps].fields[1]: the JSON pointer "spec" does not begin with /, such as /metadata/name
    the plugin's description is invalid: subscriptions[configmaps].fields[1]: the empty JSON pointer means the whole object: name a field of it, such as /spec
    the plugin's description is invalid: subscriptions[configmaps].conditions[0].pointer: the empty JSON pointer means the whole object: name a field of it, such as /spec
    the plugin's description is invalid: subscriptions: there are 33, more than 32
    the plugin's description is invalid: subscriptions[configmaps].fields: there are 65, more than 64
    the plugin's description is invalid: subscriptions[configmaps].conditions: there are 17, more than 16
    the plugin's description is invalid: subscriptions[configmaps].conditions[0].test: "no quotes" is not JSON (expected ident at line 1 column 2); a string needs its quotes
    the plugin's description is invalid: subscriptions[configmaps].target.plural: "ConfigMaps" is not a plural resource name, such as `configmaps`
    the plugin's description is invalid: subscriptions[configmaps].namespaces: `one` has an empty name; use `all` for all namespaces
    the plugin's description is invalid: subscriptions[configmaps].enqueue: the component does not export `reconciler`, so it can only be `nothing`
    the plugin's description is invalid: indices[by-app].lister: no read has the name "pods"
    the plugin's description is invalid: indices: there are 33, more than 32
    the plugin's description is invalid: requests[0].verbs: empty: a request names at least one verb
    the plugin's description is invalid: reads: there are 300, more than 256
    the plugin's description is invalid: subscriptions[configmaps].conditions[0].test: there is no value to compare with
    the plugin's description is invalid: subscriptions[configmaps].conditions[0].test: there are 65, more than 64
    the plugin's description is invalid: subscriptions[configmaps].conditions[0].test: "[1]" is neither a number nor a string
    the plugin's description is invalid: reads[configmaps].wakes: it queues keys, and the component does not export `reconciler`
    the plugin's description is invalid: schedules[nightly]: it adds a key, and the component does not export `reconciler`
    "#);
    let host = Host::new("misdescribes").await;
    assert_eq!(host.describe().await.unwrap().name, "misdescribes");
}

#[tokio::test]
async fn panics_in_describe() {
    let host = Host::new("panics-in-describe").await;
    let error = host.describe().await.unwrap_err();
    // The error becomes part of the status: the last output of the guest is in its log.
    insta::assert_snapshot!(error, @"the plugin did not describe itself: the guest trapped: wasm `unreachable` instruction executed");
    assert_eq!(host.lines(), ["cannot read the configuration token=canary-7d10"]);
    match error {
        DescribeError::Call(CallError::Trap { backtrace, .. }) => {
            assert!(backtrace.contains("panic"), "{backtrace}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn reconciles() {
    let host = Host::new("reconciles").await;
    assert!(host.component.exports_reconciler() && !host.component.exports_handler());
    let description = host.describe().await.unwrap();
    assert_eq!(description.subscriptions[0].name, "deployments");
    insta::assert_snapshot!(host.lines().join("\n"), @r#"
    Some(Error::NotSynced("the cache cannot be read in describe"))
    Some(Error::Unavailable("this import is not available in describe"))
    Some(Error::NotFound("this call has no new state of an object"))
    Some(Error::Unavailable("this import is not available in describe"))
    "#);

    let mut instance = host.instance().await.unwrap();
    let key = |kind: &str| WorkKey {
        kind: kind.into(),
        object: ObjectKey { namespace: "default".into(), name: "a".into() },
    };
    assert_eq!(instance.reconcile(&key("deployments")).await.unwrap(), Ok(Outcome::Done));
    assert_eq!(instance.reconcile(&key("again")).await.unwrap(), Ok(Outcome::RequeueAfter(1_500)));
    assert_eq!(instance.reconcile(&key("enqueue")).await.unwrap(), Ok(Outcome::Done));
    assert_eq!(*host.kube.queued.lock(), [(key("enqueue"), Some(Duration::from_millis(250)))]);
    assert_eq!(instance.reconcile(&key("fail")).await.unwrap(), Err(Failure::Terminal("as asked".into())));
    let (event, object) = add("default", "any");
    let refused = instance.on_add(&event.borrowed().argument(), object).await.unwrap_err();
    assert_eq!(refused, CallError::NotExported { interface: "handler" });
    assert!(instance.is_alive(), "the call did not reach the guest");
    assert!(matches!(instance.reconcile(&key("trap")).await, Err(CallError::Trap { .. })));
    assert_eq!(instance.reconcile(&key("deployments")).await.unwrap_err(), CallError::Dead);
}

#[tokio::test]
async fn traps() {
    let host = Host::new("traps").await;
    for (name, expected) in [
        ("panic", "wasm `unreachable` instruction executed"),
        ("overflow", "call stack exhausted"),
        ("overrun", "out of bounds memory access"),
    ] {
        let mut instance = host.instance().await.unwrap();
        instance.add("default", "any").await.unwrap().unwrap();
        match instance.add("default", name).await.unwrap_err() {
            CallError::Trap { message, backtrace, .. } => {
                assert_eq!(message, expected);
                assert!(
                    backtrace.contains("wasm backtrace") && backtrace.lines().count() < 40,
                    "{backtrace}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
        assert!(!instance.is_alive());
        assert_eq!(instance.add("default", "any").await.unwrap_err(), CallError::Dead);
    }
    // A failure is an answer: the instance keeps its state and can be called again.
    let mut instance = host.instance().await.unwrap();
    let answer = instance.add("default", "retry").await.unwrap();
    assert_eq!(answer, Err(Failure::Retry("as asked".into())));
    let answer = instance.add("default", "terminal").await.unwrap();
    assert_eq!(answer, Err(Failure::Terminal("as asked".into())));
    instance.add("default", "any").await.unwrap().unwrap();
    instance.add("default", "any").await.unwrap().unwrap();
    assert_eq!(host.lines(), ["survived 1", "survived 1", "survived 1", "survived 1", "survived 2"]);
}

#[tokio::test(start_paused = true)]
async fn waits_for_the_host() {
    let host = Host::new("waits-for-the-host").await;
    let error = host.add_once("any").await.unwrap_err();
    insta::assert_snapshot!(error, @"the call exceeded its deadline of 5s while it waited for cache.wait-until-seen");
    assert!(matches!(error, CallError::DeadlineExceeded { backtrace, .. } if backtrace.is_empty()));
}

/// `host/controller/tests/it/concurrency.rs` runs many instances of it.
#[tokio::test]
async fn writes() {
    let host = Host::new("writes").await;
    assert!(host.describe().await.unwrap().stateless);
    // A copy is not copied, so that this needs no API server.
    host.add_once("copy-of-any").await.unwrap().unwrap();
    let answer = host.add_once("any").await.unwrap();
    assert!(matches!(answer, Err(Failure::Retry(_))), "{answer:?}");
}

/// `host/controller/tests/it/waking.rs` tests what wakes its keys.
#[tokio::test]
async fn wakes() {
    let host = Host::new("wakes").await;
    let description = host.describe().await.unwrap();
    let waking: Vec<_> = description.reads.iter().filter(|it| it.wakes).map(|it| it.name.as_str()).collect();
    assert_eq!((waking, description.stateless), (vec!["secrets"], true));
}
