//! Registries that behave.

use futures::future::Either;
use oarlock_component_source::{Digest, Reason, Source, Verified};

use super::{
    artifact::{Secret, Tenant, blob, component, content, fetch, fetcher, loopback, oci, put, put_manifest},
    server::{Answer, Server},
};

#[tokio::test]
async fn an_unchanged_tag_costs_one_small_request() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(dir.path(), &loopback(&server));
    let manifest = put(&server, "1", &component("one"));
    let source = oci(&server, ":1");

    let fetched = fetch(&fetcher, &source).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
    assert_eq!((fetched.resolved, &fetched.verified), (Some(manifest), &Verified::NotRequired));
    assert_eq!(server.requests().len(), 2, "manifest and blob");

    let again = fetch(&fetcher, &source).await.unwrap();
    assert_eq!(again.component.path(), fetched.component.path());
    assert_eq!(server.requests(), ["HEAD /v2/team/mirror/manifests/1"]);

    put(&server, "1", &component("two"));
    let moved = fetch(&fetcher, &source).await.unwrap();
    assert_eq!(content(&moved), component("two"));
    assert!(moved.stale.is_none());
    assert!(fetched.component.path().exists(), "the version before is in use");
}

#[tokio::test]
async fn a_digest_is_asked_for_once_and_survives_a_restart() {
    let mut server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let manifest = put(&server, "1", &component("one"));
    let source = oci(&server, &format!(":1@{manifest}"));
    fetch(&fetcher(dir.path(), &loopback(&server)), &source).await.unwrap();
    server.requests();

    let restarted = fetcher(dir.path(), &loopback(&server));
    server.stop().await;
    let fetched = fetch(&restarted, &source).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
    assert!(fetched.stale.is_none(), "a digest cannot become stale");
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test]
async fn the_manifest_for_wasm_is_taken_from_an_index() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let manifest = put(&server, "only-wasm", &component("one"));
    let other = put(&server, "other", &component("two"));
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"digest":"{other}","size":1,"platform":{{"architecture":"amd64","os":"linux"}}}},{{"digest":"{manifest}","size":1,"platform":{{"architecture":"wasm","os":"wasip2"}}}}]}}"#
    );
    let index = put_manifest(&server, "1", index.as_bytes(), "application/vnd.oci.image.index.v1+json");
    let fetched = fetch(&fetcher(dir.path(), &loopback(&server)), &oci(&server, ":1")).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
    assert_eq!(fetched.resolved, Some(index), "what the tag names");
}

#[tokio::test]
async fn concurrent_plugins_download_a_component_once() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(dir.path(), &loopback(&server));
    put(&server, "1", &component("one"));
    let source = oci(&server, ":1");
    let fetches = (0..20).map(|_| fetch(&fetcher, &source));
    for fetched in futures::future::join_all(fetches).await {
        assert_eq!(content(&fetched.unwrap()), component("one"));
    }
    let blobs = server.requests().iter().filter(|it| it.contains("/blobs/")).count();
    assert_eq!(blobs, 1);
}

#[tokio::test]
async fn promise_4_slow_downloads_of_one_tenant_do_not_hold_up_another() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(dir.path(), &loopback(&server));
    for tag in ["a", "b"] {
        let late = Digest::of(&component(tag));
        put(&server, tag, &component(tag));
        server.answer(&format!("/v2/team/mirror/blobs/{late}"), Answer::Late);
    }
    put(&server, "shared", &component("one"));
    let [a, b, shared] = [":a", ":b", ":shared"].map(|name| oci(&server, name));
    let until_requested = async |what: &str, n_times: usize| {
        let mut n_seen = 0;
        while n_seen < n_times {
            tokio::task::yield_now().await;
            n_seen += server.requests().iter().filter(|it| it.contains(what)).count();
        }
    };
    let late = futures::future::join(fetcher.fetch(&a, &Tenant("slow")), fetcher.fetch(&b, &Tenant("slow")));
    let others = async {
        until_requested("/blobs/", 2).await;
        // The slow tenant's third source waits for its turn.
        let third = fetcher.fetch(&shared, &Tenant("slow"));
        let other = async {
            until_requested("/manifests/shared", 1).await;
            fetcher.fetch(&shared, &Tenant("other")).await
        };
        match futures::future::select(std::pin::pin!(third), std::pin::pin!(other)).await {
            Either::Left(_) => panic!("the third download had no turn"),
            Either::Right((fetched, _)) => fetched,
        }
    };
    tokio::select! {
        _ = late => panic!("nothing ends the downloads"),
        fetched = others => assert_eq!(content(&fetched.unwrap()), component("one")),
    }
}

