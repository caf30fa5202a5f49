//! Requests to, and answers of, a server that is a function, with the body cut into chunks of all sizes.

use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::StreamBody;

mod undecodable;

use super::*;
use crate::list_watch::{Bookmark, DecodeError, Status};
use crate::object::Object;

type Chunk = Result<http_body::Frame<Bytes>, io::Error>;
type Requests = Arc<Mutex<Vec<Request<Body>>>>;

/// Returns a source whose server answers every request with this body, in chunks of this size.
fn serving(status: u16, body: &str, chunk_size: usize) -> (ApiListWatch, Requests) {
    let chunks: Vec<Bytes> = body.as_bytes().chunks(chunk_size).map(Bytes::copy_from_slice).collect();
    serving_with(status, None, move || {
        futures::stream::iter(chunks.clone()).map(|chunk| Ok(http_body::Frame::data(chunk)))
    })
}

fn serving_with<S>(
    status: u16,
    header: Option<(&'static str, &'static str)>,
    body: impl Fn() -> S + Clone + Send + 'static,
) -> (ApiListWatch, Requests)
where
    S: Stream<Item = Chunk> + Send + 'static,
{
    let requests = Requests::default();
    let seen = requests.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request);
        let mut response = Response::new(StreamBody::new(body()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        async { Ok::<_, Infallible>(response) }
    });
    (ApiListWatch::new(kube::Client::new(service, "default"), pods()), requests)
}

fn pods() -> Config {
    Config::new(GroupVersionResource::new("", "v1", "pods"), Some(TypeMeta::new("v1", "Pod")))
}

fn watch_options() -> WatchOptions {
    WatchOptions {
        resource_version: "7".into(),
        timeout: Duration::from_millis(301_900),
        allow_bookmarks: true,
        ..WatchOptions::default()
    }
}

async fn list_page(server: &ApiListWatch, options: ListOptions) -> Result<ListPage, ApiError> {
    server.list(options, &|item| item).await
}

async fn watch(server: &ApiListWatch) -> Vec<Result<WatchEvent, ApiError>> {
    server.watch(watch_options()).await.unwrap().collect().await
}

fn texts(items: &[Object]) -> Vec<String> {
    items.iter().map(|item| item.json().to_string()).collect()
}

const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12","continue":"to,k/en"},"items":[
  {"metadata":{"name":"a","namespace":"x","uid":"1","resourceVersion":"3","managedFields":[{"a":"]},{"}]},"spec":{"items":[1,{"items":[2]}],"s":"\"]}\\"}},
  {"metadata":{"name":"b","namespace":"x","uid":"2","resourceVersion":"4"}} ]}
"#;

#[tokio::test]
async fn a_page_decodes_the_same_for_all_chunk_sizes() {
    for chunk_size in [1, 2, 3, 7, 64, 1000] {
        let (server, _) = serving(200, LIST, chunk_size);
        let page = list_page(&server, ListOptions::default()).await.unwrap();
        assert_eq!(page.resource_version, "12");
        assert_eq!(page.continue_token.as_deref(), Some("to,k/en"));
        assert_eq!(
            texts(&page.items),
            [
                r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"x","uid":"1","resourceVersion":"3"},"spec":{"items":[1,{"items":[2]}],"s":"\"]}\\"}}"#,
                r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"x","uid":"2","resourceVersion":"4"}}"#,
            ]
        );
    }
}

#[tokio::test]
async fn items_keep_their_own_type_rl_73() {
    let list = r#"{"apiVersion":"e.io/v1","items":[{"apiVersion":"e.io/v1","kind":"Thing","metadata":{"name":"a"}}],"kind":"ThingList","metadata":{"resourceVersion":"9"}}"#;
    let (server, _) = serving(200, list, 5);
    let page = list_page(&server, ListOptions::default()).await.unwrap();
    assert_eq!(page.items[0].type_meta(), &TypeMeta::new("e.io/v1", "Thing"));
    assert_eq!(page.resource_version, "9");
}

