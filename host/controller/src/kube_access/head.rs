//! Reads and changes the metadata at the head of an object's text, without building a tree of it.
//!
//! The text may have megabytes: the walk over it runs in slices.

use std::sync::LazyLock;

use oarlock_json::{Finding, Found, JsonPointer, PointerSet};
use oarlock_plugin::contract::Preconditions;

use super::slices::Slices;

/// The longest name, uid or version that is read. Those of Kubernetes are shorter.
const LONGEST: usize = 2 << 10;

/// The places of the values in [`POINTERS`].
const OBJECT: usize = 0;
const METADATA: usize = 1;
const NAME: usize = 2;
const UID: usize = 3;
const RESOURCE_VERSION: usize = 4;

static POINTERS: LazyLock<PointerSet> = LazyLock::new(|| {
    PointerSet::new(&[
        JsonPointer::from([]),
        JsonPointer::from(["metadata"]),
        JsonPointer::from(["metadata", "name"]),
        JsonPointer::from(["metadata", "uid"]),
        JsonPointer::from(["metadata", "resourceVersion"]),
    ])
});

/// The metadata of an object's text. It has no values if a key is repeated: the API server would take another
/// of them, or refuse the text.
pub(super) struct Head<'t> {
    found: Found<&'t str>,
    text: &'t str,
}

// === impl Head ===

impl<'t> Head<'t> {
    /// Finds the metadata in a text.
    pub(super) async fn of(text: &'t str) -> Self {
        let mut slices = Slices::begin();
        let mut finding = Finding::new(&POINTERS, text);
        loop {
            let work = slices.left();
            if finding.advance(work) {
                return Self { found: finding.finish(), text };
            }
            slices.worked(work).await;
        }
    }

    /// Returns whether the text is a JSON object, as far as the walk has checked it.
    pub(super) fn is_object(&self) -> bool {
        self.found
            .get(OBJECT)
            .is_some_and(|object| object.starts_with('{') && self.text.trim_ascii().len() == object.len())
    }

    /// Returns the name; empty if there is none.
    pub(super) fn name(&self) -> String {
        self.string(NAME)
    }

    /// Returns the uid; empty if there is none.
    pub(super) fn uid(&self) -> String {
        self.string(UID)
    }

    /// Returns the resourceVersion; empty if there is none.
    pub(super) fn resource_version(&self) -> String {
        self.string(RESOURCE_VERSION)
    }

    fn string(&self, place: usize) -> String {
        let value = self.found.get(place).filter(|value| value.len() <= LONGEST);
        let value = value.filter(|_| !self.found.has_repeated());
        value.and_then(|value| serde_json::from_str(value).ok()).unwrap_or_default()
    }