#[tokio::test]
async fn a_pull_secret_gets_a_token_and_the_cache_belongs_to_it() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(dir.path(), &loopback(&server));
    let manifest = put(&server, "1", &component("one"));
    // The token server asks for user and password, the registry for the token.
    let challenge: &'static str =
        format!(r#"Bearer realm="http://{}/token",service="registry""#, server.address).leak();
    let answers: Vec<_> = server.answers.lock().drain().collect();
    for (path, answer) in answers {
        server.answer(&path, Answer::Authorized(challenge, "Bearer t0ken".to_owned(), Box::new(answer)));
    }
    let token = Answer::Full(200, Vec::new(), br#"{"token":"t0ken","expires_in":300}"#.to_vec());
    let path = "/token?service=registry&scope=repository%3Ateam%2Fmirror%3Apull";
    server.answer(path, Answer::Authorized("Basic", "Basic dXNlcjpwYXNz".to_owned(), Box::new(token)));

    let mut source = oci(&server, &format!("@{manifest}"));
    let anonymous = fetch(&fetcher, &source).await.unwrap_err();
    assert_eq!(anonymous.reason(), Reason::Forbidden);

    source.oci.as_mut().unwrap().pull_secret_name = Some("registry".to_owned());
    let secret = |user: &str| {
        let auth =
            format!(r#"{{"auths":{{"{}":{{"username":"{user}","password":"pass"}}}}}}"#, server.address);
        Secret(auth.into_bytes())
    };
    let fetched = fetcher.fetch(&source, &secret("user")).await.unwrap();
    assert_eq!(content(&fetched), component("one"));

    // The component is in the cache now. Without the credentials the registry decides, not the cache.
    let anonymous = Source { oci: oci(&server, &format!("@{manifest}")).oci, ..Source::default() };
    assert_eq!(fetch(&fetcher, &anonymous).await.unwrap_err().reason(), Reason::Forbidden);
    assert_eq!(fetcher.fetch(&source, &secret("other")).await.unwrap_err().reason(), Reason::Forbidden);
    let unreadable = fetch(&fetcher, &source).await.unwrap_err();
    assert_eq!(unreadable.to_string(), "pull secret registry may not be read: no right");
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_host() {
    let (server, elsewhere) = (Server::start().await, Server::start().await);
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "privateAddresses: [127.0.0.0/8]\nplainHttp: ['{}', '{}']\n",
        server.address, elsewhere.address
    );
    let fetcher = fetcher(dir.path(), &policy);
    put(&server, "1", &component("one"));
    let digest = blob(&elsewhere, &component("one"));
    let answers: Vec<_> = server.answers.lock().drain().collect();
    for (path, answer) in answers {
        let answer = if path.contains("/blobs/") {
            let target = format!("http://{}/v2/team/mirror/blobs/{digest}", elsewhere.address);
            Answer::Full(307, vec![("location", target)], Vec::new())
        } else {
            answer
        };
        server.answer(&path, Answer::Authorized("Basic", "Basic dXNlcjpwYXNz".to_owned(), Box::new(answer)));
    }
    let mut source = oci(&server, ":1");
    source.oci.as_mut().unwrap().pull_secret_name = Some("registry".to_owned());
    let secret = format!(r#"{{"auths":{{"{}":{{"auth":"dXNlcjpwYXNz"}}}}}}"#, server.address);
    let fetched = fetcher.fetch(&source, &Secret(secret.into_bytes())).await.unwrap();
    assert_eq!(content(&fetched), component("one"));
    assert_eq!(elsewhere.requests().len(), 1);
    assert_eq!(*elsewhere.authorizations.lock(), [""; 0]);
}

#[tokio::test]
async fn a_mirror_is_asked_first_and_the_registry_if_it_fails() {
    let (registry, mirror) = (Server::start().await, Server::start().await);
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "privateAddresses: [127.0.0.0/8]
plainHttp: ['{registry}', '{mirror}']
mirrors: [{{registry: '{registry}', endpoints: ['{mirror}']}}]
",
        registry = registry.address,
        mirror = mirror.address
    );
    let fetcher = fetcher(dir.path(), &policy);
    put(&registry, "1", &component("one"));
    put(&mirror, "1", &component("one"));
    let source = oci(&registry, ":1");
    fetch(&fetcher, &source).await.unwrap();
    assert_eq!(registry.requests(), [""; 0], "the mirror has it");

    mirror.answer_all(Answer::Full(503, Vec::new(), Vec::new()));
    put(&registry, "1", &component("two"));
    let fetched = fetch(&fetcher, &source).await.unwrap();
    assert_eq!(content(&fetched), component("two"));
    assert!(fetched.stale.is_none());
}

#[tokio::test]
async fn what_the_policy_does_not_allow_is_not_asked() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    put(&server, "1", &component("one"));
    let source = oci(&server, ":1");
    let refusal = async |policy: &str| {
        let error = fetch(&fetcher(dir.path(), policy), &source).await.unwrap_err();
        assert_eq!(error.reason(), Reason::NotAllowed);
        error.to_string().replace(&server.address.to_string(), "HOST")
    };
    let listed = format!("plainHttp: ['{}']\n", server.address);
    insta::assert_snapshot!(refusal("allow: [ghcr.io/*]").await, @"the policy of this host does not allow HOST/team/mirror");
    insta::assert_snapshot!(refusal("kinds: [https]").await, @"the policy of this host allows no oci sources");
    insta::assert_snapshot!(refusal(&listed).await, @"127.0.0.1 has the address 127.0.0.1, which is not public");
    assert_eq!(server.requests(), [""; 0]);

    // What was allowed once and is in the cache is not allowed for ever.
    fetch(&fetcher(dir.path(), &loopback(&server)), &source).await.unwrap();
    refusal("allow: [ghcr.io/*]").await;
}
