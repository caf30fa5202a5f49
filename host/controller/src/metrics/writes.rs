//! Counters of one plugin's writes, by verb and status code.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde::Serialize;

/// Counts the writes of one plugin. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes(Arc<Mutex<BTreeMap<(&'static str, Code), u64>>>);

/// The status code of a response; none if there was no response.
type Code = Option<u16>;

/// A number of writes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WriteCount {
    pub(super) verb: &'static str,
    /// The status code; `<error>` for a request without a response, as in client-go.
    pub(super) code: String,
    pub(super) count: u64,
}

// === impl Writes ===

impl Writes {
    /// Counts one request if it is a write.
    pub(crate) fn count(&self, method: &Method, content_type: &str, answered: Option<StatusCode>) {
        let Some(verb) = write_verb(method, content_type) else { return };
        *self.0.lock().entry((verb, answered.map(|code| code.as_u16()))).or_default() += 1;
    }

    /// Returns the number of writes by verb and code.
    pub(super) fn view(&self) -> Vec<WriteCount> {
        let code = |code: Code| code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let writes = self.0.lock();
        let writes = writes.iter();
        writes
            .map(|((verb, answered), count)| WriteCount { verb, code: code(*answered), count: *count })
            .collect()
    }
}

/// Returns the verb of a write, as Kubernetes names it, and `apply`; none for a read.
pub(crate) fn write_verb(method: &Method, content_type: &str) -> Option<&'static str> {
    match *method {
        Method::POST => Some("create"),
        Method::PUT => Some("update"),
        Method::DELETE => Some("delete"),
        Method::PATCH if content_type.starts_with("application/apply-patch") => Some("apply"),
        Method::PATCH => Some("patch"),
        _ => None,
    }
}
