//! Field selectors: `metadata.name=a,status.phase!=Running`. They may name only the selectable fields of the
//! resource.

use crate::event_view;
use crate::resource::Resource;
use crate::status::StatusError;
use crate::store::Stored;

/// All terms must match.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
struct Term {
    field: Field,
    value: String,
    /// `=` rather than `!=`.
    equal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Name,
    Namespace,
    /// An index into the resource's selectable fields.
    Selectable(usize),
}

// === impl FieldSelector ===

impl FieldSelector {
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, StatusError> {
        let mut terms = Vec::new();
        for term in split(text).into_iter().filter(|term| !term.is_empty()) {
            let (path, value, equal) = sides(&term).ok_or_else(|| {
                StatusError::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'"))
            })?;
            terms.push(Term { field: Field::find(path, resource)?, value: unescape(value), equal });
        }
        Ok(Self { terms })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.terms.iter().all(|term| {
            let value = match term.field {
                Field::Name => &object.name,
                Field::Namespace => &object.namespace,
                Field::Selectable(at) => object.fields.get(at).map(String::as_str).unwrap_or_default(),
            };
            (value == term.value) == term.equal
        })
    }
}

// === impl Field ===

impl Field {
    fn find(path: &str, resource: &Resource) -> Result<Self, StatusError> {
        match path {
            "metadata.name" => return Ok(Self::Name),
            "metadata.namespace" if resource.namespaced || resource.selectable.is_empty() => {
                return Ok(Self::Namespace);
            }
            _ => {}
        }
        let stored_path =
            if resource.view.is_some() { event_view::stored_field(path) } else { path.to_owned() };
        if let Some(at) = resource.selectable.iter().position(|known| *known == stored_path) {
            return Ok(Self::Selectable(at));
        }
        let message = if resource.selectable.is_empty() && resource.custom.is_none() {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        } else {
            format!("field label not supported: {path}")
        };
        Err(StatusError::bad_request(message))
    }
}

/// Returns the name if the selector selects one name; rights to this name then suffice.
pub(crate) fn exact_name(text: &str) -> Option<String> {
    let terms = split(text);
    let name = terms.iter().filter_map(|term| sides(term)).find(|(path, ..)| *path == "metadata.name");
    name.filter(|(.., equal)| *equal).map(|(_, value, _)| unescape(value))
}

/// Splits at unescaped commas.
fn split(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ',' if !escaped => terms.push(String::new()),
            c => {
                if let Some(term) = terms.last_mut() {
                    term.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn sides(term: &str) -> Option<(&str, &str, bool)> {
    if let Some((path, value)) = term.split_once("!=") {
        return Some((path, value, false));
    }
    let (path, value) = term.split_once("==").or_else(|| term.split_once('='))?;
    Some((path, value, true))
}

fn unescape(value: &str) -> String {
    let mut plain = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    plain
}
