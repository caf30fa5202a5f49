//! An object's labels, one copy of which is shared by all objects that have the same.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};

use triomphe::ThinArc;

use super::StringMap;
use crate::intern::{Interner, Shared};

/// The labels of an object: one pointer, the same for all objects with equal labels.
///
/// Kept as compact JSON, sorted by name, as the API server writes them: so that those that come in are usually found without
/// having been read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Labels(Option<Entry>);

/// The bytes are a JSON text; the head says whether it has escapes.
#[derive(Clone)]
struct Entry(ThinArc<bool, u8>);

/// Labels that are about to be asked for many names.
#[derive(Debug)]
pub(crate) enum LabelView<'l> {
    /// Looked through each time.
    Few(&'l Labels),
    /// Sorted by name.
    Many(Vec<(&'l str, &'l str)>),
    /// With escapes.
    Read(StringMap),
}

/// From this many bytes on it is not worth it to look through all labels each time.
const MANY: usize = 512;

static LABELS: Interner<Entry> = Interner::new();

// === impl Labels ===

impl Labels {
    /// Takes in the JSON text of a map of texts.
    ///
    /// # Errors
    ///
    /// When it is not that.
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
        let entry = Entry(ThinArc::from_header_and_slice(has_escapes, text.as_bytes()));
        Ok(Self(Some(LABELS.keep(entry))))
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let entry = self.0.as_ref()?;
        if entry.has_escapes() {
            return self.to_map().remove(name).map(Cow::Owned);
        }
        entry.pairs().find(|(found, _)| *found == name).map(|(_, value)| Cow::Borrowed(value))
    }

    /// Returns them in a form in which it costs little to ask for many names.
    pub(crate) fn view(&self) -> LabelView<'_> {
        match &self.0 {
            Some(entry) if entry.has_escapes() => LabelView::Read(self.to_map()),
            Some(entry) if entry.text().len() >= MANY => LabelView::Many(entry.pairs().collect()),
            _ => LabelView::Few(self),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the labels as a map.
    #[must_use]
    pub fn to_map(&self) -> StringMap {
        match &self.0 {
            None => StringMap::new(),
            // It was written from a map.
            Some(entry) if entry.has_escapes() => serde_json::from_str(entry.text()).unwrap_or_default(),
            Some(entry) => entry.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    /// Whether the two are one and the same in memory.
    #[cfg(test)]
    fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(entry), Some(other)) => std::ptr::eq(&entry.0.slice, &other.0.slice),
            _ => false,
        }
    }

    /// Forgets the labels that no object has any more.
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
    /// Whether there was something to look through.
    pub(crate) fn is_long(&self) -> bool {
        !matches!(self, Self::Few(_))
    }

    /// Returns the value of a label.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Few(labels) => labels.get(name),
            // They were written from a map.
            Self::Many(pairs) => {
                let place = pairs.binary_search_by_key(&name, |(name, _)| name).ok()?;
                Some(Cow::Borrowed(pairs[place].1))
            }
            Self::Read(map) => map.get(name).map(|value| Cow::Borrowed(&**value)),
        }
    }
}

impl oarlock_label_selector::Labels for LabelView<'_> {
    fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key)
    }
}

// === impl Entry ===

impl Entry {
    fn has_escapes(&self) -> bool {
        self.0.header.header
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0.slice).unwrap_or_default()
    }

    /// Returns names and values; only where there are no escapes.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        // {"name":"value","name":"value"}: every second piece between quotes is punctuation.
        let mut pieces = self.text().split('"').skip(1).step_by(2);
        std::iter::from_fn(move || Some((pieces.next()?, pieces.next()?)))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.slice == other.0.slice
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.slice.hash(state);
    }
}

impl Borrow<[u8]> for Entry {
    fn borrow(&self) -> &[u8] {
        &self.0.slice
    }
}

impl Shared for Entry {
    fn is_last(&self) -> bool {
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
    fn equal_labels_are_one() {
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
    fn none_and_odd_ones() {
        assert!(labels("{}").is_empty() && labels("{}").is_same(&Labels::default()));
        let odd = labels(r#"{"q\"":"x\\\n","z":","}"#);
        assert_eq!(odd.get("q\"").as_deref(), Some("x\\\n"));
        assert_eq!(odd.get("z").as_deref(), Some(","));
        for text in ["", "[]", r#"{"a":1}"#, r#"{"a":"\ud800"}"#, "null"] {
            assert!(Labels::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_view_answers_as_the_labels_do() {
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
    fn leftovers_are_forgotten() {
        let kept = labels(r#"{"leftovers":"kept"}"#);
        drop(labels(r#"{"leftovers":"dropped"}"#));
        Labels::release_unused();
        assert!(LABELS.find(br#"{"leftovers":"dropped"}"#.as_slice()).is_none());
        assert!(kept.is_same(&labels(r#"{"leftovers":"kept"}"#)));
        assert!(LABELS.len() >= 1);
    }
}