#[tokio::test]
async fn the_item_hook_replaces_items_rl_71() {
    let (server, _) = serving(200, LIST, 100);
    let replacement =
        Object::parse(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"other"}}"#, None).unwrap();
    let hook = |item: Object| if item.key().name() == "a" { replacement.clone() } else { item };
    let page = server.list(ListOptions::default(), &hook).await.unwrap();
    assert!(page.items[0].is_same(&replacement));
    assert_eq!(page.items[1].key().name(), "b");
}

#[tokio::test]
async fn an_empty_list_decodes_rl_29() {
    for items in ["[]", "null", "[ \n]"] {
        let list = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"5"}},"items":{items}}}"#
        );
        let (server, _) = serving(200, &list, 10);
        let page = list_page(&server, ListOptions::default()).await.unwrap();
        assert_eq!(
            (page.items.len(), &*page.resource_version, page.continue_token),
            (0, "5", None),
            "{items}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_not_a_list_is_an_error_and_not_an_empty_list() {
    let cases = [
        ("", "malformed list"),
        ("{}", "unsupported list gvk: , Kind="),
        ("<html>", "malformed list"),
        ("[]", "malformed list"),
        (r#"{"kind":"PodList","apiVersion":"v1","metadata":{}}"#, "unsupported list gvk: v1, Kind=PodList"),
        (r#"{"kind":"PodList","apiVersion":"v1","items":{}}"#, "unsupported list gvk: v1, Kind=PodList"),
        (r#"{"kind":"PodList","apiVersion":"v1","items":[]"#, "malformed list"),
        (r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}"#, "malformed list"),
        (
            r#"{"kind":"PodList","apiVersion":"v1","it\u0065ms":[{"metadata":{"name":"a"}}]}"#,
            "unsupported list gvk: v1, Kind=PodList",
        ),
        (r#"{"kind":"PodList","items":[],"items":[]}"#, "malformed list"),
        (r#"{"kind":"PodList","apiVersion":"v1","items":[1]}"#, "bad object in the answer"),
        (
            r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}} {"metadata":{"name":"b"}}]}"#,
            "malformed list",
        ),
        (
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[]}"#,
            "unsupported list gvk: meta.k8s.io/v1, Kind=Table",
        ),
    ];
    for (body, expected) in cases {
        let (server, _) = serving(200, body, 8);
        let error = list_page(&server, ListOptions::default()).await.unwrap_err();
        let ApiError::Decode(error) = error else { panic!("{body}: {error:?}") };
        assert_eq!(error.to_string(), expected, "{body}");
    }
}

#[tokio::test]
async fn objects_and_events_beyond_the_limit_are_not_decoded() {
    let long = "x".repeat(2000);
    let list =
        format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{{"metadata":{{"name":"{long}"}}}}]}}"#);
    let (mut server, _) = serving(200, &list, 100);
    Arc::get_mut(&mut server.config).unwrap().max_object_bytes = 1000;
    let page = list_page(&server, ListOptions::default()).await.unwrap();
    let [left_out] = &page.undecodable[..] else { panic!("{page:?}") };
    assert!(matches!(*left_out.error, DecodeError::TooLong { limit: 1000, .. }), "{left_out:?}");

    for end in ["", "\n"] {
        let (mut server, _) = serving(200, &format!("{long}{end}"), 100);
        Arc::get_mut(&mut server.config).unwrap().max_object_bytes = 1000;
        let events = watch(&server).await;
        assert_eq!(events.len(), 1);
        assert!(matches!(events[0], Err(ApiError::Decode(DecodeError::TooLong { limit: 1000, .. }))));
    }
}

const WATCH: &str = r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"8","managedFields":[]}}}

