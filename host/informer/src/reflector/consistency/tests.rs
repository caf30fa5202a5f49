use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::time::Instant;

use super::*;
use crate::delta_fifo::TransformError;
use crate::names::{GroupVersionResource, TypeMeta};
use crate::reflector::tests::support::in_time;
use crate::reflector::{Config, ConsistencyCheck};
use crate::shared_informer::{self, SharedInformer};
use crate::testing::{Draft, FakeListWatch, errors};

fn three_pods() -> FakeListWatch {
    let server = FakeListWatch::pods();
    for key in ["x/a", "x/b", "y/c"] {
        server.put(key);
    }
    server
}

fn at(resource_version: &str, limit: u32) -> ListOptions {
    ListOptions {
        resource_version: resource_version.into(),
        limit: NonZeroU32::new(limit),
        ..ListOptions::default()
    }
}

async fn check_at(
    server: &FakeListWatch,
    resource_version: &str,
    options: ListOptions,
    items: &[Object],
) -> Result<(), Inconsistency> {
    check(server, resource_version, options, items, &|object| Ok(object)).await
}

// Conformance: 49.1
#[tokio::test(start_paused = true)]
async fn data_consistency_checker_cd_01() {
    let server = three_pods();
    let mut items = server.objects();
    // In any order, and with fields in any order.
    items.reverse();
    let text = r#"{"metadata":{"resourceVersion":"2","uid":"uid-1","namespace":"x","name":"a"},"apiVersion":"v1","kind":"Pod"}"#;
    items[2] = Object::parse(text.as_bytes(), None).unwrap();
    let cases = [
        (at("", 0), None),
        // The watch cache ignored the limit, so the list has none.
        (at("0", 2), None),
        (at("2", 5), NonZeroU32::new(5)),
        (at("0", 5), NonZeroU32::new(5)),
    ];
    for (options, limit) in cases {
        assert_eq!(check_at(&server, "4", options, &items).await, Ok(()));
        let expected = ListOptions { limit, version_match: Some(VersionMatch::Exact), ..at("4", 0) };
        assert_eq!(server.lists().last(), Some(&expected));
    }
    // The server kept to the limit, so the list has two objects.
    let surplus = check_at(&server, "4", at("2", 2), &server.objects()).await.unwrap_err().surplus;
    assert_eq!(surplus, [ObjectKey::new("y", "c")]);
    assert_eq!(check_at(&server, "4", at("2", 2), &server.objects()[..2]).await, Ok(()));

    // No objects.
    let empty = FakeListWatch::pods();
    assert_eq!(check_at(&empty, "1", at("", 0), &[]).await, Ok(()));

    // No such list exists.
    let n_lists = server.lists().len();
    let next = ListOptions { continue_token: Some("c".into()), ..at("", 0) };
    assert_eq!(check_at(&server, "4", next, &[]).await, Ok(()));
    assert_eq!(check_at(&server, "0", at("", 0), &[]).await, Ok(()));
    assert_eq!(server.lists().len(), n_lists, "no request was sent");

    // Differences. The list has the objects of the requested version, without later changes.
    let stranger = Draft::new("z/s").at(&TypeMeta::new("v1", "Pod"), "u", "4");
    let other = Draft::new("x/b").label("l", "v").at(&TypeMeta::new("v1", "Pod"), "uid-2", "3");
    let items = [server.objects()[0].clone(), other, stranger];
    server.put("x/later");
    server.delete("x/a");
    let found = check_at(&server, "4", at("", 0), &items).await.unwrap_err();
    insta::assert_snapshot!(found, @"missing [y/c], surplus [z/s], different [x/b]");
}

// Conformance: 49.2
#[tokio::test(start_paused = true)]
async fn data_consistency_checker_retries_each_second_cd_01() {
    let server = three_pods();
    for _ in 0..4 {
        server.fail_list(errors::internal().into());
    }
    let begun_at = Instant::now();
    assert_eq!(check_at(&server, "4", at("", 0), &server.objects()).await, Ok(()));
    assert_eq!((server.lists().len(), begun_at.elapsed()), (5, Duration::from_secs(4)));
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_not_checked_cd_01() {
    let server = three_pods();
    server.put("x/d");
    server.expire_history();
    assert_eq!(check_at(&server, "4", at("", 0), &[]).await, Ok(()));
    assert_eq!(server.lists().len(), 1);
}

fn checked_informer(server: &FakeListWatch, is_transformed: bool) -> SharedInformer {
    let mut config = shared_informer::Config::new(GroupVersionResource::new("", "v1", "pods"));
    config.reflector =
        Config { consistency_check: ConsistencyCheck::Panic, seed: Some(7), ..Config::default() };
    if is_transformed {
        config.transformer = Some(Arc::new(|object: Object| {
            let text = object.json().replace("\"kind\":\"Pod\"", "\"kind\":\"Pod\",\"seen\":true");
            Object::parse(text.as_bytes(), None).map_err(|error| TransformError(error.into()))
        }));
    }
    SharedInformer::new(Arc::new(server.clone()), config)
}

// Conformance: 16.1
#[tokio::test(start_paused = true)]
async fn reflector_data_consistency_detector_cd_01_wl_04() {
    for is_transformed in [false, true] {
        let server = three_pods();
        let informer = checked_informer(&server, is_transformed);
        let token = tokio_util::sync::CancellationToken::new();
        let script = async {
            assert!(informer.wait_for_sync().await);
            let object = informer.indexer().get(&ObjectKey::new("x", "a")).unwrap();
            assert_eq!(object.json().contains("\"seen\":true"), is_transformed);
            assert_eq!(
                (server.watches().len(), server.lists().len()),
                (1, 1),
                "one stream and one list of the check"
            );
            token.cancel();
        };
        in_time(async { tokio::join!(informer.run(token.clone()), script) }).await;
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "data inconsistency detected for v1/pods, panicking: missing [y/c], surplus [], different []"
)]
async fn a_difference_panics_cd_01() {
    let server = three_pods();
    let (watch, stream) = crate::testing::ScriptedWatch::new(10);
    server.answer_watch(stream);
    for object in &server.objects()[..2] {
        watch.send(Ok(crate::list_watch::WatchEvent::Added(object.clone()))).await;
    }
    let end = crate::list_watch::Bookmark {
        resource_version: "4".into(),
        type_meta: None,
        is_initial_events_end: true,
    };
    watch.send(Ok(crate::list_watch::WatchEvent::Bookmark(end))).await;
    in_time(checked_informer(&server, false).run(tokio_util::sync::CancellationToken::new())).await;
}
