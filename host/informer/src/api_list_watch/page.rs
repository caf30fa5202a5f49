//! One page of a list, taken apart while it arrives.
//!
//! Each item becomes an object as soon as its last byte is there, from a buffer of its own; the answer as a whole is never in
//! memory (RL-28). What remains, the page's envelope, is small and read at the end.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Config;
use crate::list_watch::{DecodeError, Keep, ListPage};
use crate::names::TypeMeta;
use crate::object::Object;

const WHAT: &str = "list";

/// No list has so much beside its items.
const MAX_ENVELOPE_BYTES: usize = 1 << 20;

/// Takes a page's bytes and gives its objects.
pub(super) struct PageDecoder<'c> {
    config: &'c Config,
    keep: Keep<'c>,
    items: Vec<Object>,
    /// Everything but the items: what would be the page if it had none.
    envelope: Vec<u8>,
    /// The item that is arriving.
    item: Vec<u8>,
    /// What the list says that its items are.
    type_meta: Option<TypeMeta>,
    place: Place,
    /// How many brackets are open.
    depth: usize,
    text: Text,
    /// Where in the envelope the last string of the top level stands.
    last_string: std::ops::Range<usize>,
}

/// Whether the next byte belongs to the list or to an item of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Envelope,
    Items,
}

/// Whether the next byte is part of a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    AfterBackslash,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    metadata: Option<ListMetadata>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    items: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

// === impl PageDecoder ===

impl<'c> PageDecoder<'c> {
    pub(super) fn new(config: &'c Config, keep: Keep<'c>) -> Self {
        Self {
            config,
            keep,
            items: Vec::new(),
            envelope: Vec::new(),
            item: Vec::new(),
            type_meta: None,
            place: Place::Envelope,
            depth: 0,
            text: Text::Outside,
            last_string: 0..0,
        }
    }

    /// Takes the next bytes of the page, however they fall.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), DecodeError> {
        for byte in chunk {
            self.byte(*byte)?;
        }
        if self.item.len() > self.config.max_object_bytes {
            return Err(DecodeError::TooLong { what: "list item", limit: self.config.max_object_bytes });
        }
        if self.envelope.len() > MAX_ENVELOPE_BYTES {
            return Err(DecodeError::TooLong { what: WHAT, limit: MAX_ENVELOPE_BYTES });
        }
        Ok(())
    }

    /// Returns the page, if all of it came.
    pub(super) fn finish(self) -> Result<ListPage, DecodeError> {
        let envelope = parse_envelope(&self.envelope)?;
        if envelope.kind == "Table" && envelope.api_version.starts_with("meta.k8s.io/") {
            return Err(DecodeError::UnsupportedList(format!("{}, Kind=Table", envelope.api_version)));
        }
        // What is no list must not be taken for an empty one, which would delete everything. Nor may one whose items went by
        // unseen, because their key was written with escapes.
        let is_list = match envelope.items {
            Some(items) if items.get().starts_with('[') => items.get()[1..].trim_ascii_start() == "]",
            Some(items) => items.get() == "null",
            None => false,
        };
        if !is_list {
            return Err(DecodeError::UnsupportedList(format!(
                "{}, Kind={}",
                envelope.api_version, envelope.kind
            )));
        }
        let metadata = envelope.metadata.unwrap_or_default();
        Ok(ListPage {
            resource_version: metadata.resource_version.unwrap_or_default(),
            continue_token: metadata.continue_token.filter(|token| !token.is_empty()),
            items: self.items,
        })
    }

    fn byte(&mut self, byte: u8) -> Result<(), DecodeError> {
        match self.text {
            Text::AfterBackslash => self.text = Text::Inside,
            Text::Inside => match byte {
                b'\\' => self.text = Text::AfterBackslash,
                b'"' => {
                    self.text = Text::Outside;
                    if self.depth == 1 {
                        self.last_string.end = self.envelope.len();
                    }
                }
                _ => {}
            },
            Text::Outside => match byte {
                b'"' => {
                    self.text = Text::Inside;
                    if self.depth == 1 {
                        self.last_string.start = self.envelope.len() + 1;
                    }
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    if byte == b'[' && self.depth == 2 && self.is_after_items_key() {
                        self.envelope.push(byte);
                        return self.begin_items();
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.place == Place::Items && self.depth == 1 {
                        self.end_item()?;
                        self.place = Place::Envelope;
                    }
                }
                b',' if self.place == Place::Items && self.depth == 2 => return self.end_item(),
                _ => {}
            },
        }
        match self.place {
            Place::Envelope => self.envelope.push(byte),
            Place::Items => self.item.push(byte),
        }
        Ok(())
    }

    /// Whether what stands last in the envelope is `"items":`.
    fn is_after_items_key(&self) -> bool {
        let between = self.envelope.get(self.last_string.end + 1..).unwrap_or_default();
        self.envelope.get(self.last_string.clone()) == Some(b"items") && between.trim_ascii() == b":"
    }

    fn begin_items(&mut self) -> Result<(), DecodeError> {
        self.place = Place::Items;
        // The built-in types' lists say what they are before their items come; those that say it behind have items that say
        // it themselves.
        let so_far = [&self.envelope[..], b"]}"].concat();
        let Envelope { kind, api_version, .. } = parse_envelope(&so_far)?;
        self.type_meta = match kind.strip_suffix("List") {
            // Says how much there is of the items, not what they are.
            Some("PartialObjectMetadata") => self.config.type_meta.clone(),
            Some(kind) if !kind.is_empty() && !api_version.is_empty() => {
                Some(TypeMeta::new(api_version, kind))
            }
            _ => self.config.type_meta.clone(),
        };
        // Share one copy of the names with the watch's objects.
        if self.type_meta == self.config.type_meta {
            self.type_meta = self.config.type_meta.clone();
        }
        Ok(())
    }

    fn end_item(&mut self) -> Result<(), DecodeError> {
        if !self.item.trim_ascii().is_empty() {
            let Config { pruning, content, .. } = self.config;
            let item = Object::parse_content(&self.item, self.type_meta.as_ref(), pruning, *content)?;
            self.items.push((self.keep)(item));
        }
        self.item.clear();
        Ok(())
    }
}

/// Keeps a null apart from what is not there.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

fn parse_envelope(bytes: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|source| DecodeError::NotUtf8 { what: WHAT, source })?;
    serde_json::from_str(text).map_err(|source| DecodeError::Malformed { what: WHAT, source })
}
