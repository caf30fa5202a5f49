//! Objects that cannot be decoded: lists and watches name them, and decode all other objects.

use super::*;
use crate::list_watch::Undecodable;

/// Objects that no Kubernetes client can decode, each with the key that can be read from it.
fn bad_objects() -> Vec<(Vec<u8>, Option<&'static str>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            text(
                r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"bad","namespace":"x","labels":{"n":1}}}"#,
            ),
            Some("x/bad"),
        ),
        (
            text(
                r#"{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"n":1},"name":"bad","namespace":"x"},"spec":{}}"#,
            ),
            Some("x/bad"),
        ),
        (text(r#"{"metadata":{"annotations":[],"name":"b\u0061d"}}"#), Some("bad")),
        (text(r#"{"metadata":{"name":"bad","generation":"1"}}"#), Some("bad")),
        (text(r#"{"metadata":{"name":"bad","ownerReferences":[{"name":1}]}}"#), Some("bad")),
        (text(r#"{"metadata":{"name":"bad","name":"bad"}}"#), Some("bad")),
        (text(r#"{"metadata":{"name":"a/b","namespace":"x"}}"#), None),
        (text(r#"{"metadata":{"name":7,"namespace":"x"}}"#), None),
        (
            [&br#"{"metadata":{"name":"bad","namespace":"x"},"data":{"a":""#[..], b"\xff\xfe", br#""}}"#]
                .concat(),
            Some("x/bad"),
        ),
    ]
}

fn serving_bytes(body: Vec<u8>, chunk_size: usize) -> ApiListWatch {
    let chunks: Vec<Bytes> = body.chunks(chunk_size).map(Bytes::copy_from_slice).collect();
    serving_with(200, None, move || {
        futures::stream::iter(chunks.clone()).map(|chunk| Ok(http_body::Frame::data(chunk)))
    })
    .0
}

fn name_of(object: &Undecodable) -> Option<String> {
    object.key.as_ref().map(ToString::to_string)
}

#[tokio::test]
async fn a_list_names_an_undecodable_object_and_has_all_others() {
    for (bad, name) in bad_objects() {
        for chunk_size in [1, 7, 1000] {
            let list = [
                &br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"a"}},"#[..],
                &bad,
                br#",{"metadata":{"name":"z"}}]}"#,
            ]
            .concat();
            let page = list_page(&serving_bytes(list, chunk_size), ListOptions::default()).await.unwrap();
            let names: Vec<_> = page.items.iter().map(|item| item.key().name()).collect();
            assert_eq!((names, &*page.resource_version), (vec!["a", "z"], "12"));
            let left_out: Vec<_> = page.undecodable.iter().map(name_of).collect();
            assert_eq!(left_out, [name.map(str::to_owned)], "{}", String::from_utf8_lossy(&bad));
        }
    }
}

#[tokio::test]
async fn an_object_without_metadata_does_not_fail_the_list() {
    for bad in ["{}", r#"{"metadata":null}"#, r#"{"metadata":{}}"#, "[]"] {
        let list = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","items":[{bad},{{"metadata":{{"name":"z"}}}}]}}"#
        );
        let page = list_page(&serving_bytes(list.into_bytes(), 9), ListOptions::default()).await.unwrap();
        assert_eq!((page.items.len(), page.undecodable.len()), (1, 1), "{bad}");
    }
}

#[tokio::test]
async fn an_item_that_is_too_long_is_named_for_all_chunk_sizes() {
    for padding in [2_000, 100_000] {
        let padding = "x".repeat(padding);
        let list = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"12"}},"items":[{{"metadata":{{"name":"a"}}}},
               {{"metadata":{{"name":"long","namespace":"x"}},"data":["{padding}","]}}"]}},{{"metadata":{{"name":"z"}}}}]}}"#
        );
        for chunk_size in [1, 64, 999, 1_000_000] {
            let mut server = serving_bytes(list.clone().into_bytes(), chunk_size);
            Arc::get_mut(&mut server.config).unwrap().max_object_bytes = 1000;
            let page = list_page(&server, ListOptions::default()).await.unwrap();
            assert_eq!(page.items.len(), 2, "cut at {chunk_size}");
            let [long] = &page.undecodable[..] else { panic!("{page:?}") };
            assert_eq!(name_of(long).as_deref(), Some("x/long"));
            assert!(matches!(*long.error, DecodeError::TooLong { limit: 1000, .. }));
        }
    }
}

#[tokio::test]
async fn a_watch_names_an_undecodable_object_and_says_if_it_is_deleted() {
    for (bad, name) in bad_objects() {
        for event_type in ["ADDED", "MODIFIED", "DELETED"] {
            let line = [format!(r#"{{"type":"{event_type}","object":"#).as_bytes(), &bad, b"}\n"].concat();
            let events = watch(&serving_bytes(line.clone(), 11)).await;
            let [Ok(WatchEvent::Undecodable { is_deleted, object })] = &events[..] else {
                panic!("{events:?}")
            };
            assert_eq!(*is_deleted, event_type == "DELETED");
            assert_eq!(name_of(object).as_deref(), name, "{}", String::from_utf8_lossy(&bad));
            // Without its newline the line may be incomplete.
            let cut = line[..line.len() - 1].to_vec();
            assert!(watch(&serving_bytes(cut, 11)).await.is_empty());
        }
    }
}
