//! Decodes one page of a list while it arrives.
//!
//! Each item is decoded as soon as its last byte has arrived: in place if it is within one chunk, else from a
//! copy. An item that cannot be decoded, or is too long, is left out and named; the items after it are
//! decoded. The answer is never in memory as a whole (RL-28). The rest of the page, its envelope, is small
//! and is parsed at the end.

use std::mem;
use std::ops::Range;

use oarlock_json::scan::Nesting;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Config;
use super::identity::{self, ObjectIdentity};
use crate::list_watch::{DecodeError, ItemHook, ListPage, Undecodable};
use crate::names::TypeMeta;
use crate::object::{self, Object};

const WHAT: &str = "list";

/// The most bytes of a page without its items.
const MAX_ENVELOPE_BYTES: usize = 1 << 20;

/// Takes the bytes of a page and returns its objects.
pub struct PageDecoder<'c> {
    config: &'c Config,
    hook: ItemHook<'c>,
    items: Vec<Object>,
    undecodable: Vec<Undecodable>,
    envelope: EnvelopeScan,
    /// The beginning of an item that is not within one chunk.
    item: Vec<u8>,
    /// The type of the items, from the type of the list.
    type_meta: Option<TypeMeta>,
    position: Position,
}

/// The part of the page to which the next byte belongs.
enum Position {
    /// The page around its items.
    Envelope,
    /// The array of the items, where an item may begin.
    BeforeItem,
    /// An item.
    Item(Nesting),
    /// An item that is too long. Only its beginning is kept, for its name.
    LongItem(Nesting),
    /// The array of the items, where a comma or the end follows.
    AfterItem,
}

/// The page without its items.
#[derive(Default)]
struct EnvelopeScan {
    bytes: Vec<u8>,
    /// The number of open brackets.
    depth: usize,
    text: Text,
    /// The range of the last string at the top level.
    last_string: Range<usize>,
}