    /// Returns the text with preconditions in its metadata, and what is wrong with the text otherwise.
    pub(super) fn with(&self, preconditions: &Preconditions) -> Result<String, &'static str> {
        let Preconditions { uid, resource_version } = preconditions;
        if !self.is_object() {
            return Err("the text is not a JSON object");
        }
        if self.found.has_repeated() {
            return Err("metadata, or a key in it, is repeated");
        }
        let metadata = self.found.get(METADATA);
        if metadata.is_some_and(|it| !it.starts_with('{')) {
            return Err("metadata is not a JSON object");
        }
        let mut edits = Vec::new();
        let mut missing = Vec::new();
        for (place, name, value) in
            [(UID, "uid", uid), (RESOURCE_VERSION, "resourceVersion", resource_version)]
        {
            let Some(value) = value else { continue };
            let value = serde_json::Value::from(value.as_str()).to_string();
            match self.found.get(place) {
                Some(old) => edits.push((self.position(old), old.len(), value)),
                None => missing.push(format!("\"{name}\":{value}")),
            }
        }
        if !missing.is_empty() {
            let missing = missing.join(",");
            let (object, added) = match metadata {
                Some(metadata) => (metadata, missing),
                None => (self.text.trim_ascii(), format!("\"metadata\":{{{missing}}}")),
            };
            // Before the brace that closes it.
            let has_others = !object[1..object.len() - 1].trim_ascii().is_empty();
            let comma = if has_others { "," } else { "" };
            edits.push((self.position(object) + object.len() - 1, 0, format!("{comma}{added}")));
        }
        edits.sort_unstable_by_key(|(position, ..)| *position);
        let mut changed = String::with_capacity(self.text.len() + 256);
        let mut end = 0;
        for (position, length, value) in edits {
            changed.push_str(&self.text[end..position]);
            changed.push_str(&value);
            end = position + length;
        }
        changed.push_str(&self.text[end..]);
        Ok(changed)
    }

    /// Returns where a part of the text begins.
    fn position(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn both() -> Preconditions {
        Preconditions { uid: Some("u\"1".to_owned()), resource_version: Some("41".to_owned()) }
    }

    async fn with(text: &str) -> Result<String, &'static str> {
        Head::of(text).await.with(&both())
    }

    #[tokio::test(start_paused = true)]
    async fn preconditions_replace_and_extend_the_metadata() {
        for text in [
            "{}",
            " { } \n",
            r#"{"data":{"metadata":{}}}"#,
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"name":"a"},"data":{}}"#,
            r#"{"metadata":{"uid":"other","name":"a","resourceVersion":"7"}}"#,
            r#"{"metadata":{"resourceVersion":null,"uid":{"a":["}"]}},"x":"ä}"}"#,
            r#"{"metad\u0061ta":{"ui\u0064":1}}"#,
        ] {
            let changed = with(text).await.unwrap();
            let mut expected: Value = serde_json::from_str(text).unwrap();
            expected["metadata"]["uid"] = "u\"1".into();
            expected["metadata"]["resourceVersion"] = "41".into();
            assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), expected, "{text}: {changed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_that_is_no_object_is_refused() {
        for text in ["", "{", "[]", "null", "1", "{} {}", "{}x", r#"{"metadata":"#, r#"{"metadata":{}"#] {
            assert_eq!(with(text).await, Err("the text is not a JSON object"), "{text}");
        }
        for text in [r#"{"metadata":null}"#, r#"{"metadata":[]}"#, r#"{"metadata":"{}"}"#] {
            assert_eq!(with(text).await, Err("metadata is not a JSON object"), "{text}");
        }
        for text in [
            r#"{"metadata":{},"metadata":{"resourceVersion":"1"}}"#,
            r#"{"metadata":{"resourceVersion":"1","resourceVersion":"2"}}"#,
            r#"{"metadata":{"uid":"1"},"data":{},"met\u0061data":1}"#,
        ] {
            assert_eq!(with(text).await, Err("metadata, or a key in it, is repeated"), "{text}");
            assert_eq!(Head::of(text).await.resource_version(), "", "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn names_and_versions_are_read_up_to_a_length() {
        let text = format!(
            r#"{{"metadata":{{"name":"\u0061","uid":{{}},"resourceVersion":"{}"}}}}"#,
            "7".repeat(LONGEST)
        );
        let head = Head::of(&text).await;
        assert_eq!((head.name(), head.uid(), head.resource_version()), ("a".into(), "".into(), "".into()));
        assert!(head.is_object());
    }

    /// Other tasks run while the walk reads a long text.
    #[tokio::test(start_paused = true)]
    async fn promise_4_a_long_text_is_read_in_slices() {
        let labels: Vec<_> = (0..200_000).map(|n| format!("\"l{n}\":0")).collect();
        let text = format!(r#"{{"metadata":{{"a":{{}},{},"name":"n"}}}}"#, labels.join(","));
        let mut head = std::pin::pin!(Head::of(&text));
        let mut n_slices = 1;
        let head = loop {
            match futures::poll!(&mut head) {
                std::task::Poll::Ready(head) => break head,
                std::task::Poll::Pending => n_slices += 1,
            }
        };
        assert_eq!(head.name(), "n");
        assert!(n_slices >= text.len() / (512 << 10), "{n_slices} slices of {} bytes", text.len());
    }
}
