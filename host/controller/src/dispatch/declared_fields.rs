//! The values of declared fields, which a notification carries along.

use oarlock_informer::Object;
use oarlock_json::PointerSet;

/// The most that the values of one state may have together. Pointers may point into each other and stand twice, so that a few of them are
/// many times the object.
const MOST_BYTES: usize = 1 << 20;

/// How much of a long text is looked through before others of this worker get their turn: about a millisecond's worth.
const SLICE: usize = 1 << 20;

/// Returns the JSON texts at the declared pointers, in their order; an empty list when they are too long together.
///
/// It depends on the object and the pointers alone, so that what a plugin is given as an old state's is what it was given as the new one's.
pub(super) async fn values(object: &Object, fields: &PointerSet) -> Vec<Option<String>> {
    if fields.is_empty() {
        return Vec::new();
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
        let values = values(object, &PointerSet::new(&pointers)).await;
        values.into_iter().map(|value| value.map(|text| text.len())).collect()
    }

    #[tokio::test]
    async fn promise_4_declared_fields_carry_no_more_than_they_may() {
        let text = format!(
            r#"{{"kind":"X","apiVersion":"v1","metadata":{{"name":"a"}},"data":{{"large":"{}"}}}}"#,
            "x".repeat(600 << 10)
        );
        let object = Object::parse(text.as_bytes(), None).unwrap();
        let large = (600 << 10) + 2;
        assert_eq!(
            lengths(&object, &["/kind", "/data/large", "/nothing"]).await,
            [Some(3), Some(large), None],
            "what fits comes whole"
        );
        assert_eq!(lengths(&object, &["/data/large", "/data", "/kind"]).await, [], "one within the other");
        assert_eq!(lengths(&object, &["/data/large", "/data/large"]).await, [], "one twice");
        assert_eq!(lengths(&object, &[]).await, []);
    }
}
