//! The values under which an index files an object.

use std::borrow::Cow;

use oarlock_json::{PointerPattern, find_each};

use super::source::{IndexError, IndexSource};
use crate::indexer::IndexId;
use crate::object::Object;
use crate::user_function::{self, UserFunction};

/// The values of one object, or why they cannot be computed.
pub(in crate::indexer) type Filing<'a> = Result<Values<'a>, IndexError>;

/// The values of one object: sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::indexer) enum Values<'a> {
    None,
    One(Cow<'a, str>),
    Many(Vec<String>),
}

// === impl Values ===

impl<'a> Values<'a> {
    /// Computes the values that a source has for the object.
    pub(in crate::indexer) fn of(source: &IndexSource, object: &'a Object) -> Result<Self, IndexError> {
        let values = match source {
            IndexSource::Label(label) => {
                return Ok(object.label_set().get(label).map_or(Self::None, Self::One));
            }
            IndexSource::OwnerUid => object.owner_references().into_iter().map(|owner| owner.uid).collect(),
            IndexSource::Pointer(pattern) => {
                let json = object.json();
                let texts = find_each(&json, &[pattern.segments()]).pop().unwrap_or_default();
                scalars(&texts, pattern)?
            }
            IndexSource::Function(function) => {
                let result = user_function::call(UserFunction::Index, object.key(), || function.0(object));
                result.map_err(|panic| IndexError(panic.to_string()))??
            }
        };
        Ok(Self::sorted(values))
    }

    /// Computes the values that several sources have for the object, with one walk over its text.
    pub(in crate::indexer) fn of_each(
        sources: &[(IndexId, IndexSource)],
        object: &'a Object,
    ) -> Vec<(IndexId, Result<Self, IndexError>)> {
        let patterns = sources.iter().filter_map(|(_, source)| match source {
            IndexSource::Pointer(pattern) => Some(pattern.segments()),
            _ => None,
        });
        let segments: Vec<_> = patterns.collect();
        let json = (!segments.is_empty()).then(|| object.json());
        let mut found = json.iter().flat_map(|json| find_each(json, &segments));
        let values = |source: &IndexSource| match source {
            IndexSource::Pointer(pattern) => {
                scalars(&found.next().unwrap_or_default(), pattern).map(Self::sorted)
            }
            _ => Self::of(source, object),
        };
        let ids = sources.iter().map(|(id, _)| *id);
        ids.zip(sources.iter().map(|(_, source)| source).map(values)).collect()
    }

    fn sorted(mut values: Vec<String>) -> Self {
        values.sort_unstable();
        values.dedup();
        match values.len() {
            0 => Self::None,
            1 => values.pop().map_or(Self::None, |value| Self::One(value.into())),
            _ => Self::Many(values),
        }
    }

    pub(in crate::indexer) fn iter(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::None => (None, &[][..]),
            Self::One(one) => (Some(&**one), &[][..]),
            Self::Many(many) => (None, &many[..]),
        };
        one.into_iter().chain(many.iter().map(String::as_str))
    }

    pub(in crate::indexer) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Many(many) => many.len(),
        }
    }
}

fn scalars(texts: &[&str], pattern: &PointerPattern) -> Result<Vec<String>, IndexError> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        match text.as_bytes().first() {
            Some(b'"') => {
                let value = serde_json::from_str(text);
                values.push(value.map_err(|error| IndexError(format!("the value at {pattern}: {error}")))?);
            }
            Some(b'{' | b'[') => return Err(IndexError(format!("the value at {pattern} is not a scalar"))),
            _ if *text == "null" => {}
            _ => values.push((*text).to_owned()),
        }
    }
    Ok(values)
}
