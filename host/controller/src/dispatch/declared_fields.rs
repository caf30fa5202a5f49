//! The values of a subscription's declared fields, which each call of the handler carries.

use oarlock_json::PointerSet;

use oarlock_informer::{Object, listener::FieldValues};

/// The most bytes that the values of one state may have together. Pointers may overlap and repeat, so a few
/// of them can be many times as long as the object.
const MOST_BYTES: usize = 1 << 20;

/// How many bytes of a long text are searched before other tasks of this worker run: about a millisecond of
/// work.
const SLICE: usize = 1 << 20;

/// Returns the JSON texts at the declared pointers, in their order; an empty list when they are too long
/// together. `found` are the values that the listener found, which are never too long; without them the
/// object's text is searched.
///
/// The result depends on the object and the pointers alone, so a plugin receives for an old state the values
/// that it received when the state was new.
pub(super) async fn values(
    object: &Object,
    fields: &PointerSet,
    found: Option<&FieldValues>,
) -> Vec<Option<String>> {
    if fields.is_empty() {
        return Vec::new();
    }
    if let Some(found) = found {
        return found.iter().map(|value| value.map(str::to_owned)).collect();
    }
    let mut finding = object.finding(fields);
    while !finding.advance(SLICE) {
        tokio::task::yield_now().await;
    }
    let found = finding.finish();
    if found.n_bytes() > MOST_BYTES {
        return Vec::new();
    }
    found.iter().map(|value| value.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lengths(object: &Object, pointers: &[&str]) -> Vec<Option<usize>> {
        let pointers: Vec<_> = pointers.iter().map(|text| text.parse().unwrap()).collect();
        let values = values(object, &PointerSet::new(&pointers), None).await;
        values.into_iter().map(|value| value.map(|text| text.len())).collect()
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
