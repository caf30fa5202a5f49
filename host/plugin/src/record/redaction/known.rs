//! The values of Secrets that crossed the border so far, with their pseudonyms.

use std::collections::{BTreeSet, HashMap};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{super::pseudonyms::Pseudonyms, json_text::Place};

/// The minimum length of a value whose copies are replaced, in bytes. Shorter texts are in too many other
/// texts.
pub(super) const MIN_LEN: usize = 6;

/// The maximum number of remembered texts, and of their bytes.
const MOST: usize = 32_768;
const MOST_BYTES: usize = 32 << 20;

/// The maximum number of remembered public names, and of the bytes of one: no object has a longer name.
const MOST_PUBLIC: usize = 65_536;
const LONGEST_NAME: usize = 253;

/// Texts that are values of many Secrets and no secret.
const ORDINARY: [&str; 5] = ["default", "kube-system", "Opaque", "Secret", "secrets"];

/// Texts to replace, by their beginning.
#[derive(Default)]
pub(super) struct Known {
    by_beginning: HashMap<[u8; MIN_LEN], Vec<Pair>>,
    /// Which pairs of first bytes occur.
    beginnings: Beginnings,
    n: usize,
    bytes: usize,
    n_forgotten: u64,
    /// Names of objects and namespaces.
    public: BTreeSet<String>,
}

struct Pair {
    value: String,
    pseudonym: String,
}

struct Beginnings(Box<[u64]>);

// === impl Known ===

impl Known {
    /// Returns the pseudonym of a value, and remembers the value to replace its copies.
    pub(super) fn learn(&mut self, pseudonyms: &Pseudonyms, value: &str, place: Place) -> String {
        let decoded = match place {
            Place::Base64 => BASE64_STANDARD.decode(value).ok().and_then(|it| String::from_utf8(it).ok()),
            Place::Plain => None,
        };
        match (place, decoded) {
            (Place::Base64, Some(text)) => {
                self.remember_with_trimmed(pseudonyms, &text);
                pseudonyms.of_base64(value)
            }
            (Place::Base64, None) => {
                let pseudonym = pseudonyms.of_base64(value);
                // Bytes, or plain text in a place that is not known.
                self.remember_text(value, &pseudonym);
                pseudonym
            }
            (Place::Plain, _) => {
                self.remember_with_trimmed(pseudonyms, value);
                pseudonyms.of(value)
            }
        }
    }

    /// Remembers the names of an object, which are public even if a Secret has them as values.
    pub(super) fn publish_names(&mut self, value: &Value) {
        let Value::Object(fields) = value else { return };
        for (name, value) in fields {
            match value {
                Value::String(text)
                    if matches!(name.as_str(), "name" | "namespace")
                        && text.len() <= LONGEST_NAME
                        && self.public.len() < MOST_PUBLIC =>
                {
                    self.public.insert(text.clone());
                }
                Value::Object(_) if matches!(name.as_str(), "object" | "key") => self.publish_names(value),
                _ => {}
            }
        }
    }

    pub(super) fn n_forgotten(&self) -> u64 {
        self.n_forgotten
    }

    /// Replaces all copies in all texts of a value.
    pub(super) fn replace_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.replace(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_all(item)),
            Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| self.replace_all(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces all copies in a text; of several that begin at one place, the longest.
    pub(super) fn replace(&self, text: &mut String) {
        if self.n == 0 || text.len() < MIN_LEN {
            return;
        }
        let bytes = text.as_bytes();
        let mut replaced: Option<String> = None;
        let mut copied = 0;
        let mut at = 0;
        while at + MIN_LEN <= bytes.len() {
            match self.longest_at(text, at) {
                Some(Pair { value, pseudonym }) => {
                    let out = replaced.get_or_insert_with(|| String::with_capacity(text.len()));
                    out.push_str(&text[copied..at]);
                    out.push_str(pseudonym);
                    at += value.len();
                    copied = at;
                }
                None => at += 1,
            }
        }
        if let Some(mut out) = replaced {
            out.push_str(&text[copied..]);
            *text = out;
        }
    }

    fn longest_at(&self, text: &str, at: usize) -> Option<&Pair> {
        let rest = &text.as_bytes()[at..];
        if !self.beginnings.contains(rest[0], rest[1]) {
            return None;
        }
        let beginning: [u8; MIN_LEN] = rest.get(..MIN_LEN)?.try_into().ok()?;
        let pairs = self.by_beginning.get(&beginning)?;
        pairs
            .iter()
            .filter(|pair| rest.starts_with(pair.value.as_bytes()))
            .max_by_key(|pair| pair.value.len())
    }

    /// Remembers a text, also without the space around it: `echo` ends a value with a newline, which guests
    /// cut off.
    fn remember_with_trimmed(&mut self, pseudonyms: &Pseudonyms, text: &str) {
        self.remember_text(text, &pseudonyms.of(text));
        let trimmed = text.trim();
        if trimmed.len() < text.len() {
            self.remember_text(trimmed, &pseudonyms.of(trimmed));
        }
    }

    /// Remembers a text, its base64, and its forms within JSON text.
    fn remember_text(&mut self, text: &str, pseudonym: &str) {
        if text.len() < MIN_LEN || ORDINARY.contains(&text) || self.public.contains(text) {
            return;
        }
        self.remember(text, pseudonym);
        self.remember(&BASE64_STANDARD.encode(text), &BASE64_STANDARD.encode(pseudonym));
        for escape in [escaped, escaped_by_go, escaped_twice] {
            let form = escape(text);
            if form != text {
                self.remember(&form, &escape(pseudonym));
            }
        }
    }

    fn remember(&mut self, value: &str, pseudonym: &str) {
        let Some(beginning) = value.as_bytes().get(..MIN_LEN).and_then(|it| it.try_into().ok()) else {
            return;
        };
        let pairs = self.by_beginning.entry(beginning).or_default();
        if pairs.iter().any(|pair| pair.value == value) {
            return;
        }
        if self.n >= MOST || self.bytes + value.len() > MOST_BYTES {
            self.n_forgotten += 1;
            return;
        }
        self.n += 1;
        self.bytes += value.len();
        self.beginnings.insert(beginning[0], beginning[1]);
        pairs.push(Pair { value: value.to_owned(), pseudonym: pseudonym.to_owned() });
    }
}

/// Escapes a text as most encoders of JSON do.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Escapes a text as Go's encoder does, for HTML.
fn escaped_by_go(text: &str) -> String {
    escaped(text).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Escapes a text within a JSON text within a JSON text.
fn escaped_twice(text: &str) -> String {
    escaped(&escaped(text))
}

// === impl Beginnings ===

impl Beginnings {
    fn insert(&mut self, first: u8, second: u8) {
        let bit = usize::from(first) << 8 | usize::from(second);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn contains(&self, first: u8, second: u8) -> bool {
        let bit = usize::from(first) << 8 | usize::from(second);
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }
}

impl Default for Beginnings {
    fn default() -> Self {
        Self(vec![0; 1 << 10].into())
    }
}
