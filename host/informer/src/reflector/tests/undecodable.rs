//! Objects that the server has and that cannot be decoded.

use std::sync::Arc;

use super::support::{Scene, listed, play};
use crate::list_watch::{DecodeError, ListPage, Undecodable, WatchEvent};
use crate::names::{ObjectKey, TypeMeta};
use crate::object::Object;
use crate::reflector::{Config, Phase};
use crate::testing::{Draft, FakeListWatch, ScriptedWatch, errors};

fn bad(key: &str) -> Undecodable {
    let key: ObjectKey = key.parse().unwrap();
    Undecodable { key: Some(key), error: Arc::new(DecodeError::Object(labels_error())) }
}

fn nameless() -> Undecodable {
    Undecodable { key: None, error: Arc::new(DecodeError::Object(labels_error())) }
}

fn labels_error() -> crate::object::Error {
    Object::parse(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"n":1}}}"#, None)
        .unwrap_err()
}

fn changed(key: &str) -> WatchEvent {
    WatchEvent::Undecodable { is_deleted: false, object: bad(key) }
}

fn deleted(key: &str) -> WatchEvent {
    WatchEvent::Undecodable { is_deleted: true, object: bad(key) }
}

fn pod(key: &str, version: &str) -> Object {
    Draft::new(key).at(&TypeMeta::new("v1", "Pod"), key, version)
}

fn page(version: &str, items: &[(&str, &str)], undecodable: Vec<Undecodable>) -> ListPage {
    ListPage {
        resource_version: version.into(),
        items: items.iter().map(|(key, version)| pod(key, version)).collect(),
        undecodable,
        ..ListPage::default()
    }
}

fn two_pods() -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server.put("x/b");
    server
}

