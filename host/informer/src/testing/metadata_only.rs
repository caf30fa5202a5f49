//! The resource of a fake with metadata-only objects.

use async_trait::async_trait;
use futures::StreamExt;

use super::FakeListWatch;
use crate::list_watch::{
    ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::object::{Content, Object, Pruning};

/// Lists and watches the objects of a [`FakeListWatch`] with only `apiVersion`, `kind` and `metadata`.
#[derive(Clone)]
pub struct MetadataOnly(pub FakeListWatch);

#[async_trait]
impl ListWatch for MetadataOnly {
    async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<ListPage, ApiError> {
        self.0.list(options, &|object| hook(metadata_of(&object))).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        let events = self.0.watch(options).await?;
        let metadata_event = |event| match event {
            WatchEvent::Added(object) => WatchEvent::Added(metadata_of(&object)),
            WatchEvent::Modified(object) => WatchEvent::Modified(metadata_of(&object)),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(metadata_of(&object)),
            other => other,
        };
        Ok(events.map(move |event| event.map(metadata_event)).boxed())
    }

    fn supports_watch_list(&self) -> bool {
        self.0.supports_watch_list()
    }
}

/// Decodes the metadata of an object, as `ApiListWatch` does.
fn metadata_of(object: &Object) -> Object {
    let text = object.json();
    Object::parse_content(text.as_bytes(), Some(object.type_meta()), &Pruning::none(), Content::Metadata)
        .unwrap_or_else(|error| panic!("{error}: {}", &*text))
}
