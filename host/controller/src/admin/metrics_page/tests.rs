use std::time::Duration;

use axum::Router;
use axum::body::BodyDataStream;
use axum::http::Request;
use futures::StreamExt;
use oarlock_plugin::contract::Entry;
use oarlock_plugin::guest::HostBytes;
use tokio::time::Instant;
use tower::ServiceExt;

use super::super::turns::{PATIENCE, READ_LIMIT, RETRY_AFTER};
use super::*;

/// Returns the page of a host with a plugin whose series take several pieces.
fn page() -> Router {
    let admin = crate::admin::tests::admin();
    let guest = admin.metrics.guest(&"p".into(), &HostBytes::default());
    for n in 0..256 {
        let labels = vec![Entry { name: "label".to_owned(), value: "x".repeat(256) }];
        guest.gauge_set(&format!("g{n}"), 1.0, labels).unwrap();
    }
    Router::new().route("/metrics", route(&admin.metrics, &admin.tasks))
}

async fn ask(page: &Router) -> Response {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    page.clone().oneshot(request).await.unwrap()
}

/// Returns the length of the page that the client reads.
async fn length(mut page: BodyDataStream) -> Result<usize, axum::Error> {
    let mut length = 0;
    while let Some(piece) = page.next().await {
        length += piece?.len();
    }
    Ok(length)
}

#[tokio::test(start_paused = true)]
async fn promise_4_one_page_of_metrics_is_held_at_a_time() {
    let page = page();
    let first = ask(&page).await;
    assert_eq!(first.status(), 200);
    // The next one waits until the first one is read.
    let expected: usize = first.headers()[header::CONTENT_LENGTH].to_str().unwrap().parse().unwrap();
    let second = async { (ask(&page).await, Instant::now()) };
    let read = async {
        tokio::time::sleep(PATIENCE / 2).await;
        (length(first.into_body().into_data_stream()).await.unwrap(), Instant::now())
    };
    let ((second, answered_at), (length, read_at)) = tokio::join!(second, read);
    assert!(second.status() == 200 && answered_at >= read_at);
    assert!(length == expected && length > 65_536, "{length} bytes, {expected} expected");
    // The second one is not read. One of two that wait gets its turn in time.
    let began = Instant::now();
    let answer = async || {
        let answer = ask(&page).await;
        (answer, began.elapsed())
    };
    let ((third, after), (refused, refused_after)) = tokio::join!(answer(), answer());
    assert_eq!((third.status().as_u16(), after), (200, READ_LIMIT));
    assert_eq!((refused.status().as_u16(), refused_after), (503, PATIENCE));
    assert_eq!(refused.headers()[header::RETRY_AFTER], RETRY_AFTER);
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_client_that_does_not_read_its_page_loses_it() {
    let page = page();
    let mut slow = ask(&page).await.into_body().into_data_stream();
    slow.next().await.unwrap().unwrap();
    let began = Instant::now();
    let next = ask(&page).await;
    assert_eq!((next.status().as_u16(), began.elapsed()), (200, READ_LIMIT));
    length(slow).await.expect_err("a page that ends in the middle is an error");
    length(next.into_body().into_data_stream()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_makes_room() {
    let page = page();
    drop(ask(&page).await);
    let began = Instant::now();
    assert_eq!((ask(&page).await.status().as_u16(), began.elapsed()), (200, Duration::ZERO));
}
