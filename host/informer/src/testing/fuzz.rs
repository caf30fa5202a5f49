//! The fuzz targets: all functions that read bytes from outside. Each target takes any bytes, and panics if a
//! property does not hold.
//!
//! The programs of `host/informer/fuzz` call these functions, and so do the tests that run the corpus.

mod json;

use std::convert::Infallible;
use std::io;
use std::sync::LazyLock;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::client::Body;
use oarlock_json::{JsonPointer, PointerPattern, PointerSet, Walk, extract};
use oarlock_label_selector::LabelSelector;

use crate::api_list_watch::{ApiListWatch, Config};
use crate::list_watch::{ListOptions, ListWatch, WatchOptions};
use crate::names::{GroupVersionResource, TypeMeta};
use crate::object::{Content, CopiedPointers, Object, Pruning, StringMap};

/// A fuzz target: takes any bytes, and panics if a property does not hold.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 5] = [
    ("watch_stream", watch_stream),
    ("list_page", list_page),
    ("object", object),
    ("selector", selector),
    ("json_pointer", json_pointer),
];

/// The body of a watch decodes to the same events for all chunk sizes. The first byte is the chunk size.
pub fn watch_stream(data: &[u8]) {
    let Some((cut, body)) = data.split_first() else { return };
    let events = |chunk_size: usize| {
        blocking(async {
            let events = serving(body, chunk_size).watch(WatchOptions::default()).await;
            let Ok(events) = events else { return Vec::new() };
            // The text of an error may contain a position, which depends on the chunk size.
            events.map(|event| event.map(|event| format!("{event:?}")).map_err(drop)).collect().await
        })
    };
    assert_eq!(events(usize::from(*cut).max(1)), events(body.len().max(1)), "in chunks and whole");
}

/// A page decodes to the same items for all chunk sizes, and to as many as a JSON parser finds. The first
/// byte is the chunk size.
pub fn list_page(data: &[u8]) {
    let Some((cut, body)) = data.split_first() else { return };
    let page = |chunk_size: usize| {
        blocking(async {
            let page = serving(body, chunk_size).list(ListOptions::default(), &|item| item).await;
            page.map(|page| {
                let texts: Vec<_> = page.items.iter().map(|item| item.json().to_string()).collect();
                (texts, page.undecodable.len(), page.resource_version, page.continue_token)
            })
            .map_err(drop)
        })
    };
    let whole = page(body.len().max(1));
    assert_eq!(page(usize::from(*cut).max(1)), whole, "in chunks and whole");
    let Ok((texts, n_undecodable, ..)) = whole else { return };
    texts.iter().for_each(|text| decodes_to_itself(text));
    if let Some(list) = json::tree(body) {
        let n_items = list["items"].as_array().map_or(0, Vec::len);
        assert_eq!(texts.len() + n_undecodable, n_items);
    }
}

/// A decoded object has the metadata that a JSON parser finds, and its text decodes to itself. The values
/// that the decoder copies are those of that text.
pub fn object(data: &[u8]) {
    let pod = TypeMeta::new("v1", "Pod");
    for (type_meta, pruning) in [(None, Pruning::none()), (Some(&pod), Pruning::default())] {
        let Ok(object) = Object::parse_pruned(data, type_meta, &pruning) else { continue };
        decodes_to_itself(&object.json());
        copies_what_it_keeps(data, type_meta, &pruning, &object);
        let Some(tree) = json::tree(data) else { continue };
        let metadata = &tree["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        assert_eq!(object.key().name(), text("name"));
        assert_eq!(object.key().namespace(), text("namespace"));
        assert_eq!(object.uid(), text("uid"));
        assert_eq!(object.resource_version(), text("resourceVersion"));
        assert_eq!(object.generation(), metadata["generation"].as_i64());
        assert_eq!(object.deletion_timestamp(), metadata["deletionTimestamp"].as_str());
        assert_eq!(json::string_map(&metadata["labels"]), object.labels().to_owned());
        if pruning == Pruning::none() {
            assert_eq!(json::string_map(&metadata["annotations"]), object.annotations());
        } else if let Some(kept) = json::tree(object.json().as_bytes()) {
            assert_eq!(kept["metadata"].get("managedFields"), None);
        }
    }
}

/// The text of a parsed selector or pointer parses to the same selector or pointer.
pub fn selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(selector) = text.parse::<LabelSelector>() {
        let shown = selector.to_string();
        let again: LabelSelector = shown.parse().unwrap_or_else(|error| panic!("{shown:?}: {error}"));
        assert_eq!(again.to_string(), shown);
        let some = StringMap::from([("a".into(), "1".into()), ("app".into(), "web".into())]);
        for labels in [StringMap::new(), some] {
            assert_eq!(selector.matches(&labels), again.matches(&labels), "{text:?} and {shown:?}");
        }
    }
    if let Ok(pointer) = text.parse::<JsonPointer>() {
        assert_eq!(pointer.to_string(), text);
    }
    if let Ok(pattern) = text.parse::<PointerPattern>() {
        let again: PointerPattern = pattern.to_string().parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.to_string(), pattern.to_string());
    }
}

