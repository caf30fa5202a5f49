//! Registries that do not behave: each has an error in bounded time, and what was fetched before stays.

use oarlock_component_source::{Error, Reason};

use super::{
    artifact::{MANIFEST, component, content, fetch, fetcher, loopback, oci, put, put_manifest},
    server::{Answer, Server},
};

/// Fetches from a registry that misbehaves: once without, and once with what was fetched before. Both have
/// the same error; returns it.
async fn misbehave(mut spoil: impl FnMut(&Server)) -> Error {
    let server = Server::start().await;
    let source = oci(&server, ":1");
    let dir = tempfile::tempdir().unwrap();
    let before = tempfile::tempdir().unwrap();
    let experienced = fetcher(before.path(), &loopback(&server));
    put(&server, "1", &component("one"));
    fetch(&experienced, &source).await.unwrap();

    put(&server, "1", &component("two"));
    spoil(&server);
    let error = fetch(&fetcher(dir.path(), &loopback(&server)), &source).await.unwrap_err();
    server.clock.resume();
    let left: Vec<_> = std::fs::read_dir(dir.path().join("cache/components")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    // The same host, and one that was started again.
    let restarted = fetcher(before.path(), &loopback(&server));
    for fetcher in [experienced, restarted] {
        let fetched = fetch(&fetcher, &source).await.unwrap();
        server.clock.resume();
        assert_eq!(content(&fetched), component("one"));
        let stale = fetched.stale.unwrap();
        assert_eq!(stale.reason(), error.reason(), "{stale}");
    }
    assert!(error.fix().is_some(), "{error}");
    error
}

async fn misbehave_with(answer: Answer) -> (Reason, String) {
    let mut address = String::new();
    let error = misbehave(|server| {
        address = server.address.to_string();
        server.answer_all(answer.clone());
    })
    .await;
    (error.reason(), error.to_string().replace(&address, "HOST"))
}

async fn misbehave_with_blob(answer: Answer) -> (Reason, String) {
    let mut address = String::new();
    let error = misbehave(|server| {
        address = server.address.to_string();
        let blobs: Vec<_> =
            server.answers.lock().keys().filter(|it| it.contains("/blobs/")).cloned().collect();
        for path in blobs {
            server.answer(&path, answer.clone());
        }
    })
    .await;
    (error.reason(), error.to_string().replace(&address, "HOST"))
}

#[tokio::test]
async fn a_registry_that_is_down_does_not_stop_what_was_fetched() {
    let mut server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    put(&server, "1", &component("one"));
    let source = oci(&server, ":1");
    fetch(&fetcher(dir.path(), &loopback(&server)), &source).await.unwrap();
    server.stop().await;
    let fetched = fetch(&fetcher(dir.path(), &loopback(&server)), &source).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
    let stale = fetched.stale.unwrap();
    assert_eq!(stale.reason(), Reason::Unavailable);
    assert!(stale.to_string().starts_with("no connection to 127.0.0.1: Connection refused"), "{stale}");
}

#[tokio::test]
async fn a_registry_that_does_not_answer_is_given_up() {
    let (reason, message) = misbehave_with(Answer::Never).await;
    assert_eq!(reason, Reason::Unavailable);
    insta::assert_snapshot!(message, @"HOST does not answer within 30 s");
}

#[tokio::test]
async fn a_download_that_stalls_is_given_up() {
    let (reason, message) = misbehave_with_blob(Answer::Stalls(component("two"))).await;
    assert_eq!(reason, Reason::Unavailable);
    insta::assert_snapshot!(message, @"HOST: no byte came within 30 s");
}

#[tokio::test]
async fn a_download_that_ends_early_is_an_error() {
    let (reason, _) = misbehave_with_blob(Answer::Closes(component("two"))).await;
    assert_eq!(reason, Reason::Unavailable);
}

#[tokio::test]
async fn other_bytes_than_the_digest_says_are_refused() {
    let lie = Answer::Full(200, Vec::new(), component("lie"));
    let (reason, message) = misbehave_with_blob(lie).await;
    assert_eq!(reason, Reason::DigestMismatch);
    assert!(message.starts_with("HOST answers with the digest sha256:"), "{message}");
}

#[tokio::test]
async fn a_manifest_with_another_digest_than_its_header_is_refused() {
    let error = misbehave(|server| {
        let digest = put(server, "1", &component("two"));
        let headers =
            vec![("content-type", MANIFEST.to_owned()), ("docker-content-digest", digest.to_string())];
        server.answer(
            "/v2/team/mirror/manifests/1",
            Answer::Full(200, headers, br#"{"schemaVersion":2}"#.to_vec()),
        );
    })
    .await;
    assert_eq!(error.reason(), Reason::DigestMismatch, "{error}");
}

#[tokio::test]
async fn ten_gigabytes_are_not_read() {
    let (reason, message) = misbehave_with_blob(Answer::Announces10Gb).await;
    assert_eq!(reason, Reason::DigestMismatch);
    insta::assert_snapshot!(message, @"HOST sends more than the 11 bytes that the manifest says");
    let (reason, message) = misbehave_with_blob(Answer::Endless).await;
    assert_eq!(reason, Reason::DigestMismatch);
    insta::assert_snapshot!(message, @"HOST sends more than the 11 bytes that the manifest says");
    let (reason, message) = misbehave_with(Answer::Endless).await;
    assert_eq!(reason, Reason::Unavailable);
    insta::assert_snapshot!(message, @"HOST answers with more than 4194304 bytes");
}

#[tokio::test]
async fn an_artifact_beyond_the_bound_is_not_requested() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    put(&server, "1", &component(&"x".repeat(100)));
    let policy = loopback(&server) + "maxBytes: 100\n";
    let error = fetch(&fetcher(dir.path(), &policy), &oci(&server, ":1")).await.unwrap_err();
    assert_eq!(error.reason(), Reason::TooLarge);
    assert_eq!(server.requests(), ["GET /v2/team/mirror/manifests/1"]);
}

#[tokio::test]
async fn a_page_for_people_is_recognised() {
    let html = |headers| Answer::Full(200, headers, b"<!doctype html><title>Log in</title>".to_vec());
    let typed = html(vec![("content-type", "text/html; charset=utf-8".to_owned())]);
    let (reason, message) = misbehave_with(typed).await;
    assert_eq!(reason, Reason::Unavailable);
    insta::assert_snapshot!(message, @"HOST answers with an HTML page, not like a registry");
    let (_, untyped) = misbehave_with(html(Vec::new())).await;
    assert_eq!(untyped, message);
}

#[tokio::test]
async fn what_the_registry_says_is_part_of_the_error() {
    let said = br#"{"errors":[{"code":"DENIED","message":"quota\nexceeded"}]}"#.to_vec();
    for (status, reason) in [
        (401, Reason::Forbidden),
        (403, Reason::Forbidden),
        (404, Reason::NotFound),
        (429, Reason::Unavailable),
        (500, Reason::Unavailable),
    ] {
        let answer = Answer::Full(status, Vec::new(), said.clone());
        let (found, message) = misbehave_with(answer).await;
        assert_eq!(found, reason, "{status}");
        assert!(message.ends_with(": quotaexceeded"), "{message}");
    }
}

#[tokio::test]
async fn a_redirect_without_an_end_is_given_up() {
    let around = Answer::Full(302, vec![("location", "/again".to_owned())], Vec::new());
    let (reason, message) = misbehave_with(around).await;
    assert_eq!(reason, Reason::Unavailable);
    insta::assert_snapshot!(message, @"more than 5 redirects, the last one from HOST");
}

#[tokio::test]
async fn a_container_image_is_no_component() {
    let error = misbehave(|server| {
        let image = r#"{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:00","size":1}]}"#;
        put_manifest(server, "1", image.as_bytes(), MANIFEST);
    })
    .await;
    assert_eq!(error.reason(), Reason::NotAComponent);
}