fn named(scene: &Scene) -> Vec<String> {
    let status = scene.status();
    assert_eq!(status.n_undecodable, status.undecodable.len());
    let name = |key: &Option<ObjectKey>| key.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
    status.undecodable.iter().map(|object| name(&object.key)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_deletion_removes_the_object_by_a_relist() {
    for config in [listed(), Config::default()] {
        play(two_pods(), config, async |scene| {
            scene.settle().await;
            scene.server.delete_unseen("x/a");
            scene.server.send(&deleted("x/a"));
            scene.settle().await;
            assert!(matches!(scene.phase(), Phase::Failing { .. }));
            assert!(scene.last_error().contains("x/a"), "{}", scene.last_error());
            assert!(scene.last_error().contains("malformed metadata"), "{}", scene.last_error());
            scene.server.put("x/c");
            scene.pass(2000).await;
            assert_eq!(scene.store.objects(), "x/b@3 x/c@5");
            assert_eq!((scene.phase(), named(scene)), (Phase::Watching, vec![]));
            assert_eq!(scene.status().n_undecodable_events, 1);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_change_keeps_the_last_state_and_shows_in_the_status() {
    play(two_pods(), listed(), async |scene| {
        scene.settle().await;
        scene.server.answer_list(page("9", &[("x/b", "3")], vec![bad("x/a")]));
        scene.server.send(&changed("x/a"));
        scene.pass(2000).await;
        assert_eq!(scene.requests()[2..], ["list all at \"3\"", "watch \"9\""]);
        assert_eq!(scene.store.objects(), "x/a@2 x/b@3", "the object is not deleted");
        assert_eq!((scene.phase(), named(scene)), (Phase::Watching, vec!["x/a".to_owned()]));
        // A later state is decodable.
        scene.server.send(&WatchEvent::Modified(pod("x/a", "10")));
        scene.settle().await;
        assert_eq!((scene.store.objects(), named(scene)), ("x/a@10 x/b@3".to_owned(), vec![]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stays_undecodable_costs_one_relist_in_all() {
    play(two_pods(), listed(), async |scene| {
        scene.settle().await;
        scene.server.answer_list(page("3", &[("x/b", "3")], vec![bad("x/a")]));
        for _ in 0..600 {
            scene.server.send(&changed("x/a"));
            scene.pass(1000).await;
        }
        assert_eq!(scene.server.lists().len(), 2, "{:?}", scene.requests());
        // The events of other objects reach the store.
        scene.server.put("x/b");
        scene.settle().await;
        assert_eq!(scene.store.objects(), "x/a@2 x/b@4");
        // Its deletion leads to a relist.
        scene.server.delete_unseen("x/a");
        scene.server.send(&deleted("x/a"));
        scene.pass(5000).await;
        assert_eq!((scene.store.objects(), named(scene)), ("x/b@4".to_owned(), vec![]));
        assert_eq!(scene.server.lists().len(), 3);
    })
    .await;
}

/// The list decodes the object, so each watch ends with it again.
#[tokio::test(start_paused = true)]
async fn an_object_that_only_watches_cannot_decode_leads_to_relists_with_back_off() {
    for config in [listed(), Config::default()] {
        play(two_pods(), config, async |scene| {
            for _ in 0..600 {
                scene.server.send(&changed("x/a"));
                scene.pass(1000).await;
            }
            let n_listings = scene.server.n_listings();
            assert!((10..45).contains(&n_listings), "{n_listings} lists in ten minutes");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn undecodable_initial_events_are_left_out_and_named() {
    let server = two_pods();
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        let (watch, stream) = ScriptedWatch::new(100);
        scene.server.answer_watch(stream);
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        for event in [
            changed("x/a"),
            changed("x/never"),
            changed("x/gone"),
            deleted("x/gone"),
            changed("x/mended"),
            WatchEvent::Added(pod("x/b", "3")),
            WatchEvent::Modified(pod("x/mended", "8")),
            WatchEvent::Added(pod("x/deleted", "7")),
            deleted("x/deleted"),
        ] {
            watch.send(Ok(event)).await;
        }
        watch
            .send(Ok(WatchEvent::Bookmark(crate::list_watch::Bookmark {
                resource_version: "9".into(),
                type_meta: None,
                is_initial_events_end: true,
            })))
            .await;
        scene.settle().await;
        assert_eq!(scene.store.objects(), "x/a@2 x/b@3 x/mended@8");
        assert_eq!(named(scene), ["x/a", "x/never"]);
        // The deletion of an object without a readable name leads to a list.
        let n_lists = scene.server.lists().len();
        let broken = watch;
        let (watch, stream) = ScriptedWatch::new(100);
        scene.server.answer_watch(stream);
        broken.send(Err(errors::garbage())).await;
        scene.pass(5_000).await;
        watch.send(Ok(WatchEvent::Undecodable { is_deleted: true, object: nameless() })).await;
        scene.settle().await;
        assert!(scene.server.lists().len() > n_lists);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_without_a_name_keeps_all_objects_that_are_not_listed() {
    play(two_pods(), listed(), async |scene| {
        scene.settle().await;
        scene.server.answer_list(page("9", &[("x/b", "8")], vec![nameless()]));
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        assert_eq!((scene.store.objects(), named(scene)), ("x/a@2 x/b@8".to_owned(), vec!["?".to_owned()]));
        scene.server.answer_list(page("10", &[("x/b", "8")], vec![]));
        scene.server.break_watches(errors::garbage);
        scene.pass(5000).await;
        assert_eq!((scene.store.objects(), named(scene)), ("x/b@8".to_owned(), vec![]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_undecodable_objects_of_all_pages_are_named() {
    let server = FakeListWatch::pods();
    server.decline_watch_list();
    server.answer_list(ListPage {
        continue_token: Some("0:0:0".into()),
        ..page("9", &[("x/a", "1")], vec![bad("x/b")])
    });
    server.answer_list(page("9", &[("x/d", "1")], vec![bad("x/c"), nameless()]));
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        assert_eq!(named(scene), ["x/b", "x/c", "?"]);
        assert_eq!(scene.store.objects(), "x/a@1 x/d@1");
    })
    .await;
}
