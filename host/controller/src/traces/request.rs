//! The span of a request to the API server, as a child of the call that makes it.

use http::{Method, StatusCode};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span, Status};
use opentelemetry_sdk::trace::Span as SdkSpan;

use super::call::with_current;
use crate::metrics::write_verb;

/// The span of a request. It ends with the answer, or when this is dropped.
pub(crate) struct RequestTrace {
    span: SdkSpan,
    is_answered: bool,
}

/// What the path of a request names.
#[derive(Debug, Default, PartialEq)]
struct Target<'a> {
    namespace: Option<&'a str>,
    resource: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

// === impl RequestTrace ===

impl RequestTrace {
    /// Begins the span, if the call in progress is traced.
    pub(crate) fn begin(method: &Method, content_type: &str, path: &str) -> Option<Self> {
        let span = with_current(|call| {
            let target = Target::of(path);
            let verb = write_verb(method, content_type);
            let read_verb = if target.name.is_some() { "get" } else { "list" };
            let mut attributes = vec![
                KeyValue::new("http.request.method", method.to_string()),
                KeyValue::new("url.path", path.to_owned()),
                KeyValue::new("oarlock.request.verb", verb.unwrap_or(read_verb)),
                KeyValue::new("oarlock.request.resource", target.resource.to_owned()),
            ];
            for (key, value) in [
                ("k8s.namespace.name", target.namespace),
                ("oarlock.request.name", target.name),
                ("oarlock.request.subresource", target.subresource),
            ] {
                attributes.extend(value.map(|value| KeyValue::new(key, value.to_owned())));
            }
            call.request(if verb.is_some() { "api write" } else { "api read" }, attributes)
        });
        span.map(|span| Self { span, is_answered: false })
    }

    /// Ends the span with the status code of the answer; none if there was none.
    pub(crate) fn end(mut self, status: Option<StatusCode>) {
        let Some(status) = status else { return };
        self.is_answered = true;
        self.span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if !status.is_success() {
            self.fail(status.as_str().to_owned());
        }
    }

    fn fail(&mut self, kind: String) {
        self.span.set_attribute(KeyValue::new("error.type", kind));
        self.span.set_status(Status::error(""));
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        if !self.is_answered {
            self.fail("no-answer".to_owned());
        }
    }
}

// === impl Target ===

impl<'a> Target<'a> {
    /// Reads a path of the API, such as `/api/v1/namespaces/a/pods/b/status`.
    fn of(path: &'a str) -> Self {
        let mut parts = path.split('/').skip(1).peekable();
        // The group of the API, if it is not the core group, and the version.
        let n_prefix = if parts.next() == Some("api") { 1 } else { 2 };
        let mut parts = parts.skip(n_prefix).peekable();
        let first = parts.next().unwrap_or_default();
        if first != "namespaces" {
            return Self { resource: first, name: parts.next(), subresource: parts.next(), namespace: None };
        }
        let namespace = parts.next();
        match parts.next() {
            None => Self { resource: first, name: namespace, ..Self::default() },
            Some(resource) => Self { namespace, resource, name: parts.next(), subresource: parts.next() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_resource_namespace_object_and_subresource() {
        for (path, namespace, resource, name, subresource) in [
            ("/api/v1/namespaces/a/pods/b/status", Some("a"), "pods", Some("b"), Some("status")),
            ("/apis/apps/v1/namespaces/a/deployments", Some("a"), "deployments", None, None),
            ("/api/v1/nodes/n", None, "nodes", Some("n"), None),
            ("/api/v1/namespaces", None, "namespaces", None, None),
            ("/api/v1/namespaces/a", None, "namespaces", Some("a"), None),
            ("/apis/example.com/v1/widgets/w", None, "widgets", Some("w"), None),
        ] {
            assert_eq!(Target::of(path), Target { namespace, resource, name, subresource }, "{path}");
        }
    }
}
