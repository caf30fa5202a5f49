//! The values of a subscription's declared fields, which each call of the handler carries.

use oarlock_json::{Found, PointerSet};
use smallvec::SmallVec;

use oarlock_informer::{Object, listener::FieldValues, object::Json};

/// The most bytes that the values of one state may have together. Pointers may overlap and repeat, so a few
/// of them can be many times as long as the object.
const MOST_BYTES: usize = 1 << 20;

/// How many bytes of a long text are searched before other tasks of this worker run: about a millisecond of
/// work.
const SLICE: usize = 1 << 20;

/// The JSON texts at the declared pointers in one state of an object, in their order.
///
/// They depend on the object and the pointers alone, so a plugin receives for an old state the values that it
/// received when the state was new.
pub(crate) enum Values<'a> {
    /// No field is declared, or the texts are too long together, or there is no such state.
    None,
    /// The listener found them. Those are never too long.
    Found(&'a FieldValues),
    /// The object's text was searched.
    Searched(Found<Json>),
}

// === impl Values ===

impl<'a> Values<'a> {
    /// Returns the values in a state. `found` are those that the listener found; without them the object's
    /// text is searched.
    pub(super) async fn of(
        object: Option<&Object>,
        fields: &PointerSet,
        found: Option<&'a FieldValues>,
    ) -> Self {
        let Some(object) = object.filter(|_| !fields.is_empty()) else { return Self::None };
        if let Some(found) = found {
            return Self::Found(found);
        }
        let mut finding = object.finding(fields);
        while !finding.advance(SLICE) {
            tokio::task::yield_now().await;
        }
        let found = finding.finish();
        if found.n_bytes() > MOST_BYTES { Self::None } else { Self::Searched(found) }
    }

    /// Returns the texts; none for a field that the object lacks. Up to four need no allocation.
    pub(super) fn texts(&self) -> SmallVec<[Option<&str>; 4]> {
        match self {
            Self::None => SmallVec::new(),
            Self::Found(found) => found.iter().collect(),
            Self::Searched(found) => found.iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lengths(object: &Object, pointers: &[&str]) -> Vec<Option<usize>> {
        let pointers: Vec<_> = pointers.iter().map(|text| text.parse().unwrap()).collect();
        let values = Values::of(Some(object), &PointerSet::new(&pointers), None).await;
        values.texts().into_iter().map(|value| value.map(str::len)).collect()
    }

    #[tokio::test]
    async fn promise_4_declared_fields_that_are_too_long_together_are_left_out() {
        let text = format!(
            r#"{{"kind":"X","apiVersion":"v1","metadata":{{"name":"a"}},"data":{{"large":"{}"}}}}"#,
            "x".repeat(600 << 10)
        );
        let object = Object::parse(text.as_bytes(), None).unwrap();
        let large = (600 << 10) + 2;
        assert_eq!(
            lengths(&object, &["/kind", "/data/large", "/nothing"]).await,
            [Some(3), Some(large), None],
            "values that fit are complete"
        );
        assert_eq!(lengths(&object, &["/data/large", "/data", "/kind"]).await, [], "pointers that overlap");
        assert_eq!(lengths(&object, &["/data/large", "/data/large"]).await, [], "a pointer that repeats");
        assert_eq!(lengths(&object, &[]).await, []);
    }
}