{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"9"},"s":"\n"}}
{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"10"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"11","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null}}}
{"type":"UNHEARD","object":{"metadata":{"resourceVersion":"12"}}}
{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}
"#;

#[tokio::test]
async fn a_watch_decodes_the_same_for_all_chunk_sizes() {
    for chunk_size in [1, 2, 3, 50, 10_000] {
        let (server, _) = serving(200, WATCH, chunk_size);
        let events: Vec<WatchEvent> = watch(&server).await.into_iter().map(Result::unwrap).collect();
        let [
            WatchEvent::Added(added),
            WatchEvent::Modified(modified),
            WatchEvent::Deleted(deleted),
            WatchEvent::Bookmark(bookmark),
            WatchEvent::Unknown { event_type, resource_version },
            WatchEvent::Error(status),
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(
            &*added.json(),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"8"}}"#
        );
        assert_eq!(modified.pointer(&"/s".parse().unwrap()).as_deref(), Some(r#""\n""#));
        assert_eq!(deleted.resource_version(), "10");
        let expected = Bookmark {
            resource_version: "11".into(),
            type_meta: Some(TypeMeta::new("v1", "Pod")),
            is_initial_events_end: true,
        };
        assert_eq!(bookmark, &expected);
        assert_eq!((&**event_type, resource_version.as_deref()), ("UNHEARD", Some("12")));
        assert!(status.is_expired());
    }
}

// Conformance: B.1, G.47
#[tokio::test]
async fn a_watch_that_ends_within_an_event_is_closed_and_garbage_is_an_error_wt_02() {
    let cut = &WATCH[..WATCH.find("DELETED").unwrap()];
    let (server, _) = serving(200, cut, 9);
    let events = watch(&server).await;
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(Result::is_ok));

    // The last event needs no newline.
    let (server, _) = serving(200, WATCH.lines().next().unwrap(), 9);
    assert_eq!(watch(&server).await.len(), 1);

    for line in [
        "<html>",
        "{}",
        "null",
        r#"{"type":1}"#,
        r#"{"type":"ADDED"}"#,
        r#"{"type":"BOOKMARK","object":{}}"#,
        r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#,
        r#"{"type":"ERROR","object":[]}"#,
    ] {
        let (server, _) = serving(200, &format!("{line}\n{WATCH}"), 100);
        let events = watch(&server).await;
        assert!(matches!(events[..], [Err(ApiError::Decode(_))]), "{line}: {events:?}");
    }
}

#[test]
fn a_watch_line_decodes_in_every_spelling_of_its_json() {
    let object = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"}"}}"#;
    for line in [
        format!(r#"{{"type":"ADDED","object":{object}}}"#),
        format!("{{\"type\":\"ADDED\",\"object\": {object} }}\r"),
        format!(r#" {{ "object" : {object}, "type" : "ADDED" }}"#),
        format!(r#"{{"type":"ADDED","object":{object},"extra":{{}}}}"#),
        format!(r#"{{"type":"\u0041DDED","object":{object}}}"#),
    ] {
        let event = event::decode(line.as_bytes(), &pods(), None);
        assert!(
            matches!(&event, Ok(WatchEvent::Added(added)) if &*added.json() == object),
            "{line}: {event:?}"
        );
    }
    for line in [
        format!(r#"{{"type":"ADDED","object":{object}"#),
        format!(r#"{{"type":"ADDED","object":{object}}}}}"#),
        format!(r#"{{"type":"ADDED","object":{object}}}{{}}"#),
    ] {
        assert!(event::decode(line.as_bytes(), &pods(), None).is_err(), "{line}");
    }
}

#[tokio::test]
async fn an_object_of_another_type_does_not_end_the_watch_rl_55() {
    for object in [
        "{}",
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#,
        r#"{"metadata":{}}"#,
        // Not decodable either, but of another type.
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{"name":"t","labels":1}}"#,
        r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","labels":{"n":1}}}"#,
    ] {
        let text = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n{WATCH}");
        let (server, _) = serving(200, &text, 100);
        let events = watch(&server).await;
        assert!(
            matches!(events[..], [Ok(WatchEvent::Rejected(_)), Ok(WatchEvent::Added(_)), ..]),
            "{object}: {events:?}"
        );
    }
}

#[tokio::test]
async fn a_broken_connection_is_the_last_item_of_a_watch() {
    let (server, _) = serving_with(200, None, || {
        let line = WATCH.lines().next().unwrap();
        let data = Ok(http_body::Frame::data(Bytes::from(format!("{line}\n"))));
        futures::stream::iter([data, Err(io::Error::from(io::ErrorKind::ConnectionReset))])
    });
    let events = watch(&server).await;
    assert!(matches!(events[..], [Ok(WatchEvent::Added(_)), Err(ApiError::Transport(_))]), "{events:?}");
}

proptest::proptest! {
    // Conformance: B.5
    #[test]
    fn a_page_decodes_as_by_a_parser_of_the_whole_text(
        items in proptest::collection::vec(r#"[a-z\[\]{}",: ]{0,8}"#, 0..5),
        chunk_size in 1..40_usize,
        is_pretty in proptest::bool::ANY,
    ) {
        let items: Vec<serde_json::Value> = items
            .iter()
            .map(|text| serde_json::json!({ "metadata": { "name": "a" }, text: [text, { "items": [text] }] }))
            .collect();
        let list = serde_json::json!({ "kind": "PodList", "apiVersion": "v1", "x": ["items"], "items": items, "metadata": {} });
        let text = if is_pretty { format!("{list:#}") } else { list.to_string() };
        let config = pods();
        let mut decoder = PageDecoder::new(&config, &|item| item);
        for chunk in text.as_bytes().chunks(chunk_size) {
            decoder.push(chunk).unwrap();
        }
        let page = decoder.finish().unwrap();
        let mut expected = items.clone();
        for item in &mut expected {
            item["kind"] = "Pod".into();
            item["apiVersion"] = "v1".into();
        }
        let actual: Vec<serde_json::Value> =
            page.items.iter().map(|item| serde_json::from_str(&item.json()).unwrap()).collect();
        proptest::prop_assert_eq!(actual, expected);
    }

    #[test]
    fn garbage_never_panics(
        text in r#"(\{|\}|\[|\]|"items"|"metadata"|"type":|"object":|"ADDED"|"name":|:|,|"a"|\\|"|null| |é){0,24}"#,
        chunk_size in 1..40_usize,
    ) {
        let config = pods();
        let mut decoder = PageDecoder::new(&config, &|item| item);
        if text.as_bytes().chunks(chunk_size).try_for_each(|chunk| decoder.push(chunk)).is_ok() {
            let _ = decoder.finish();
        }
        let _ = event::decode(text.as_bytes(), &config, None);
        let _ = answer::status_of(500, &http::HeaderMap::new(), text.as_bytes());
    }
}

#[tokio::test]
async fn requests_carry_the_options() {
    let (server, requests) = serving(200, LIST, 1000);
    let options = ListOptions {
        resource_version: "0".into(),
        limit: std::num::NonZeroU32::new(500),
        ..ListOptions::default()
    };
    list_page(&server, options).await.unwrap();
    let next = ListOptions { continue_token: Some("a b+c/d=".into()), ..ListOptions::default() };
    list_page(&server, next).await.unwrap();
    let _ = watch(&server).await;
    let uris: Vec<String> =
        requests.lock().unwrap().iter().map(|request| request.uri().to_string()).collect();
    insta::assert_snapshot!(uris.join("\n"), @r"
    /api/v1/pods?resourceVersion=0&limit=500
    /api/v1/pods?continue=a%20b%2Bc%2Fd%3D
    /api/v1/pods?watch=true&resourceVersion=7&timeoutSeconds=301&allowWatchBookmarks=true
    ");
    for request in requests.lock().unwrap().iter() {
        assert_eq!(request.headers()["accept"], "application/json");
        assert_eq!(request.headers()["accept-encoding"], "identity");
    }

    let config = Config {
        namespace: Some("team-a".into()),
        label_selector: "app=web,tier in (a,b)".parse().unwrap(),
        field_selector: "spec.nodeName=n".into(),
        ..Config::new(GroupVersionResource::new("apps", "v1", "deploy/../ments"), None)
    };
    let uri = request::list(&config, &ListOptions::default());
    insta::assert_snapshot!(uri, @"/apis/apps/v1/namespaces/team-a/deploy%2F..%2Fments?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn");
    // FA-05: the selectors of the options are added to those of the source.
    let options = WatchOptions {
        label_selector: "!legacy".parse().unwrap(),
        field_selector: "metadata.name=a".into(),
        ..WatchOptions::default()
    };
    let uri = request::watch(&config, &options);
    insta::assert_snapshot!(uri, @"/apis/apps/v1/namespaces/team-a/deploy%2F..%2Fments?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29%2C%21legacy&fieldSelector=spec.nodeName%3Dn%2Cmetadata.name%3Da&watch=true&timeoutSeconds=0");
}

#[tokio::test]
async fn failures_carry_the_servers_status() {
    let failure = |code: u16, header: Option<(&'static str, &'static str)>, body: &'static str| async move {
        let (server, _) = serving_with(code, header, move || {
            futures::stream::iter([Ok(http_body::Frame::data(Bytes::from_static(body.as_bytes())))])
        });
        match list_page(&server, ListOptions::default()).await.unwrap_err() {
            ApiError::Status(status) => status,
            error => panic!("{error:?}"),
        }
    };
    let body = r#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"slow down","details":{"retryAfterSeconds":3,"causes":[{"reason":"R","message":"m","field":"f"}]}}"#;
    let status = failure(429, None, body).await;
    assert_eq!((status.retry_after, status.causes[0].reason.as_str()), (Some(Duration::from_secs(3)), "R"));
    let status = failure(429, Some(("retry-after", "9")), body).await;
    assert_eq!(status.retry_after, Some(Duration::from_secs(9)));
    let status =
        failure(503, Some(("retry-after", "Fri, 20 Nov 2026 09:00:00 GMT")), "upstream\n  is down").await;
    assert_eq!(status, Status { code: 503, message: "upstream is down".into(), ..Status::default() });
    let status = failure(404, None, "404 page not found").await;
    assert!(ApiError::from(status.clone()).is_not_found());
    insta::assert_snapshot!(status, @"404 page not found (404)");
    // Without a status in the body, the HTTP code counts.
    assert!(failure(410, None, "").await.is_expired());
    assert!(failure(403, None, r#"{"code":403,"reason":"Forbidden"}"#).await.code == 403);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_times_out() {
    let service =
        tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    let server = ApiListWatch::new(kube::Client::new(service, "default"), pods());
    let error = list_page(&server, ListOptions::default()).await.unwrap_err();
    assert!(matches!(error, ApiError::Transport(_)) && !error.is_retriable_in_place());

    let (server, _) = serving_with(200, None, || {
        futures::stream::iter([Ok(http_body::Frame::data(Bytes::from_static(b"{")))])
            .chain(futures::stream::pending())
    });
    let error = list_page(&server, ListOptions::default()).await.unwrap_err();
    assert!(matches!(error, ApiError::Transport(_)));
}

#[tokio::test]
async fn a_refused_connection_is_retriable_rl_32() {
    // Bound and dropped, so the port refuses connections.
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let server = ApiListWatch::new(kube::Client::try_from(config).unwrap(), pods());
    let error = list_page(&server, ListOptions::default()).await.unwrap_err();
    assert!(error.is_retriable_in_place(), "{error:?}");
}

/// The same Pod from a server that supports metadata-only answers, and from one that does not.
const PARTIAL: &str = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"3","managedFields":[{}]}}"#;
const WHOLE: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"3","managedFields":[{}]},"spec":{"nodeName":"n"}}"#;

#[tokio::test]
async fn metadata_only_objects_are_equal_for_all_forms_of_the_answer() {
    let expected = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"3"}}"#;
    let bare = r#"{"metadata":{"name":"a","resourceVersion":"3"},"spec":{"nodeName":"n"}}"#;
    for (kind, api_version, item) in [
        ("PartialObjectMetadataList", "meta.k8s.io/v1", PARTIAL),
        ("PodList", "v1", WHOLE),
        ("PodList", "v1", bare),
    ] {
        let body = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"9"}},"items":[{item}]}}"#
        );
        let (server, requests) = serving(200, &body, 1000);
        let server = metadata_of(server);
        let page = list_page(&server, ListOptions::default()).await.unwrap();
        assert_eq!(texts(&page.items), [expected], "from {item}");
        assert_eq!(page.resource_version, "9");
        insta::allow_duplicates! {
            insta::assert_snapshot!(accepts(&requests), @"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
        }
    }
    for item in [PARTIAL, WHOLE] {
        let (server, requests) =
            serving(200, &format!("{{\"type\":\"MODIFIED\",\"object\":{item}}}\n"), 1000);
        let events = watch(&metadata_of(server)).await;
        let [Ok(WatchEvent::Modified(object))] = &events[..] else { panic!("{events:?}") };
        assert_eq!(&*object.json(), expected);
        assert_eq!(object.type_meta(), &TypeMeta::new("v1", "Pod"));
        insta::allow_duplicates! {
            insta::assert_snapshot!(accepts(&requests), @"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
        }
    }
}

