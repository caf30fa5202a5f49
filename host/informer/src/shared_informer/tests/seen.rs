//! Until when a version counts as seen: behind bookmarks that are lower, lists that are lower, and versions that are no numbers.

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

/// An informer that lists `page` first, and whose watch is in the test's hands.
fn scripted(page: ListPage) -> (FakeListWatch, SharedInformer, ScriptedWatch) {
    let fake = FakeListWatch::pods();
    fake.decline_watch_list();
    fake.answer_list(page);
    let (watch, stream) = ScriptedWatch::new(16);
    fake.answer_watch(stream);
    let informer = informer(&fake);
    (fake, informer, watch)
}

/// How waiting for a version ends; none if it does not.
async fn waited(informer: &SharedInformer, version: &str) -> Option<Result<(), WaitError>> {
    tokio::time::timeout(PATIENCE, informer.wait_until_seen(version)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_cached_is_seen_behind_a_lower_bookmark() {
    let (_fake, informer, watch) = scripted(list(&[("ns/a", "2")], "2"));
    run(&informer, async {
        watch.send(Ok(WatchEvent::Added(pod("ns/b", "3")))).await;
        watch.send(Ok(bookmark("1"))).await;
        settle().await;
        assert_eq!(informer.indexer().len(), 2);
        for version in ["1", "2", "3"] {
            assert_eq!(waited(&informer, version).await, Some(Ok(())), "{version}");
        }
        assert_eq!(waited(&informer, "4").await, None, "what has not come is waited for");
        watch.send(Ok(bookmark("4"))).await;
        assert_eq!(waited(&informer, "4").await, Some(Ok(())));
    })
    .await;
}

/// A bookmark without a version, or with one that is no number, takes nothing back either.
#[tokio::test(start_paused = true)]
async fn a_bookmark_that_says_nothing_takes_nothing_back() {
    let (_fake, informer, watch) = scripted(list(&[("ns/a", "2")], "2"));
    run(&informer, async {
        for version in ["", "opaque"] {
            watch.send(Ok(bookmark(version))).await;
            settle().await;
            assert_eq!(waited(&informer, "2").await, Some(Ok(())), "{version:?}");
        }
        let Some(Err(WaitError::NotComparable(error))) = waited(&informer, "3").await else {
            panic!("nothing tells whether 3 was seen")
        };
        assert_eq!(error.0, "opaque");
        watch.send(Ok(WatchEvent::Added(pod("ns/b", "3")))).await;
        settle().await;
        assert_eq!(waited(&informer, "3").await, Some(Ok(())), "comparable again");
    })
    .await;
}

/// Waits that began while a change was still queued are no different.
#[tokio::test(start_paused = true)]
async fn a_lower_bookmark_does_not_overtake_what_is_queued() {
    let fifo = delta_fifo::DeltaFifo::new(delta_fifo::Config::default());
    fifo.add(pod("ns/a", "3")).unwrap();
    fifo.mark("3");
    fifo.mark("1");
    let watermark = fifo.watermark();
    assert!(watermark.borrow().has_reached(&"3".parse().unwrap()).is_none());
    fifo.try_pop(|_, _, _| crate::delta_fifo::Processed::Done).unwrap();
    assert_eq!(watermark.borrow().has_reached(&"3".parse().unwrap()), Some(Ok(())));
}

/// An etcd that was restored from a backup: the watch ends, and the list is at a version of long ago.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_a_list_goes_back_before_its_version() {
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
        // A write of before the restore, which this informer has not heard of yet.
        let (waiting, again) = tokio::join!(waited(&informer, "103"), restored());
        let went_back = |wanted: &str, now: &str| {
            Some(Err(WaitError::WentBack { wanted: wanted.to_owned(), now: now.to_owned() }))
        };
        assert_eq!(waiting, went_back("103", "50"), "it may never come");
        assert_eq!(waited(&informer, "50").await, Some(Ok(())));
        // Nothing tells whether this one is of before or after.
        assert_eq!(waited(&informer, "60").await, went_back("60", "50"));
        again.send(Ok(WatchEvent::Added(pod("ns/b", "60")))).await;
        settle().await;
        assert_eq!(waited(&informer, "60").await, Some(Ok(())), "it has come");
        assert_eq!(waited(&informer, "100").await, went_back("100", "60"));
        assert_eq!(waited(&informer, "101").await, None, "of before nothing higher was heard of");
        again.send(Ok(bookmark("101"))).await;
        settle().await;
        for version in ["100", "101"] {
            assert_eq!(waited(&informer, version).await, Some(Ok(())), "{version}");
        }
    })
    .await;
}

/// As servers of extension APIs may: there is no order, so there is no answer but whether it is this very version.
#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_an_error_and_no_endless_wait() {
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
