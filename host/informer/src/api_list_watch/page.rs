//! One page of a list, taken apart while it arrives.
//!
//! Each item becomes an object as soon as its last byte is there, from the bytes as they came if all of it is in one chunk. One that cannot be
//! decoded, or is too long, is left out and named; the items behind it are read all the same.
//! The answer as a whole is never in memory (RL-28). What remains, the page's envelope, is small and read at the end.

use std::mem;
use std::ops::Range;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Config;
use super::glimpse::{self, Glimpse};
use crate::list_watch::{DecodeError, ItemHook, ListPage, Undecodable};
use crate::names::TypeMeta;
use crate::object::{self, Object};
use oarlock_json::scan::Nesting;

const WHAT: &str = "list";

/// No list has so much beside its items.
const MAX_ENVELOPE_BYTES: usize = 1 << 20;

/// Takes a page's bytes and gives its objects.
pub(super) struct PageDecoder<'c> {
    config: &'c Config,
    keep: ItemHook<'c>,
    items: Vec<Object>,
    undecodable: Vec<Undecodable>,
    envelope: EnvelopeScan,
    /// The beginning of an item that did not come whole in one chunk.
    item: Vec<u8>,
    /// What the list says that its items are.
    type_meta: Option<TypeMeta>,
    place: Place,
}

/// What the next byte belongs to.
enum Place {
    /// The list around its items.
    Envelope,
    /// The items: a new one may begin.
    BeforeItem,
    /// An item.
    Item(Nesting),
    /// An item that is too long; of which only the beginning is kept, to read its name from.
    LongItem(Nesting),
    /// The items: one has ended, and a comma or the end follows.
    AfterItem,
}

/// Everything but the items: what would be the page if it had none.
#[derive(Default)]
struct EnvelopeScan {
    bytes: Vec<u8>,
    /// How many brackets are open.
    depth: usize,
    text: Text,
    /// Where the last string of the top level stands.
    last_string: Range<usize>,
}

