//! Tests of the fake itself.

use futures::{FutureExt, StreamExt};

use super::*;

fn watch_from(resource_version: &str) -> WatchOptions {
    WatchOptions {
        resource_version: resource_version.into(),
        allow_bookmarks: true,
        ..WatchOptions::default()
    }
}

/// Waits for a future, and panics after the limit.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("no event within the limit")
}

/// Reads all events that are ready.
fn read(stream: &mut WatchStream) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(Some(item)) = stream.next().now_or_never() {
        seen.push(match item {
            Ok(WatchEvent::Added(object)) => format!("added {}", object.resource_version()),
            Ok(WatchEvent::Modified(object)) => format!("modified {}", object.resource_version()),
            Ok(WatchEvent::Deleted(object)) => format!("deleted {}", object.resource_version()),
            Ok(WatchEvent::Bookmark(bookmark)) if bookmark.is_initial_events_end => {
                format!("end {}", bookmark.resource_version)
            }
            Ok(WatchEvent::Bookmark(bookmark)) => format!("bookmark {}", bookmark.resource_version),
            Ok(WatchEvent::Error(status)) => format!("error {}", status.reason),
            other => format!("{other:?}"),
        });
    }
    seen
}

// Conformance: 30.1
#[tokio::test]
async fn rc_number() {
    let fake = FakeListWatch::pods();
    // The first version, without objects, is 1.
    for _ in 0..3 {
        fake.put("x/a");
    }
    for (from, events) in [("2", &["modified 3", "modified 4"][..]), ("3", &["modified 4"]), ("4", &[])] {
        let mut watch = fake.watch(watch_from(from)).await.unwrap();
        assert_eq!(read(&mut watch), events);
    }
    let list = fake.list(ListOptions::default(), &|item| item).await.unwrap();
    assert_eq!(list.resource_version, "4");
}

// Conformance: 30.2
#[tokio::test]
async fn reset_watch() {
    let fake = FakeListWatch::pods();
    fake.put("x/a");
    fake.put("x/a");
    let mut open = fake.watch(watch_from("3")).await.unwrap();
    fake.reset_watches();
    assert!(in_time(open.next()).await.is_none(), "it is closed");
    let mut old = fake.watch(watch_from("1")).await.unwrap();
    assert_eq!(read(&mut old), ["error Expired"]);
    let mut new = fake.watch(watch_from("3")).await.unwrap();
    fake.put("x/b");
    assert_eq!(read(&mut new), ["added 4"]);
}

#[tokio::test]
async fn a_watch_list_sends_all_objects_and_then_the_end_bookmark() {
    let fake = FakeListWatch::pods();
    fake.put("x/a");
    let streamed = WatchOptions { send_initial_events: true, ..watch_from("") };
    let mut watch = fake.watch(streamed.clone()).await.unwrap();
    fake.put("x/a");
    assert_eq!(read(&mut watch), ["added 2", "end 2", "modified 3"]);
    // At a version that is not older than the requested one.
    let mut watch =
        fake.watch(WatchOptions { resource_version: "2".into(), ..streamed.clone() }).await.unwrap();
    assert_eq!(read(&mut watch), ["added 3", "end 3"]);
    let too_new = fake.watch(WatchOptions { resource_version: "9".into(), ..streamed.clone() }).await;
    assert!(too_new.is_err_and(|error| error.is_too_large_rv()));
    // Without bookmarks no event marks the end.
    let mut watch = fake.watch(WatchOptions { allow_bookmarks: false, ..streamed.clone() }).await.unwrap();
    assert_eq!(read(&mut watch), ["added 3"]);
    // The test decides when the initial events end.
    fake.hold_initial_events_end();
    let mut watch = fake.watch(streamed.clone()).await.unwrap();
    fake.put("x/b");
    assert_eq!(read(&mut watch), ["added 3", "added 4"]);
    fake.end_initial_events();
    assert_eq!(read(&mut watch), ["end 4"]);
    fake.refuse_watch_lists();
    assert!(fake.watch(streamed).await.is_err_and(|error| error.status().is_some_and(|s| s.code == 422)));
    assert!(fake.watch(watch_from("4")).await.is_ok());
}