/// Whether the next byte belongs to a string.
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
    /// Returns a decoder of one page. The hook receives each object as soon as it has arrived.
    pub fn new(config: &'c Config, hook: ItemHook<'c>) -> Self {
        Self {
            config,
            hook,
            items: Vec::new(),
            undecodable: Vec::new(),
            envelope: EnvelopeScan::default(),
            item: Vec::new(),
            type_meta: None,
            position: Position::Envelope,
        }
    }

    /// Decodes the next bytes of the page; chunks may end anywhere.
    ///
    /// # Errors
    ///
    /// The bytes are not a list of objects.
    pub fn push(&mut self, mut chunk: &[u8]) -> Result<(), DecodeError> {
        while !chunk.is_empty() {
            chunk = match &mut self.position {
                Position::Envelope => self.envelope(chunk)?,
                Position::BeforeItem => self.before_item(chunk)?,
                Position::Item(nesting) => match nesting.end_in(chunk) {
                    Some(end) => self.end_item(chunk, end),
                    None => self.continue_item(chunk),
                },
                Position::LongItem(nesting) => match nesting.end_in(chunk) {
                    Some(end) => self.end_long_item(&chunk[end..]),
                    None => &[],
                },
                Position::AfterItem => self.after_item(chunk)?,
            };
        }
        Ok(())
    }

    /// Returns the page, if all of it has arrived.
    ///
    /// # Errors
    ///
    /// The bytes end too early, or are not a list.
    pub fn finish(self) -> Result<ListPage, DecodeError> {
        let envelope = parse_envelope(&self.envelope.bytes)?;
        if envelope.kind == "Table" && envelope.api_version.starts_with("meta.k8s.io/") {
            return Err(DecodeError::UnsupportedList(format!("{}, Kind=Table", envelope.api_version)));
        }
        // An answer that is not a list must not count as an empty list, which would delete all objects. Nor
        // may a list whose key `items` was written with escapes, so that its items were not found.
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
        self.position = Position::BeforeItem;
        // Lists of built-in types have their type before their items. In other lists each item has its type.
        let so_far = [&self.envelope.bytes[..], b"]}"].concat();
        let Envelope { kind, api_version, .. } = parse_envelope(&so_far)?;
        self.type_meta = match kind.strip_suffix("List") {
            // Not the type of the objects, if that is known.
            Some("PartialObjectMetadata") if self.config.type_meta.is_some() => self.config.type_meta.clone(),
            Some(kind) if !kind.is_empty() && !api_version.is_empty() => {
                Some(TypeMeta::new(api_version, kind))
            }
            _ => self.config.type_meta.clone(),
        };
        // So that the objects of lists and watches share one copy of the type.
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
            [b'{' | b'[', ..] => self.position = Position::Item(Nesting::default()),
            // Not a list of objects.
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
            self.decode_item(last);
        } else {
            self.item.extend_from_slice(last);
            let mut item = mem::take(&mut self.item);
            self.decode_item(&item);
            item.clear();
            self.item = item;
        }
        self.position = Position::AfterItem;
        rest
    }

    fn continue_item<'b>(&mut self, chunk: &[u8]) -> &'b [u8] {
        if self.is_too_long_with(chunk) {
            self.keep_beginning(chunk);
            if let Position::Item(nesting) = &mut self.position {
                self.position = Position::LongItem(mem::take(nesting));
            }
        } else {
            self.item.extend_from_slice(chunk);
        }
        &[]
    }

    fn end_long_item<'b>(&mut self, rest: &'b [u8]) -> &'b [u8] {
        let beginning = mem::take(&mut self.item);
        let error = DecodeError::TooLong { what: "list item", limit: self.config.max_object_bytes };
        self.undecodable.push(ObjectIdentity::of(&beginning).undecodable(error));
        self.position = Position::AfterItem;
        rest
    }

    fn is_too_long_with(&self, more: &[u8]) -> bool {
        self.item.len() + more.len() > self.config.max_object_bytes
    }

    /// Keeps the first bytes of an item that is too long, which contain its name.
    fn keep_beginning(&mut self, more: &[u8]) {
        let n_missing = identity::MAX_BYTES.saturating_sub(self.item.len());
        self.item.truncate(identity::MAX_BYTES);
        self.item.extend_from_slice(&more[..more.len().min(n_missing)]);
        self.item.shrink_to_fit();
    }

    fn decode_item(&mut self, item: &[u8]) {
        let Config { pruning, content, .. } = self.config;
        match Object::parse_content(item, self.type_meta.as_ref(), pruning, *content) {
            Ok(item) => self.items.push((self.hook)(item)),
            Err(error) => self.undecodable.push(ObjectIdentity::of(item).undecodable(error.into())),
        }
    }

    fn after_item<'b>(&mut self, chunk: &'b [u8]) -> Result<&'b [u8], DecodeError> {
        let rest = chunk.trim_ascii_start();
        match rest.first() {
            None => {}
            Some(b',') => self.position = Position::BeforeItem,
            Some(b']') => self.end_items(),
            Some(_) => {
                let source = serde_json::Error::custom("expected `,` or `]` after an item");
                return Err(DecodeError::Malformed { what: WHAT, source });
            }
        }
        Ok(rest)
    }

    /// Leaves the bracket to the envelope.
    fn end_items(&mut self) {
        self.position = Position::Envelope;
    }
}

// === impl EnvelopeScan ===

impl EnvelopeScan {
    /// Scans the next byte, and returns whether it is the bracket after the key `items`.
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

    /// Returns whether the bytes end in `"items":`.
    fn is_after_items_key(&self) -> bool {
        let between = self.bytes.get(self.last_string.end + 1..).unwrap_or_default();
        self.bytes.get(self.last_string.clone()) == Some(b"items") && between.trim_ascii() == b":"
    }
}

/// Distinguishes a null from a missing field.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

fn parse_envelope(bytes: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|source| DecodeError::NotUtf8 { what: WHAT, source })?;
    serde_json::from_str(text).map_err(|source| DecodeError::Malformed { what: WHAT, source })
}
