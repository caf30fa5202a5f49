use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::list_watch::VersionMatch;
use crate::testing::{FakeListWatch, Serving, errors};

/// A resource of so many Pods, served in pages.
fn paged(n_pods: usize) -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.serve_from(Serving::Storage);
    for idx in 0..n_pods {
        server.put(&*format!("x/{idx:03}"));
    }
    server
}

fn pages_of(page_size: u32) -> Config {
    Config { page_size: NonZeroU32::new(page_size), ..Config::default() }
}

fn names(items: &[Object]) -> Vec<String> {
    items.iter().map(|item| item.key().to_string()).collect()
}

fn expected(n_items: usize) -> Vec<String> {
    (0..n_items).map(|idx| format!("x/{idx:03}")).collect()
}

async fn list(server: &FakeListWatch, config: Config, options: ListOptions) -> Result<Listing, ApiError> {
    Pager::new(server, config).list(options, &|item| item).await
}

#[tokio::test]
async fn the_limit_of_the_options_wins_over_the_page_size_pg_01() {
    let limit_of = async |config: Config, limit: u32| {
        let server = paged(1);
        let options = ListOptions { limit: NonZeroU32::new(limit), ..ListOptions::default() };
        list(&server, config, options).await.unwrap();
        server.lists()[0].limit.map_or(0, NonZeroU32::get)
    };
    assert_eq!(limit_of(Config::default(), 0).await, 500);
    assert_eq!(limit_of(Config::default(), 7).await, 7);
    assert_eq!(limit_of(pages_of(0), 0).await, 0);
    assert_eq!(limit_of(pages_of(0), 7).await, 7);
}

#[tokio::test]
async fn pages_form_one_list_at_the_version_of_the_first_page_pg_02_pg_03() {
    for (n_pods, n_pages) in [(0, 1), (9, 1), (10, 1), (11, 2), (21, 3)] {
        let server = paged(n_pods);
        let version = server.resource_version();
        let options = ListOptions {
            resource_version: "1".into(),
            version_match: Some(VersionMatch::NotOlderThan),
            field_selector: "metadata.namespace=x".into(),
            ..ListOptions::default()
        };
        let listing = list(&server, pages_of(10), options.clone()).await.unwrap();
        assert_eq!(names(&listing.items), expected(n_pods));
        assert_eq!((listing.resource_version, listing.is_paginated), (version, n_pages > 1));
        let asked = server.lists();
        assert_eq!(asked.len(), n_pages);
        assert_eq!(asked[0], ListOptions { limit: NonZeroU32::new(10), ..options.clone() });
        for next in &asked[1..] {
            assert_eq!((&*next.resource_version, next.version_match), ("", None));
            assert_eq!((next.limit, &next.field_selector), (NonZeroU32::new(10), &options.field_selector));
            assert!(next.continue_token.is_some());
        }
    }
}

#[tokio::test]
async fn an_expired_later_page_leads_to_one_whole_list_pg_04() {
    let server = paged(11);
    server.serve_list();
    server.fail_list(errors::expired().into());
    let options = ListOptions {
        resource_version: "3".into(),
        version_match: Some(VersionMatch::NotOlderThan),
        ..ListOptions::default()
    };
    let listing = list(&server, pages_of(10), options.clone()).await.unwrap();
    assert_eq!((names(&listing.items), listing.is_paginated), (expected(11), true));
    assert_eq!(server.lists()[2], options, "as it was asked for, without a limit");

    // Its error is the error.
    let server = paged(11);
    server.serve_list();
    server.fail_list(errors::expired().into());
    server.fail_list(errors::internal().into());
    assert!(list(&server, pages_of(10), options.clone()).await.unwrap_err().is_internal());

    // The first page.
    let server = paged(11);
    server.fail_list(errors::expired().into());
    assert!(list(&server, pages_of(10), options.clone()).await.unwrap_err().is_expired());
    assert_eq!(server.lists().len(), 1);

    // Where it is to fail.
    let server = paged(11);
    server.serve_list();
    server.fail_list(errors::expired().into());
    let config = Config { on_expired: OnExpired::Fail, ..pages_of(10) };
    assert!(list(&server, config, options).await.unwrap_err().is_expired());
    assert_eq!(server.lists().len(), 2);
}

/// Returns what was looked at, and how it ended.
async fn each<E>(
    server: &FakeListWatch,
    token: &CancellationToken,
    mut look: impl AsyncFnMut(usize) -> Result<(), E>,
) -> (Vec<String>, Result<(), EachError<E>>) {
    let mut seen = Vec::new();
    let pager = Pager::new(server, pages_of(10));
    let result = pager
        .each_item(ListOptions::default(), token, async |item: Object| {
            seen.push(item.key().to_string());
            look(seen.len()).await
        })
        .await;
    (seen, result)
}