// Conformance: 10.1
#[test]
fn list_watch_with_watch_list_semantics() {
    /// A source that does not implement the method.
    struct Undecided;

    #[async_trait]
    impl ListWatch for Undecided {
        async fn list(&self, _: ListOptions, _: ItemHook<'_>) -> Result<ListPage, ApiError> {
            Ok(ListPage::default())
        }

        async fn watch(&self, _: WatchOptions) -> Result<WatchStream, ApiError> {
            Ok(futures::stream::empty().boxed())
        }
    }

    assert!(Undecided.supports_watch_list());
    let fake = FakeListWatch::pods();
    // Also through a wrapper.
    let wrapped = MetadataOnly(fake.clone());
    assert!(fake.supports_watch_list() && wrapped.supports_watch_list());
    fake.decline_watch_list();
    assert!(!fake.supports_watch_list() && !wrapped.supports_watch_list());
}

#[tokio::test]
async fn an_exact_list_has_the_objects_of_its_version() {
    let fake = FakeListWatch::pods();
    fake.put("x/a");
    fake.put("x/b");
    fake.delete("x/a");
    let exact = |resource_version: &str| ListOptions {
        resource_version: resource_version.into(),
        version_match: Some(crate::list_watch::VersionMatch::Exact),
        ..ListOptions::default()
    };
    for (version, names) in [("1", &[][..]), ("2", &["x/a"]), ("3", &["x/a", "x/b"]), ("4", &["x/b"])] {
        let page = fake.list(exact(version), &|item| item).await.unwrap();
        let found: Vec<String> = page.items.iter().map(|item| item.key().to_string()).collect();
        assert_eq!(
            (found, &*page.resource_version),
            (names.iter().map(ToString::to_string).collect(), version)
        );
    }
    fake.expire_history();
    assert!(fake.list(exact("3"), &|item| item).await.is_err_and(|error| error.is_expired()));
    assert_eq!(fake.list(exact("4"), &|item| item).await.unwrap().items.len(), 1);
}

// Conformance: B.1
#[tokio::test]
async fn a_watch_without_a_buffer_waits_until_each_event_is_read_wt_01() {
    let event = || Ok(WatchEvent::Error(errors::expired()));
    let (watch, mut stream) = ScriptedWatch::new(0);
    {
        let mut send = std::pin::pin!(watch.send(event()));
        assert!(send.as_mut().now_or_never().is_none(), "no reader has taken it");
        assert!(in_time(stream.next()).await.is_some());
        assert!(in_time(send).await);
    }
    let (buffered, mut buffer) = ScriptedWatch::new(2);
    assert!(in_time(buffered.send(event())).await && in_time(buffered.send(event())).await);
    assert!(std::pin::pin!(buffered.send(event())).now_or_never().is_none(), "full");
    assert_eq!(read(&mut buffer).len(), 2);
    // An event that waits for the reader is lost when the reader stops.
    let pending = watch.send(event());
    let stop = async {
        assert!(!watch.is_stopped());
        drop(stream);
        watch.stopped().await;
    };
    assert!(!in_time(futures::future::join(pending, stop)).await.0);
    assert!(watch.is_stopped());
    // Closed by the server.
    drop(buffered);
    assert!(in_time(buffer.next()).await.is_none());
}

/// The deletion has the version of the change. The same holds for a watch that begins later.
#[tokio::test]
async fn an_object_that_leaves_a_selector_is_deleted_in_its_last_selected_state() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("x/a").label("app", "web"));
    let selected = WatchOptions { label_selector: "app=web".parse().unwrap(), ..watch_from("2") };
    let mut open = fake.watch(selected.clone()).await.unwrap();
    fake.put(Draft::new("x/a").label("app", "db"));
    let mut again = fake.watch(selected).await.unwrap();
    for watch in [&mut open, &mut again] {
        let Some(Ok(WatchEvent::Deleted(object))) = in_time(watch.next()).await else {
            panic!("it was deleted")
        };
        assert_eq!((&object.labels()["app"][..], &*object.resource_version()), ("web", "3"));
    }
    fake.delete("x/a");
    assert_eq!(read(&mut open).len() + read(&mut again).len(), 0, "it was deleted before");
}