/// Whether the next byte is part of a string.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Text {
    #[default]
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
    pub(super) fn new(config: &'c Config, keep: ItemHook<'c>) -> Self {
        Self {
            config,
            keep,
            items: Vec::new(),
            undecodable: Vec::new(),
            envelope: EnvelopeScan::default(),
            item: Vec::new(),
            type_meta: None,
            place: Place::Envelope,
        }
    }

    /// Takes the next bytes of the page, however they fall.
    pub(super) fn push(&mut self, mut chunk: &[u8]) -> Result<(), DecodeError> {
        while !chunk.is_empty() {
            chunk = match &mut self.place {
                Place::Envelope => self.envelope(chunk)?,
                Place::BeforeItem => self.before_item(chunk)?,
                Place::Item(nesting) => match nesting.end_in(chunk) {
                    Some(end) => self.end_item(chunk, end),
                    None => self.go_on_with_item(chunk),
                },
                Place::LongItem(nesting) => match nesting.end_in(chunk) {
                    Some(end) => self.end_long_item(&chunk[end..]),
                    None => &[],
                },
                Place::AfterItem => self.after_item(chunk)?,
            };
        }
        Ok(())
    }

    /// Returns the page, if all of it came.
    pub(super) fn finish(self) -> Result<ListPage, DecodeError> {
        let envelope = parse_envelope(&self.envelope.bytes)?;
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
            undecodable: self.undecodable,
        })
    }

    fn envelope<'b>(&mut self, chunk: &'b [u8]) -> Result<&'b [u8], DecodeError> {
        for (idx, byte) in chunk.iter().enumerate() {
            if self.envelope.begins_items_with(*byte) {
                self.check_envelope()?;
                self.begin_items()?;
                return Ok(&chunk[idx + 1..]);
            }
        }
        self.check_envelope().map(|()| Default::default())
    }

    fn check_envelope(&self) -> Result<(), DecodeError> {
        let limit = MAX_ENVELOPE_BYTES;
        let is_too_long = self.envelope.bytes.len() > limit;
        if is_too_long { Err(DecodeError::TooLong { what: WHAT, limit }) } else { Ok(()) }
    }

    fn begin_items(&mut self) -> Result<(), DecodeError> {
        self.place = Place::BeforeItem;
        // The built-in types' lists say what they are before their items come; those that say it behind have items that say
        // it themselves.
        let so_far = [&self.envelope.bytes[..], b"]}"].concat();
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

    fn before_item<'b>(&mut self, chunk: &'b [u8]) -> Result<&'b [u8], DecodeError> {
        let rest = chunk.trim_ascii_start();
        match rest {
            [] | [b',', ..] => return Ok(rest.get(1..).unwrap_or_default()),
            [b']', ..] => self.end_items(),
            [b'{' | b'[', ..] => self.place = Place::Item(Nesting::default()),
            // No object, so this is no list of objects.
            _ => {
                let source = serde_json::Error::custom("expected an object as an item");
                return Err(object::Error::Json(source).into());
            }
        }
        Ok(rest)
    }

    fn end_item<'b>(&mut self, chunk: &'b [u8], end: usize) -> &'b [u8] {
        let (last, rest) = chunk.split_at(end);
        if self.is_too_long_with(last) {
            self.keep_beginning(last);
            return self.end_long_item(rest);
        }
        if self.item.is_empty() {
            self.take_in(last);
        } else {
            self.item.extend_from_slice(last);
            let mut item = mem::take(&mut self.item);
            self.take_in(&item);
            item.clear();
            self.item = item;
        }
        self.place = Place::AfterItem;
        rest
    }

    fn go_on_with_item<'b>(&mut self, chunk: &[u8]) -> &'b [u8] {
        if self.is_too_long_with(chunk) {
            self.keep_beginning(chunk);
            if let Place::Item(nesting) = &mut self.place {
                self.place = Place::LongItem(mem::take(nesting));
            }
        } else {
            self.item.extend_from_slice(chunk);
        }
        &[]
    }

    fn end_long_item<'b>(&mut self, rest: &'b [u8]) -> &'b [u8] {
        let beginning = mem::take(&mut self.item);
        let error = DecodeError::TooLong { what: "list item", limit: self.config.max_object_bytes };
        self.undecodable.push(Glimpse::of(&beginning).undecodable(error));
        self.place = Place::AfterItem;
        rest
    }

    fn is_too_long_with(&self, more: &[u8]) -> bool {
        self.item.len() + more.len() > self.config.max_object_bytes
    }

    /// Keeps so much of an item that is too long as may have its name.
    fn keep_beginning(&mut self, more: &[u8]) {
        let n_missing = glimpse::MAX_BYTES.saturating_sub(self.item.len());
        self.item.truncate(glimpse::MAX_BYTES);
        self.item.extend_from_slice(&more[..more.len().min(n_missing)]);
        self.item.shrink_to_fit();
    }

    fn take_in(&mut self, item: &[u8]) {
        let Config { pruning, content, .. } = self.config;
        match Object::parse_content(item, self.type_meta.as_ref(), pruning, *content) {
            Ok(item) => self.items.push((self.keep)(item)),
            Err(error) => self.undecodable.push(Glimpse::of(item).undecodable(error.into())),
        }
    }

    fn after_item<'b>(&mut self, chunk: &'b [u8]) -> Result<&'b [u8], DecodeError> {
        let rest = chunk.trim_ascii_start();
        match rest.first() {
            None => {}
            Some(b',') => self.place = Place::BeforeItem,
            Some(b']') => self.end_items(),
            Some(_) => {
                let source = serde_json::Error::custom("expected `,` or `]` behind an item");
                return Err(DecodeError::Malformed { what: WHAT, source });
            }
        }
        Ok(rest)
    }

    /// The bracket itself is read as the envelope's.
    fn end_items(&mut self) {
        self.place = Place::Envelope;
    }
}

// === impl EnvelopeScan ===

impl EnvelopeScan {
    /// Takes the next byte. Tells whether it was the bracket behind the key `items`.
    fn begins_items_with(&mut self, byte: u8) -> bool {
        let mut begins_items = false;
        match (self.text, byte) {
            (Text::AfterBackslash, _) => self.text = Text::Inside,
            (Text::Inside, b'\\') => self.text = Text::AfterBackslash,
            (Text::Inside, b'"') => {
                self.text = Text::Outside;
                if self.depth == 1 {
                    self.last_string.end = self.bytes.len();
                }
            }
            (Text::Outside, b'"') => {
                self.text = Text::Inside;
                if self.depth == 1 {
                    self.last_string.start = self.bytes.len() + 1;
                }
            }
            (Text::Outside, b'{' | b'[') => {
                self.depth += 1;
                begins_items = byte == b'[' && self.depth == 2 && self.is_after_items_key();
            }
            (Text::Outside, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.bytes.push(byte);
        begins_items
    }

    /// Whether what stands last is `"items":`.
    fn is_after_items_key(&self) -> bool {
        let between = self.bytes.get(self.last_string.end + 1..).unwrap_or_default();
        self.bytes.get(self.last_string.clone()) == Some(b"items") && between.trim_ascii() == b":"
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