async fn all(_: usize) -> Result<(), Infallible> {
    Ok(())
}

// Conformance: A4.2
#[tokio::test]
async fn list_pager_each_list_item_pg_05() {
    let token = CancellationToken::new();
    for n_pods in [0, 9, 10, 11] {
        let (seen, result) = each(&paged(n_pods), &token, all).await;
        assert_eq!(seen, expected(n_pods));
        assert!(result.is_ok());
    }

    // The second page expires when the first has been seen.
    let server = paged(11);
    server.serve_list();
    server.fail_list(errors::expired().into());
    let (seen, result) = each(&server, &token, all).await;
    assert_eq!(seen, expected(10));
    assert!(matches!(result, Err(EachError::List(error)) if error.is_expired()));
    assert_eq!(server.lists().len(), 2, "no whole list");

    // An error at the third object.
    let (seen, result) =
        each(&paged(51), &token, async |nth| if nth == 3 { Err("enough") } else { Ok(()) }).await;
    assert_eq!(seen, expected(3));
    assert!(matches!(result, Err(EachError::Stopped("enough"))));

    // A panic at the third object.
    let n_seen = Arc::new(AtomicUsize::new(0));
    let server = paged(51);
    let look = async |nth| {
        n_seen.store(nth, Ordering::Relaxed);
        assert!(nth < 3, "the third is bad");
        Ok::<(), Infallible>(())
    };
    let panic = std::panic::AssertUnwindSafe(each(&server, &token, look)).catch_unwind().await;
    assert!(panic.is_err());
    assert_eq!(n_seen.load(Ordering::Relaxed), 3);

    // Cancelled at the third object: the page is seen to its end.
    let cancelled = CancellationToken::new();
    let look = async |nth| {
        if nth == 3 {
            cancelled.cancel();
        }
        Ok::<(), Infallible>(())
    };
    let (seen, result) = each(&paged(51), &cancelled, look).await;
    assert_eq!(seen, expected(10));
    assert!(matches!(result, Err(EachError::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn pages_are_fetched_ahead_up_to_the_buffer_pg_05() {
    let server = paged(100);
    let config = Config { n_buffered_pages: 3, ..pages_of(10) };
    let token = CancellationToken::new();
    let pager = Pager::new(&server, config);
    let mut n_pages = 0;
    pager
        .each_page(ListOptions::default(), &token, async |_| {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            n_pages += 1;
            // The one that is looked at, three that wait, and one that waits for its place.
            assert_eq!(server.lists().len(), (n_pages + 4).min(10));
            Ok::<(), Infallible>(())
        })
        .await
        .unwrap();
    assert_eq!(n_pages, 10);
}

/// As in client-go: the consumer has one page, the fetcher has another, and this many are buffered between
/// them.
#[tokio::test]
async fn the_pager_fetches_as_many_pages_ahead_as_client_go_pg_05() {
    for (n_buffered_pages, n_looked_at, n_fetched) in [
        (0, 1, 2),
        (0, 2, 3),
        (0, 4, 5),
        (0, 5, 5),
        (1, 1, 3),
        (1, 2, 4),
        (1, 5, 5),
        (10, 1, 5),
        (usize::MAX, 1, 5),
    ] {
        // Whether `look` waits for the fetching to come to rest, or never waits.
        for waits in [true, false] {
            let server = paged(50);
            let config = Config { n_buffered_pages, ..pages_of(10) };
            let mut n_pages = 0;
            let result = Pager::new(&server, config)
                .each_page(ListOptions::default(), &CancellationToken::new(), async |_| {
                    n_pages += 1;
                    for _ in 0..if waits { 100 } else { 0 } {
                        tokio::task::yield_now().await;
                    }
                    if n_pages == n_looked_at { Err("enough") } else { Ok(()) }
                })
                .await;
            assert!(matches!(result, Err(EachError::Stopped("enough"))));
            // A consumer that never waits lets the fetch run once per page, so the buffer may hold fewer
            // pages.
            let n_lists = server.lists().len();
            let is_right =
                if waits || n_buffered_pages == 0 { n_lists == n_fetched } else { n_lists <= n_fetched };
            assert!(
                is_right,
                "buffer {n_buffered_pages}, {n_looked_at} looked at, waits {waits}: {n_lists} fetched"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_item_is_cancelled_while_it_waits_for_a_page_pg_05() {
    let server = paged(11);
    server.serve_list();
    server.hang_list();
    let token = CancellationToken::new();
    let (each, ()) = tokio::join!(each(&server, &token, all), async {
        server.until_lists(2).await;
        token.cancel();
    });
    assert_eq!(each.0, expected(10));
    assert!(matches!(each.1, Err(EachError::Cancelled)));
}
