//! The paths, queries and headers of the requests.

use http::{Method, Request, header};
use kube::client::Body;
use oarlock_label_selector::LabelSelector;

use super::Config;
use crate::list_watch::{ApiError, ListOptions, VersionMatch, WatchOptions};
use crate::object::Content;

const JSON: &str = "application/json";

/// Returns path and query of a list.
pub(super) fn list(config: &Config, options: &ListOptions) -> String {
    let mut query = Query::new(config, &options.label_selector, &options.field_selector);
    query.add("resourceVersion", &options.resource_version);
    match options.version_match {
        None => {}
        Some(VersionMatch::Exact) => query.add("resourceVersionMatch", "Exact"),
        Some(VersionMatch::NotOlderThan) => query.add("resourceVersionMatch", "NotOlderThan"),
    }
    if let Some(limit) = options.limit {
        query.add("limit", &limit.to_string());
    }
    query.add("continue", options.continue_token.as_deref().unwrap_or_default());
    query.finish()
}

/// Returns path and query of a watch.
pub(super) fn watch(config: &Config, options: &WatchOptions) -> String {
    let mut query = Query::new(config, &options.label_selector, &options.field_selector);
    query.add("watch", "true");
    query.add("resourceVersion", &options.resource_version);
    query.add("timeoutSeconds", &options.timeout.as_secs().to_string());
    if options.allow_bookmarks {
        query.add("allowWatchBookmarks", "true");
    }
    if options.send_initial_events {
        query.add("sendInitialEvents", "true");
        query.add("resourceVersionMatch", "NotOlderThan");
    }
    query.finish()
}

/// Returns the media types to accept for a list. A server that does not know the first one uses the last.
pub(super) fn list_accept(content: Content) -> &'static str {
    match content {
        Content::Full => JSON,
        Content::Metadata => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
    }
}

/// Returns the media types to accept for the objects of a watch.
pub(super) fn watch_accept(content: Content) -> &'static str {
    match content {
        Content::Full => JSON,
        Content::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    }
}

/// Returns a GET for uncompressed JSON.
///
/// With compression, an event of a watch could wait in a buffer for the next one.
pub(super) fn get(path_and_query: &str, accept: &'static str) -> Result<Request<Body>, ApiError> {
    Request::builder()
        .method(Method::GET)
        .uri(path_and_query)
        .header(header::ACCEPT, accept)
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Body::empty())
        .map_err(|error| ApiError::Transport(error.into()))
}

/// A path and its query so far.
struct Query(String);

// === impl Query ===

impl Query {
    fn new(config: &Config, label_selector: &LabelSelector, field_selector: &str) -> Self {
        let resource = &config.resource;
        let mut path = if resource.group.is_empty() { "/api".to_owned() } else { "/apis".to_owned() };
        let namespace = config.namespace.iter().flat_map(|namespace| ["namespaces", namespace]);
        let group = (!resource.group.is_empty()).then_some(&*resource.group);
        for segment in
            group.into_iter().chain([&*resource.version]).chain(namespace).chain([&*resource.resource])
        {
            path.push('/');
            escape(segment, &mut path);
        }
        path.push('?');
        let mut query = Self(path);
        query.add("labelSelector", &both(&config.label_selector.to_string(), &label_selector.to_string()));
        query.add("fieldSelector", &both(&config.field_selector, field_selector));
        query
    }

    /// Adds a parameter, unless its value is empty: an empty value means the same as none.
    fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        if !self.0.ends_with('?') {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        escape(value, &mut self.0);
    }

    fn finish(self) -> String {
        let Self(mut path_and_query) = self;
        if path_and_query.ends_with('?') {
            path_and_query.pop();
        }
        path_and_query
    }
}

/// Returns a selector that selects the objects that both select.
fn both(one: &str, other: &str) -> String {
    let separator = if one.is_empty() || other.is_empty() { "" } else { "," };
    [one, separator, other].concat()
}

/// Percent-encodes all but the unreserved characters of RFC 3986.
fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                into.push(char::from(byte))
            }
            _ => into.push_str(&format!("%{byte:02X}")),
        }
    }
}
