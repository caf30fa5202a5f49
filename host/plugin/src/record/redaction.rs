//! Replaces values of Secrets in the entries of a record.
//!
//! Two steps for each entry. The first finds values at their source: what crosses the border about the
//! resource `secrets` (an event, a read, a write), in whole objects, in the fields of a projection, in a
//! patch, and in the last applied configuration. There everything is replaced that is not known to be public,
//! such as names and labels. The second step replaces copies of these values, and of their base64 or decoded
//! form, in all texts of the entry: log lines, other objects, failures.
//!
//! The writer receives contents of Secrets before the entry of their call ([`SecretContent`]), since calls
//! end in another order than that in which they receive values. A configuration that is of a Secret is such
//! a content too, with all its values.
//!
//! It cannot find a value that the guest changed otherwise (a hash, a part of it, two values joined and
//! encoded), one of fewer than [`known::MIN_LEN`] bytes outside of a Secret, or one that the guest knew
//! before a Secret with it crossed the border.

mod json_text;
mod known;
mod sources;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use oarlock_record_format::file::json_size;
use serde_json::Value;

pub(crate) use self::sources::targets_secrets;
pub(super) use self::sources::{Sources, Subject, is_write};
use self::{
    json_text::Place,
    known::{Known, MIN_LEN},
    sources::field_names,
};
use super::{Call, Ended, Entry, Import, Start, pseudonyms::Pseudonyms};
use crate::Configuration;

/// The place of a configuration, so that all values in it are replaced.
const CONFIG: &str = "/config";

/// Replaces the values of Secrets in one file.
pub(super) struct Redaction {
    pseudonyms: Pseudonyms,
    known: Known,
}

/// A content of a Secret that crosses the border, ahead of the entry of its call.
pub(super) enum SecretContent {
    /// The argument of a call.
    Argument(Value, Subject),
    /// What an import writes, or its answer.
    Import(Import, Subject),
    /// The configuration of a generation.
    Config(Configuration),
}

// === impl SecretContent ===

impl SecretContent {
    /// Returns its length as JSON, about.
    pub(super) fn size(&self) -> usize {
        let json = match self {
            Self::Argument(argument, _) => json_size(argument),
            Self::Import(import, _) => {
                json_size(&import.arguments) + import.answer.as_ref().map_or(0, json_size)
            }
            Self::Config(config) => config.text().len(),
        };
        json + 200
    }
}

// === impl Redaction ===

impl Redaction {
    pub(super) fn new() -> Self {
        Self { pseudonyms: Pseudonyms::new(), known: Known::default() }
    }

    /// Returns the number of values that were too many to be remembered.
    pub(super) fn n_forgotten(&self) -> u64 {
        self.known.n_forgotten()
    }

    /// Learns the values of a content, to replace their copies in all entries from now on.
    pub(super) fn learn(&mut self, content: SecretContent) {
        match content {
            SecretContent::Argument(mut argument, subject) => self.argument(&mut argument, &subject),
            SecretContent::Import(mut import, subject) => self.import(&mut import, &subject),
            SecretContent::Config(config) => self.config_text(&mut config.text().to_owned()),
        }
    }

    /// Replaces the values in an entry.
    pub(super) fn redact(&mut self, entry: &mut Entry, sources: &Sources) {
        match entry {
            Entry::Start(Start { call, .. }) | Entry::Call(call) => self.call(call, sources),
            Entry::File(_) | Entry::Generation(_) | Entry::Gone(_) | Entry::End(_) => {}
        }
    }

    fn call(&mut self, call: &mut Call, sources: &Sources) {
        let Call { argument, imports, ended, .. } = call;
        let subject = sources.of_call(argument);
        if let Some(subject) = &subject {
            self.argument(argument, subject);
        }
        for import in &mut *imports {
            if let Some(subject) = sources.of_import(import, subject.as_ref()) {
                self.import(import, &subject);
            } else if sources.is_secret_config(import) {
                self.config_answer(import);
            }
        }
        // Now all values of this call are known.
        self.known.replace_all(argument);
        for Import { arguments, answer, .. } in imports {
            self.known.replace_all(arguments);
            answer.iter_mut().for_each(|answer| self.known.replace_all(answer));
        }
        match ended {
            Ended::Answer(answer) => self.known.replace_all(answer),
            Ended::Failed { message, .. } => self.known.replace(message),
            Ended::Cancelled => {}
        }
    }

    /// Replaces the values in the argument of a call about a Secret.
    fn argument(&mut self, argument: &mut Value, subject: &Subject) {
        self.known.publish_names(argument);
        for name in ["fields", "old_fields"] {
            if let Some(Value::Array(values)) = argument.get_mut(name) {
                self.fields(values, &subject.fields);
            }
        }
    }

    /// Replaces the values in the answer of `config.json` or `config.get`.
    fn config_answer(&mut self, import: &mut Import) {
        match &mut import.answer {
            Some(Value::String(text)) => self.config_text(text),
            Some(Value::Object(answer)) => {
                if let Some(Value::String(text)) = answer.get_mut("Ok") {
                    self.config_text(text);
                }
            }
            _ => {}
        }
    }