/// Pointers find the values that a JSON parser finds; text that is not JSON must not panic. The first line is
/// the pointer, the rest is the text.
pub fn json_pointer(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((pointer, json)) = text.split_once('\n') else { return };
    if let Ok(pattern) = pointer.parse::<PointerPattern>() {
        extract(json, &[pattern.segments()]);
    }
    let Ok(pointer) = pointer.parse::<JsonPointer>() else { return };
    let found = extract(json, &[pointer.segments()]).pop().and_then(|mut found| found.pop());
    let set = PointerSet::new([&pointer]);
    let mut walk = Walk::default();
    walk.begin(&set);
    while !walk.advance(&set, json, &mut 1) {}
    assert_eq!(walk.span(set.place(0)).of(json), found.as_deref());
    let Some(tree) = json::tree(json.as_bytes()) else { return };
    let found = found.map(|text| json::tree(text.as_bytes()).unwrap_or_else(|| panic!("found {text:?}")));
    assert_eq!(found.as_ref(), tree.pointer(&pointer.to_string()));
}

fn copies_what_it_keeps(data: &[u8], type_meta: Option<&TypeMeta>, pruning: &Pruning, object: &Object) {
    static POINTERS: LazyLock<CopiedPointers> = LazyLock::new(|| {
        let pointers: [JsonPointer; 6] = [
            ["spec", "nodeName"].into(),
            ["status", "phase"].into(),
            ["metadata", "resourceVersion"].into(),
            ["metadata", "labels", "app"].into(),
            ["metadata", "annotations", "a"].into(),
            ["data", "0", "a"].into(),
        ];
        CopiedPointers::new(&pointers)
    });
    let copying = Object::parse_copying(data, type_meta, pruning, Content::Full, Some(&POINTERS));
    let values = copying.map(|copying| {
        assert_eq!(*copying.json(), *object.json());
        copying.copied_values(POINTERS.number())
    });
    if let Some(values) = values.unwrap_or_else(|error| panic!("not decoded: {error}")) {
        let found = object.find(POINTERS.set());
        (0..POINTERS.set().len()).for_each(|index| assert_eq!(values.get(index), found.get(index)));
    }
}

fn decodes_to_itself(text: &str) {
    let again = Object::parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(&*again.json(), text);
}

/// Returns a source whose server answers every request with this body, in chunks of this size.
fn serving(body: &[u8], chunk_size: usize) -> ApiListWatch {
    let chunks: Vec<Bytes> = body.chunks(chunk_size).map(Bytes::copy_from_slice).collect();
    let service = tower::service_fn(move |_: Request<Body>| {
        let chunks = chunks.clone().into_iter().map(|chunk| Ok::<_, io::Error>(Frame::data(chunk)));
        let response = Response::new(StreamBody::new(futures::stream::iter(chunks)));
        async { Ok::<_, Infallible>(response) }
    });
    let pods = GroupVersionResource::new("", "v1", "pods");
    let config = Config::new(pods, Some(TypeMeta::new("v1", "Pod")));
    ApiListWatch::new(kube::Client::new(service, "default"), config)
}

#[expect(clippy::expect_used, reason = "a fuzz target may panic")]
fn blocking<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().expect("a runtime").block_on(future)
}

#[cfg(test)]
mod tests;
