//! `wait_until_seen` after bookmarks and lists of lower versions, and with versions that are not numbers.

use super::*;
use crate::list_watch::{Bookmark, ListPage, WatchEvent};
use crate::names::TypeMeta;
use crate::object::Object;
use crate::testing::ScriptedWatch;

const PATIENCE: Duration = Duration::from_secs(60);

fn bookmark(version: &str) -> WatchEvent {
    WatchEvent::Bookmark(Bookmark {
        resource_version: version.to_owned(),
        type_meta: None,
        is_initial_events_end: false,
    })
}

fn pod(name: &str, version: &str) -> Object {
    Draft::new(name).at(&TypeMeta::new("v1", "Pod"), name, version)
}

fn list(items: &[(&str, &str)], version: &str) -> ListPage {
    let items = items.iter().map(|(name, version)| pod(name, version)).collect();
    ListPage { resource_version: version.to_owned(), items, ..ListPage::default() }
}

/// Returns an informer that lists `page` first, and its watch, which the test controls.
fn scripted(page: ListPage) -> (FakeListWatch, SharedInformer, ScriptedWatch) {
    let fake = FakeListWatch::pods();
    fake.decline_watch_list();
    fake.answer_list(page);
    let (watch, stream) = ScriptedWatch::new(16);
    fake.answer_watch(stream);
    let informer = informer(&fake);
    (fake, informer, watch)
}

/// Returns the result of a wait for a version; none if it does not end.
async fn waited(informer: &SharedInformer, version: &str) -> Option<Result<(), WaitError>> {
    tokio::time::timeout(PATIENCE, informer.wait_until_seen(version)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_version_stays_seen_after_a_lower_bookmark() {
    let (_fake, informer, watch) = scripted(list(&[("ns/a", "2")], "2"));
    run(&informer, async {
        watch.send(Ok(WatchEvent::Added(pod("ns/b", "3")))).await;
        watch.send(Ok(bookmark("1"))).await;
        settle().await;
        assert_eq!(informer.indexer().len(), 2);
        for version in ["1", "2", "3"] {
            assert_eq!(waited(&informer, version).await, Some(Ok(())), "{version}");
        }
        assert_eq!(waited(&informer, "4").await, None, "version 4 has not arrived");
        watch.send(Ok(bookmark("4"))).await;
        assert_eq!(waited(&informer, "4").await, Some(Ok(())));
    })
    .await;
}

/// Tests bookmarks without a version, and with one that is not a number.
#[tokio::test(start_paused = true)]
async fn a_version_stays_seen_after_a_bookmark_without_a_number() {
    let (_fake, informer, watch) = scripted(list(&[("ns/a", "2")], "2"));
    run(&informer, async {
        for version in ["", "opaque"] {
            watch.send(Ok(bookmark(version))).await;
            settle().await;
            assert_eq!(waited(&informer, "2").await, Some(Ok(())), "{version:?}");
        }
        let Some(Err(WaitError::NotComparable(error))) = waited(&informer, "3").await else {
            panic!("version 3 cannot be compared with \"opaque\"")
        };
        assert_eq!(error.0, "opaque");
        watch.send(Ok(WatchEvent::Added(pod("ns/b", "3")))).await;
        settle().await;
        assert_eq!(waited(&informer, "3").await, Some(Ok(())), "versions are comparable again");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lower_bookmark_does_not_hide_the_version_of_a_queued_change() {
    let fifo = delta_fifo::DeltaFifo::new(delta_fifo::Config::default());
    fifo.add(pod("ns/a", "3")).unwrap();
    fifo.mark("3");
    fifo.mark("1");
    let watermark = fifo.watermark();
    assert!(watermark.borrow().has_reached(&"3".parse().unwrap()).is_none());
    fifo.try_pop(|_, _, _| crate::delta_fifo::Processed::Done).unwrap();
    assert_eq!(watermark.borrow().has_reached(&"3".parse().unwrap()), Some(Ok(())));
}

/// etcd was restored from a backup: the watch expires, and the list has a lower version.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_a_list_has_a_lower_version_than_before() {
    let (fake, informer, watch) = scripted(list(&[("ns/a", "90")], "100"));
    let restored = || async {
        fake.answer_list(list(&[("ns/a", "40")], "50"));
        let (again, stream) = ScriptedWatch::new(16);
        fake.answer_watch(stream);
        assert!(watch.send(Ok(WatchEvent::Error(errors::expired()))).await);
        fake.until_lists(2).await;
        settle().await;
        again
    };
    run(&informer, async {
        informer.wait_for_sync().await;
        // A write from before the restore, which this informer has not received.
        let (waiting, again) = tokio::join!(waited(&informer, "103"), restored());
        let went_back = |wanted: &str, now: &str| {
            Some(Err(WaitError::WentBack { wanted: wanted.to_owned(), now: now.to_owned() }))
        };
        assert_eq!(waiting, went_back("103", "50"), "the version may never come");
        assert_eq!(waited(&informer, "50").await, Some(Ok(())));
        // This version may be from before or after the restore.
        assert_eq!(waited(&informer, "60").await, went_back("60", "50"));
        again.send(Ok(WatchEvent::Added(pod("ns/b", "60")))).await;
        settle().await;
        assert_eq!(waited(&informer, "60").await, Some(Ok(())), "the version has arrived");
        assert_eq!(waited(&informer, "100").await, went_back("100", "60"));
        assert_eq!(waited(&informer, "101").await, None, "no version above 100 was seen before the restore");
        again.send(Ok(bookmark("101"))).await;
        settle().await;
        for version in ["100", "101"] {
            assert_eq!(waited(&informer, version).await, Some(Ok(())), "{version}");
        }
    })
    .await;
}

/// Servers of extension APIs may have such versions, which have no order.
#[tokio::test(start_paused = true)]
async fn a_wait_fails_if_versions_are_not_numbers() {
    for version in ["", "opaque"] {
        let (_fake, informer, watch) = scripted(list(&[("ns/a", "2")], version));
        run(&informer, async {
            informer.wait_for_sync().await;
            let waited = waited(&informer, "2").await;
            assert!(matches!(waited, Some(Err(WaitError::NotComparable(_)))), "{version:?}: {waited:?}");
            drop(watch);
        })
        .await;
    }
}
