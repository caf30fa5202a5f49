//! An object's labels. Objects with equal labels share one copy.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};

use triomphe::ThinArc;

use super::StringMap;
use crate::intern::{Intern, Interner};

/// The labels of an object: one pointer, the same for all objects with equal labels.
///
/// They are stored as compact JSON, sorted by name. That is how the API server writes them, so that received
/// labels are usually found in the interner without being parsed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Labels(Option<LabelText>);

/// Labels as JSON text. The header of the `ThinArc` says whether the text has escapes.
#[derive(Clone)]
struct LabelText(ThinArc<bool, u8>);

/// Labels in a form that is cheap to query for many names.
#[derive(Debug)]
pub(crate) enum LabelView<'l> {
    /// Few labels. Each query scans all of them.
    Few(&'l Labels),
    /// Many labels, sorted by name.
    Many(Vec<(&'l str, &'l str)>),
    /// Labels whose text has escapes, parsed.
    Parsed(StringMap),
}

/// From this length of their text, labels are split once instead of scanned by each query.
const MANY: usize = 512;

static LABELS: Interner<LabelText> = Interner::new();

// === impl Labels ===

impl Labels {
    /// Returns the labels with this JSON text.
    ///
    /// # Errors
    ///
    /// The text is not a map of strings.
    pub(super) fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        if let Some(known) = LABELS.find(text.as_bytes()) {
            return Ok(Self(Some(known)));
        }
        let labels: StringMap = serde_json::from_str(text)?;
        if labels.is_empty() {
            return Ok(Self(None));
        }
        let text = serde_json::to_string(&labels)?;
        let has_escapes = text.contains('\\');
        let text = LabelText(ThinArc::from_header_and_slice(has_escapes, text.as_bytes()));
        Ok(Self(Some(LABELS.intern(text))))
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let text = self.0.as_ref()?;
        if text.has_escapes() {
            return self.to_map().remove(name).map(Cow::Owned);
        }
        text.pairs().find(|(found, _)| *found == name).map(|(_, value)| Cow::Borrowed(value))
    }

    /// Returns the labels in a form that is cheap to query for many names.
    pub(crate) fn view(&self) -> LabelView<'_> {
        match &self.0 {
            Some(text) if text.has_escapes() => LabelView::Parsed(self.to_map()),
            Some(text) if text.as_str().len() >= MANY => LabelView::Many(text.pairs().collect()),
            _ => LabelView::Few(self),
        }
    }

    /// Whether the object has no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the labels as a map.
    #[must_use]
    pub fn to_map(&self) -> StringMap {
        match &self.0 {
            None => StringMap::new(),
            // The text was serialized from a map.
            Some(text) if text.has_escapes() => serde_json::from_str(text.as_str()).unwrap_or_default(),
            Some(text) => text.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    /// Whether both share one copy.
    #[cfg(test)]
    fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(text), Some(other)) => std::ptr::eq(&text.0.slice, &other.0.slice),
            _ => false,
        }
    }

    /// Frees the labels that no object has any more.
    pub(crate) fn release_unused() {
        LABELS.release_unused();
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_map().fmt(f)
    }
}

impl oarlock_label_selector::Labels for Labels {
    fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key)
    }
}

// === impl LabelView ===

impl LabelView<'_> {
    /// Whether making the view took time in proportion to many labels.
    pub(crate) fn is_long(&self) -> bool {
        !matches!(self, Self::Few(_))
    }

    /// Returns the value of a label.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Few(labels) => labels.get(name),
            // The text was serialized from a sorted map.
            Self::Many(pairs) => {
                let place = pairs.binary_search_by_key(&name, |(name, _)| name).ok()?;
                Some(Cow::Borrowed(pairs[place].1))
            }
            Self::Parsed(map) => map.get(name).map(|value| Cow::Borrowed(&**value)),
        }
    }
}

impl oarlock_label_selector::Labels for LabelView<'_> {
    fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key)
    }
}

// === impl LabelText ===

impl LabelText {
    fn has_escapes(&self) -> bool {
        self.0.header.header
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0.slice).unwrap_or_default()
    }

    /// Returns names and values. The text must not have escapes.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        // {"name":"value","name":"value"}: every second piece between quotes is punctuation.
        let mut pieces = self.as_str().split('"').skip(1).step_by(2);
        std::iter::from_fn(move || Some((pieces.next()?, pieces.next()?)))
    }
}

impl PartialEq for LabelText {
    fn eq(&self, other: &Self) -> bool {
        self.0.slice == other.0.slice
    }
}

impl Eq for LabelText {}

impl Hash for LabelText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.slice.hash(state);
    }
}

impl Borrow<[u8]> for LabelText {
    fn borrow(&self) -> &[u8] {
        &self.0.slice
    }
}

impl Intern for LabelText {
    fn is_unique(&self) -> bool {
        ThinArc::strong_count(&self.0) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        Labels::from_json(text).unwrap()
    }

    #[test]
    fn equal_labels_share_one_copy() {
        let one = labels(r#"{"a":"1","b":""}"#);
        assert!(one.is_same(&labels(r#"{"a":"1","b":""}"#)));
        assert!(one.is_same(&labels(r#"{ "b" : "", "\u0061":"1" }"#)));
        assert!(!one.is_same(&labels(r#"{"a":"1"}"#)));
        assert_eq!(one.get("a").as_deref(), Some("1"));
        assert_eq!(one.get("b").as_deref(), Some(""));
        assert_eq!(one.get("c"), None);
        assert_eq!(one.to_map(), StringMap::from([("a".into(), "1".into()), ("b".into(), String::new())]));
    }

    #[test]
    fn empty_escaped_and_malformed_labels() {
        assert!(labels("{}").is_empty() && labels("{}").is_same(&Labels::default()));
        let odd = labels(r#"{"q\"":"x\\\n","z":","}"#);
        assert_eq!(odd.get("q\"").as_deref(), Some("x\\\n"));
        assert_eq!(odd.get("z").as_deref(), Some(","));
        for text in ["", "[]", r#"{"a":1}"#, r#"{"a":"\ud800"}"#, "null"] {
            assert!(Labels::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_view_returns_the_same_values_as_the_labels() {
        let many: String = (0..100).map(|n| format!(r#","l{n}":"{n}""#)).collect();
        let texts = ["{}", r#"{"a":"1","b":""}"#, r#"{"q\"":"x","a":","}"#, &format!(r#"{{"a":"1"{many}}}"#)];
        for text in texts {
            let labels = labels(text);
            let view = labels.view();
            for name in ["a", "b", "q\"", "l", "l0", "l57", "l99", "z", ""] {
                assert_eq!(view.get(name), labels.get(name), "{name} of {text}");
            }
        }
    }

    #[test]
    fn labels_without_an_object_are_freed() {
        let kept = labels(r#"{"leftovers":"kept"}"#);
        drop(labels(r#"{"leftovers":"dropped"}"#));
        Labels::release_unused();
        assert!(LABELS.find(br#"{"leftovers":"dropped"}"#.as_slice()).is_none());
        assert!(kept.is_same(&labels(r#"{"leftovers":"kept"}"#)));
        assert!(LABELS.len() >= 1);
    }
}