#[tokio::test]
async fn metadata_only_objects_of_an_unknown_type_keep_that_of_the_answer_gi_01() {
    let of_unknown_type = |server: ApiListWatch| {
        let config = Config { type_meta: None, content: Content::Metadata, ..pods() };
        ApiListWatch::new(server.client, config)
    };
    let expected = PARTIAL.replace(r#","managedFields":[{}]"#, "");
    let partial = TypeMeta::new("meta.k8s.io/v1", "PartialObjectMetadata");
    let (server, _) = serving(200, &format!("{{\"type\":\"ADDED\",\"object\":{PARTIAL}}}\n"), 1000);
    let events = watch(&of_unknown_type(server)).await;
    let [Ok(WatchEvent::Added(object))] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&*object.json(), object.type_meta()), (&*expected, &partial));
    let bare = r#"{"metadata":{"name":"a","resourceVersion":"3"}}"#;
    for item in [PARTIAL, bare] {
        let head = r#""kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#;
        let list = format!(r#"{{{head},"metadata":{{"resourceVersion":"9"}},"items":[{item}]}}"#);
        let page = list_page(&of_unknown_type(serving(200, &list, 1000).0), ListOptions::default()).await;
        let page = page.unwrap();
        assert_eq!((texts(&page.items), page.undecodable.len()), (vec![expected.clone()], 0));
        assert_eq!(page.items[0].type_meta(), &partial);
    }
    // A server that sends whole objects all the same.
    let (server, _) = serving(200, &format!("{{\"type\":\"ADDED\",\"object\":{WHOLE}}}\n"), 1000);
    let events = watch(&of_unknown_type(server)).await;
    let [Ok(WatchEvent::Added(object))] = &events[..] else { panic!("{events:?}") };
    assert_eq!(object.type_meta(), &TypeMeta::new("v1", "Pod"));
}

fn metadata_of(server: ApiListWatch) -> ApiListWatch {
    ApiListWatch::new(server.client, Config { content: Content::Metadata, ..pods() })
}

fn accepts(requests: &Requests) -> String {
    requests.lock().unwrap()[0].headers()["accept"].to_str().unwrap().to_owned()
}
