//! Protobuf, as Go clients send and accept it.

use crate::client::{Client, MAPS, config_map, start};
use http::Method;
use http_body_util::BodyExt;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn field(number: u8, inner: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(inner.len()).unwrap()];
    out.extend_from_slice(inner);
    out
}

/// `DeleteOptions{Preconditions: {UID: uid}}`, as client-go sends it.
fn delete_options(uid: &str) -> Vec<u8> {
    let type_meta = [field(1, b"v1"), field(2, b"DeleteOptions")].concat();
    let raw = field(2, &field(1, uid.as_bytes()));
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &raw)].concat()
}

async fn send(client: &Client, method: Method, path: &str, body: Vec<u8>) -> (u16, String, Vec<u8>) {
    let response = client.send(method, path, body).await.unwrap();
    let (parts, body) = response.into_parts();
    let content_type = parts.headers["content-type"].to_str().unwrap().to_owned();
    (parts.status.as_u16(), content_type, body.collect().await.unwrap().to_bytes().to_vec())
}

fn has(body: &[u8], wanted: &str) -> bool {
    body.windows(wanted.len()).any(|window| window == wanted.as_bytes())
}

#[tokio::test]
async fn delete_options_are_decoded_from_protobuf() {
    let (_cluster, client) = start().await;
    let created = client.create(MAPS, &config_map("a", "1")).await;
    let path = format!("{MAPS}/a");
    let go = client.with("content-type", PROTOBUF);
    let (code, _, body) = send(&go, Method::DELETE, &path, delete_options("another")).await;
    assert_eq!(code, 409, "{}", String::from_utf8_lossy(&body));
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let (code, _, body) = send(&go, Method::DELETE, &path, delete_options(uid)).await;
    assert_eq!(code, 200, "{}", String::from_utf8_lossy(&body));
    assert_eq!(client.get(&path).await.0, 404);
    // A deletecollection also accepts Protobuf.
    let (code, _, body) = send(&go, Method::DELETE, MAPS, delete_options("x")).await;
    assert_eq!(code, 200, "{}", String::from_utf8_lossy(&body));
}

#[tokio::test]
async fn a_client_that_accepts_only_protobuf_is_served() {
    let (_cluster, client) = start().await;
    client.create(MAPS, &config_map("first", "1")).await;
    let go = client.with("accept", PROTOBUF);
    let path = format!("{MAPS}/first");
    let (code, content_type, body) = send(&go, Method::GET, &path, Vec::new()).await;
    assert_eq!((code, content_type.as_str(), &body[..4]), (200, PROTOBUF, &b"k8s\0"[..]));
    assert!(has(&body, "ConfigMap") && has(&body, "first"));
    let (code, content_type, body) = send(&go, Method::GET, MAPS, Vec::new()).await;
    assert_eq!((code, content_type.as_str()), (200, PROTOBUF));
    assert!(has(&body, "ConfigMapList") && has(&body, "first"));
    // Errors and successes are Protobuf too.
    let (code, content_type, body) = send(&go, Method::GET, &format!("{MAPS}/none"), Vec::new()).await;
    assert_eq!((code, content_type.as_str(), &body[..4]), (404, PROTOBUF, &b"k8s\0"[..]));
    assert!(has(&body, "configmaps \"none\" not found"));
    let (code, content_type, body) = send(&go, Method::DELETE, &path, Vec::new()).await;
    assert_eq!((code, content_type.as_str()), (200, PROTOBUF));
    assert!(has(&body, "Success"));
    let table = go.with("accept", &format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"));
    assert_eq!(send(&table, Method::GET, MAPS, Vec::new()).await.0, 406);
}

#[tokio::test]
async fn a_watch_in_protobuf_is_length_delimited() {
    let (_cluster, client) = start().await;
    for name in ["a", "b"] {
        client.create(MAPS, &config_map(name, "1")).await;
    }
    let go =
        client.with("accept", &format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{PROTOBUF}"));
    for watch in [&go, &client.with("accept", PROTOBUF)] {
        let path = format!("{MAPS}?watch=1&timeoutSeconds=1");
        let (code, content_type, body) = send(watch, Method::GET, &path, Vec::new()).await;
        assert_eq!((code, content_type.as_str()), (200, "application/vnd.kubernetes.protobuf;stream=watch"));
        let mut rest = &body[..];
        let mut seen = 0;
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (frame, after) = after.split_at(u32::from_be_bytes(*length) as usize);
            assert!(has(frame, "ADDED") && has(frame, "k8s\0"), "{frame:?}");
            (rest, seen) = (after, seen + 1);
        }
        assert_eq!((seen, rest.len()), (2, 0));
    }
}
