//! The same resource as the fake has it, but metadata alone.

use async_trait::async_trait;
use futures::StreamExt;

use super::FakeListWatch;
use crate::list_watch::{
    ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::object::{Content, Object, Pruning};

/// Lists and watches what a [`FakeListWatch`] has, without anything but `apiVersion`, `kind` and `metadata`.
#[derive(Clone)]
pub struct MetadataOnly(pub FakeListWatch);

#[async_trait]
impl ListWatch for MetadataOnly {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        self.0.list(options, &|object| keep(cut(&object))).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        let events = self.0.watch(options).await?;
        let cut_event = |event| match event {
            WatchEvent::Added(object) => WatchEvent::Added(cut(&object)),
            WatchEvent::Modified(object) => WatchEvent::Modified(cut(&object)),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(cut(&object)),
            other => other,
        };
        Ok(events.map(move |event| event.map(cut_event)).boxed())
    }

    fn supports_watch_list(&self) -> bool {
        self.0.supports_watch_list()
    }
}

/// Takes in the metadata of an object, as if it had come over the wire.
fn cut(object: &Object) -> Object {
    let text = object.json();
    Object::parse_content(text.as_bytes(), Some(object.type_meta()), &Pruning::none(), Content::Metadata)
        .unwrap_or_else(|error| panic!("{error}: {}", &*text))
}