    /// Replaces all values in the JSON text of a configuration, or of a part of it.
    fn config_text(&mut self, text: &mut String) {
        let Self { pseudonyms, known } = self;
        let mut learn = |value: &str, _| known.learn(pseudonyms, value, place_in_config(value));
        *text = json_text::redact(text, CONFIG, &mut learn).unwrap_or_else(|| learn(text, Place::Plain));
    }

    /// Replaces the values in an import that is about Secrets.
    fn import(&mut self, import: &mut Import, subject: &Subject) {
        let Import { function, arguments, answer } = import;
        self.known.publish_names(arguments);
        if let Some(Value::String(value)) = arguments.get_mut("value")
            && let Some(place) = subject.index
        {
            self.plain(value, place);
        }
        let pointers = field_names(arguments);
        if function.starts_with("client.") {
            for name in ["json", "body"] {
                if let Some(Value::String(text)) = arguments.get_mut(name) {
                    self.object_or_patch(text);
                }
            }
        }
        // Errors have no values, except for copies.
        let Some(Value::Object(answer)) = answer else { return };
        let Some(answer) = answer.get_mut("Ok") else { return };
        match (function.as_str(), answer) {
            ("cache.index-values", Value::Array(values)) => {
                if let Some(place) = subject.index {
                    let texts = values
                        .iter_mut()
                        .filter_map(|it| if let Value::String(it) = it { Some(it) } else { None });
                    texts.for_each(|text| self.plain(text, place));
                }
            }
            (_, answer) => self.answer(answer, &pointers),
        }
    }

    /// Replaces everything in an answer that is not known to be public.
    fn answer(&mut self, answer: &mut Value, pointers: &[String]) {
        match answer {
            // The answer of `field`, `json` or `get`.
            Value::String(text) => self.text_at(text, pointers.first().map_or("", String::as_str)),
            // The answer of `fields`.
            Value::Array(values) if values.iter().all(|it| it.is_string() || it.is_null()) => {
                self.fields(values, pointers);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.answer(item, pointers)),
            Value::Object(row) => {
                self.known.publish_names(&Value::Object(row.clone()));
                for (name, value) in row {
                    match (name.as_str(), value) {
                        // The identity of an object, and the position in a list.
                        (
                            "object" | "name" | "namespace" | "uid" | "resource_version" | "continue_token",
                            _,
                        ) => {}
                        ("fields", Value::Array(values)) => self.fields(values, pointers),
                        ("json", Value::String(text)) => self.text_at(text, ""),
                        (_, value) => self.answer(value, pointers),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&mut self, values: &mut [Value], pointers: &[String]) {
        for (i, value) in values.iter_mut().enumerate() {
            if let Value::String(text) = value {
                // A place that is not known counts as secret.
                self.text_at(text, pointers.get(i).map_or("/data/?", String::as_str));
            }
        }
    }

    /// Replaces the values in the JSON text at a pointer of a Secret.
    fn text_at(&mut self, text: &mut String, pointer: &str) {
        let Self { pseudonyms, known } = self;
        *text = json_text::redact(text, pointer, &mut |value, place| known.learn(pseudonyms, value, place))
            .unwrap_or_else(|| known.learn(pseudonyms, text, Place::Plain));
    }

    /// Replaces the values in the body of a write.
    fn object_or_patch(&mut self, text: &mut String) {
        if !text.trim_start().starts_with('[') {
            return self.text_at(text, "");
        }
        let Ok(Value::Array(mut operations)) = serde_json::from_str::<Value>(text) else {
            return self.text_at(text, "/data/?");
        };
        for operation in &mut operations {
            let Value::Object(fields) = operation else {
                self.value_at(operation, "/data/?");
                continue;
            };
            let path = fields.get("path").and_then(Value::as_str).unwrap_or("/data/?").to_owned();
            // A path that is no pointer says nothing about its place.
            let path = if path.is_empty() || path.starts_with('/') { &path } else { "/data/?" };
            for (name, value) in fields {
                if !matches!(name.as_str(), "op" | "path" | "from") {
                    self.value_at(value, path);
                }
            }
        }
        // Written again, so that no escape of the guest hides a value.
        *text = Value::Array(operations).to_string();
    }

    /// Replaces the values in a value at a pointer of a Secret.
    fn value_at(&mut self, value: &mut Value, pointer: &str) {
        let mut text = value.to_string();
        self.text_at(&mut text, pointer);
        *value = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
    }

    fn plain(&mut self, text: &mut String, place: Place) {
        *text = self.known.learn(&self.pseudonyms, text, place);
    }
}

/// Returns the encoding of a value in a configuration, where any text may be base64: of text that can be
/// printed, since many other words can be decoded too.
fn place_in_config(value: &str) -> Place {
    let decoded = BASE64_STANDARD.decode(value).ok().and_then(|it| String::from_utf8(it).ok());
    let is_printed = |text: &String| {
        text.len() >= MIN_LEN && text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
    };
    if decoded.is_some_and(|text| is_printed(&text)) { Place::Base64 } else { Place::Plain }
}

#[cfg(test)]
mod tests;
